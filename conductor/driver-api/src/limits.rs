//! What the rows can hold of a driver's report.
//!
//! A report is taken whole or not at all. One that a column does not take could not be recorded, and the call
//! would be repeated in vain; so it is a mistake of the driver, told by the field. The conductor checks every report
//! of every engine when it accepts it, of calls and of observations; engines need not. So it is with replies of a driver's own API, which go to a user. The texts that are made for
//! people (`status_reason`) are cut by the rows instead, and are not looked at here.

mod nodes;
mod utilisation;

use magnum_common::model::StringMap;
use magnum_drivers::DriverInfo;
use magnum_drivers::api_exchange::LARGEST_REPLY;
use serde_json::Value;

use crate::{ApiReply, ApiStatus, DriverError, DriverReport, HealthReport, Reason};

pub use nodes::accept_nodes;
pub use utilisation::accept_utilisation;

/// Characters in most text columns.
const TEXT: usize = 255;
/// Characters in a node group's `version`.
const VERSION: usize = 20;
/// Bytes in a column that holds a list or a dictionary as JSON, on the database with the smallest one.
const JSON: usize = 65_535;

/// Characters in the text with which a driver's own API refuses a call.
const REFUSAL: usize = 2000;

/// A field of a report that no row can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct LimitError {
    /// The field, by its path in the report: `node_groups[0].version`.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

/// What a call or an observation brought, if it can be recorded.
///
/// # Errors
/// The driver's own error, or a permanent one that names the field that is over its limit.
pub fn accept(
    driver: &DriverInfo,
    result: Result<DriverReport, DriverError>,
) -> Result<DriverReport, DriverError> {
    let report = result?;
    check(&report).map_err(|error| refused(driver, &error))?;
    Ok(report)
}

/// [`accept`], for a look at a cluster's health.
///
/// # Errors
/// As those of [`accept`].
pub fn accept_health(
    driver: &DriverInfo,
    result: Result<HealthReport, DriverError>,
) -> Result<HealthReport, DriverError> {
    let report = result?;
    string_map(&report.reasons)
        .map_err(|reason| refused(driver, &over("health_status_reason".to_owned(), reason)))?;
    Ok(report)
}

/// [`accept`], for a reply of a driver's own API.
///
/// # Errors
/// As those of [`accept`]: a body that is too large, that comes with the status for none, or that is no text for the
/// user where the call is refused.
pub fn accept_api(
    driver: &DriverInfo,
    result: Result<ApiReply, DriverError>,
) -> Result<ApiReply, DriverError> {
    let reply = result?;
    match check_api(&reply) {
        Ok(()) => Ok(reply),
        Err(reason) => Err(DriverError::Permanent(Reason::open(format!(
            "driver {driver} returned a reply that cannot be handed on: body {reason}"
        )))),
    }
}

fn check_api(reply: &ApiReply) -> Result<(), String> {
    let bytes = reply.body.to_string().len();
    if bytes > LARGEST_REPLY {
        return Err(format!(
            "takes {bytes} bytes as JSON, at most {LARGEST_REPLY} are allowed"
        ));
    }
    let code = reply.status.code();
    match &reply.body {
        Value::Null if reply.status == ApiStatus::NoContent => Ok(()),
        _ if reply.status == ApiStatus::NoContent => Err(format!("must be absent with status {code}")),
        Value::String(text) if reply.status.is_refusal() && !text.trim().is_empty() => {
            match text.chars().count() {
                characters if characters > REFUSAL => Err(format!(
                    "has {characters} characters with status {code}, at most {REFUSAL} are allowed"
                )),
                _ => Ok(()),
            }
        }
        _ if reply.status.is_refusal() => Err(format!("must be a text for the user with status {code}")),
        _ => Ok(()),
    }
}

fn refused(driver: &DriverInfo, error: &LimitError) -> DriverError {
    DriverError::Permanent(Reason::open(format!(
        "driver {driver} returned a report that cannot be recorded: {error}"
    )))
}

/// Whether rows can hold the report.
///
/// # Errors
/// The first field that they cannot.
pub fn check(report: &DriverReport) -> Result<(), LimitError> {
    let cluster = &report.cluster;
    for (name, value) in [
        ("stack_id", &cluster.stack_id),
        ("user_id", &cluster.user_id),
        ("api_address", &cluster.api_address),
        ("coe_version", &cluster.coe_version),
        ("container_version", &cluster.container_version),
        ("discovery_url", &cluster.discovery_url),
    ] {
        text(value, TEXT).map_err(|reason| over(format!("cluster.{name}"), reason))?;
    }
    if let Some(reasons) = &cluster.health_status_reason {
        string_map(reasons).map_err(|reason| over("cluster.health_status_reason".to_owned(), reason))?;
    }
    for (number, group) in report.node_groups.iter().enumerate() {
        let over = |name: &str, reason: String| over(format!("node_groups[{number}].{name}"), reason);
        for (name, value, most) in [
            ("stack_id", &group.stack_id, TEXT),
            ("image_id", &group.image_id, TEXT),
            ("version", &group.version, VERSION),
        ] {
            text(value, most).map_err(|reason| over(name, reason))?;
        }
        if let Some(addresses) = &group.node_addresses {
            let bytes = json_list_bytes(addresses.iter().map(|address| json_bytes(address)));
            json(bytes).map_err(|reason| over("node_addresses", reason))?;
        }
        if let Some(count) = group.node_count.filter(|count| *count < 0) {
            return Err(over("node_count", format!("must not be negative, it is {count}")));
        }
    }
    Ok(())
}

fn over(field: String, reason: String) -> LimitError {
    LimitError { field, reason }
}

fn text(value: &Option<String>, most: usize) -> Result<(), String> {
    let Some(value) = value else { return Ok(()) };
    if value.contains('\0') {
        return Err("holds a NUL character, which rows cannot hold".to_owned());
    }
    let characters = value.chars().count();
    if characters > most {
        return Err(format!("has {characters} characters; its column holds {most}"));
    }
    Ok(())
}

fn string_map(map: &StringMap) -> Result<(), String> {
    let entries = map
        .iter()
        .map(|(key, value)| json_bytes(key) + ": ".len() + json_bytes(value));
    json(json_list_bytes(entries))
}

fn json(bytes: usize) -> Result<(), String> {
    if bytes > JSON {
        return Err(format!("takes {bytes} bytes as JSON; its column holds {JSON}"));
    }
    Ok(())
}

/// Bytes of a list, or of a dictionary, of items that take so many, as rows hold it: a comma and a blank between
/// two, a bracket at each end.
fn json_list_bytes(items: impl Iterator<Item = usize>) -> usize {
    let bytes: usize = items.map(|item| item + ", ".len()).sum();
    bytes.saturating_sub(", ".len()) + "[]".len()
}

/// Bytes of a text, quoted and escaped as rows hold it: everything that is not printable ASCII as `\u` and four
/// digits, what JSON has a letter for as that.
fn json_bytes(text: &str) -> usize {
    let escaped: usize = text
        .chars()
        .map(|c| match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            ' '..='~' => 1,
            c => 6 * c.len_utf16(),
        })
        .sum();
    escaped + "\"\"".len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NodeGroupChanges;

    fn reason(change: impl FnOnce(&mut DriverReport, &mut NodeGroupChanges)) -> String {
        let mut report = DriverReport::default();
        let mut group = NodeGroupChanges::of("g".into());
        change(&mut report, &mut group);
        report.node_groups = vec![group];
        check(&report)
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn report_over_its_limits_names_the_field() {
        assert_eq!(
            reason(|report, _| report.cluster.stack_id = Some("s".repeat(256))),
            "cluster.stack_id has 256 characters; its column holds 255"
        );
        assert_eq!(
            reason(|_, group| group.version = Some("v1.29.3+distribution.1".into())),
            "node_groups[0].version has 22 characters; its column holds 20"
        );
        assert!(reason(|report, _| report.cluster.api_address = Some("a\0".into())).contains("NUL"));
        assert!(reason(|_, group| group.node_count = Some(-1)).contains("node_count must not be negative"));
        let many = vec!["2001:db8::1".to_owned(); 6000];
        assert_eq!(
            reason(|_, group| group.node_addresses = Some(many)),
            "node_groups[0].node_addresses takes 90000 bytes as JSON; its column holds 65535"
        );
    }

    #[test]
    fn report_within_limits_and_long_reason_are_accepted() {
        assert_eq!(
            reason(|report, group| {
                report.cluster.stack_id = Some("ü".repeat(255));
                report.cluster.status_reason = Some("x".repeat(100_000));
                group.node_count = Some(0);
                group.version = Some("v1.29.3".into());
            }),
            ""
        );
    }

    #[test]
    fn a_text_counts_as_many_bytes_as_its_row_takes() {
        for (text, bytes) in [
            ("", 2),
            ("plain", 7),
            ("a\"b\\c", 9),
            ("line\n", 8),
            ("ü", 8),
            ("😀", 14),
            ("\u{7f}", 8),
            ("\u{1}", 8),
        ] {
            assert_eq!(json_bytes(text), bytes, "{text:?}");
        }
        assert_eq!(json_list_bytes(std::iter::empty()), 2);
        // ["ab", "c"]
        assert_eq!(json_list_bytes(["ab", "c"].into_iter().map(json_bytes)), 11);
        // {"a": "b"}
        assert_eq!(json_list_bytes(std::iter::once(3 + 2 + 3)), 10);
    }

    #[test]
    fn a_reply_fits_its_status_and_is_bounded() {
        let told =
            |status: ApiStatus, body: Value| check_api(&ApiReply { status, body }).err().unwrap_or_default();
        assert_eq!(
            told(ApiStatus::Ok, Value::from("x".repeat(LARGEST_REPLY - 2))),
            ""
        );
        assert_eq!(
            told(ApiStatus::Ok, Value::from("x".repeat(LARGEST_REPLY - 1))),
            "takes 262145 bytes as JSON, at most 262144 are allowed"
        );
        assert_eq!(told(ApiStatus::NoContent, Value::Null), "");
        assert_eq!(
            told(ApiStatus::NoContent, Value::from(1)),
            "must be absent with status 204"
        );
        assert_eq!(told(ApiStatus::Conflict, Value::from("busy")), "");
        for body in [Value::Null, Value::from(" "), Value::from(3)] {
            assert_eq!(
                told(ApiStatus::Conflict, body),
                "must be a text for the user with status 409"
            );
        }
        assert!(told(ApiStatus::NotFound, Value::from("x".repeat(2001))).contains("at most 2000"));
    }

    #[test]
    fn an_over_long_health_report_is_a_permanent_error_of_the_driver() {
        let driver = DriverInfo {
            name: "disk".to_owned(),
            version: "1.0.0".parse().unwrap(),
            cluster_types: Vec::new(),
            beta: false,
            capabilities: Default::default(),
            master_size: Default::default(),
            api: Default::default(),
        };
        let report = HealthReport {
            status: magnum_common::model::HealthStatus::Unhealthy,
            reasons: [("api".to_owned(), "x".repeat(JSON))].into_iter().collect(),
        };
        let error = accept_health(&driver, Ok(report)).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "driver disk 1.0.0 returned a report that cannot be recorded: health_status_reason takes"
            ),
            "{error}"
        );
    }
}
