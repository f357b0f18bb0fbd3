//! What the rows can hold of a driver's report.
//!
//! A report is taken whole or not at all. One that a column does not take could not be recorded, and the call
//! would be repeated in vain; so it is a mistake of the driver, told by the field. The texts that are made for
//! people (`status_reason`) are cut by the rows instead, and are not looked at here.

use magnum_db::rows::json::to_text;
use serde::Serialize;

use crate::drivers::DriverReport;

/// Characters in most text columns.
const TEXT: usize = 255;
/// Characters in a node group's `version`.
const VERSION: usize = 20;
/// Bytes in a column that holds a list or a dictionary as JSON, on the database with the smallest one.
const JSON: usize = 65_535;

/// The first field that cannot be recorded, with the reason.
pub fn check(report: &DriverReport) -> Result<(), String> {
    let cluster = &report.cluster;
    for (name, value) in [
        ("stack_id", &cluster.stack_id),
        ("api_address", &cluster.api_address),
        ("coe_version", &cluster.coe_version),
        ("container_version", &cluster.container_version),
        ("discovery_url", &cluster.discovery_url),
    ] {
        text(value, TEXT).map_err(|reason| format!("cluster.{name} {reason}"))?;
    }
    json(&cluster.health_status_reason).map_err(|reason| format!("cluster.health_status_reason {reason}"))?;
    for (number, group) in report.node_groups.iter().enumerate() {
        let told = |name: &str, reason: String| format!("node_groups[{number}].{name} {reason}");
        for (name, value, most) in [
            ("stack_id", &group.stack_id, TEXT),
            ("image_id", &group.image_id, TEXT),
            ("version", &group.version, VERSION),
        ] {
            text(value, most).map_err(|reason| told(name, reason))?;
        }
        json(&group.node_addresses).map_err(|reason| told("node_addresses", reason))?;
        if let Some(count) = group.node_count.filter(|count| *count < 0) {
            return Err(told("node_count", format!("must not be negative, it is {count}")));
        }
    }
    Ok(())
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

fn json(value: &Option<impl Serialize>) -> Result<(), String> {
    let bytes = value.as_ref().map_or(0, |value| to_text(value).len());
    if bytes > JSON {
        return Err(format!("takes {bytes} bytes as JSON; its column holds {JSON}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drivers::NodeGroupChanges;

    fn reason(change: impl FnOnce(&mut DriverReport, &mut NodeGroupChanges)) -> String {
        let mut report = DriverReport::default();
        let mut group = NodeGroupChanges::of("g".into());
        change(&mut report, &mut group);
        report.node_groups = vec![group];
        check(&report).err().unwrap_or_default()
    }

    #[test]
    fn what_no_row_can_hold_is_told_by_its_field() {
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
        assert!(reason(|_, group| group.node_addresses = Some(many)).contains("node_addresses takes"));
    }

    #[test]
    fn what_fits_and_what_is_cut_later_is_taken() {
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
}
