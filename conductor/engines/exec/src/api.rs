//! The call `api`: a driver's own API, replied to by its program.
//!
//! One process for one call, as for everything else; nothing is tried again. Its result is a reply and no report: it
//! changes no row.

use magnum_driver_api::{ApiCall, ApiReply, ApiStatus, DriverError, NoProgress, Reason};
use magnum_drivers::api_exchange::NODES;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::protocol::{self, FromResult, PROTOCOL};
use super::{ExecDriver, OneCall};

/// The word of the call.
const API: &str = "api";

impl ExecDriver {
    /// Has the program reply to a call of the driver's own API.
    pub(super) async fn reply(&self, about: &ApiCall<'_>) -> Result<ApiReply, DriverError> {
        let asks_for_nodes = about.path == NODES && self.info.capabilities.node_names;
        if self.info.api.is_empty() && !asks_for_nodes {
            return Err(DriverError::NotSupported(Reason::open(format!(
                "driver {} has no API of its own",
                self.info
            ))));
        }
        // Dropped after the program has ended, however that comes about.
        let ca_files = match self.ca_material(about.cluster, &about.cancel).await? {
            Some(material) => Some(self.write_ca_files(material).await?),
            None => None,
        };
        let mut environment = self.environment([
            ("MAGNUM_CALL", API),
            ("MAGNUM_CLUSTER_UUID", about.cluster.uuid.as_str()),
        ]);
        if let Some(operation) = about.operation {
            environment.push(("MAGNUM_OPERATION_ID".to_owned(), operation.as_str().into()));
        }
        if let Some(files) = &ca_files {
            environment.push(("MAGNUM_CA_DIR".to_owned(), files.directory().into()));
        }
        let call = OneCall {
            environment,
            request: request(about, &self.settings),
            // Whoever calls keeps the call's own time, by cancelling it.
            limit: self.spec.timeout,
            cancel: &about.cancel,
            progress: &NoProgress,
            context: about.context,
        };
        self.one(call).await
    }
}

fn request(about: &ApiCall<'_>, settings: &Map<String, Value>) -> Value {
    json!({
        "protocol": PROTOCOL,
        "call": API,
        "operation": about.operation.map(|operation| operation.as_str()),
        "seconds_left": about.time_left.as_secs(),
        "settings": settings,
        "path": about.path,
        "method": about.method.as_str(),
        "query": about.query,
        "body": about.body,
        "cluster": protocol::cluster(about.cluster),
        "node_groups": about.node_groups.iter().map(protocol::node_group).collect::<Vec<_>>(),
        "template": protocol::template(about.template),
        "context": protocol::context(about.context),
    })
}

/// The result: `{"status": 200, "body": …}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyLine {
    #[serde(deserialize_with = "status")]
    status: ApiStatus,
    #[serde(default)]
    body: Value,
}

fn status<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ApiStatus, D::Error> {
    let code = u16::deserialize(deserializer)?;
    ApiStatus::of(code).ok_or_else(|| {
        let known: Vec<String> = ApiStatus::ALL
            .iter()
            .map(|status| status.code().to_string())
            .collect();
        Error::custom(format!("status {code} is none of {}", known.join(", ")))
    })
}

impl From<ReplyLine> for ApiReply {
    fn from(line: ReplyLine) -> Self {
        Self {
            status: line.status,
            body: line.body,
        }
    }
}

impl FromResult for ApiReply {
    type Line = ReplyLine;
}

#[cfg(test)]
mod tests {
    use super::*;

    type OutputLine = protocol::OutputLine<ApiReply>;

    #[test]
    fn a_result_is_a_status_with_any_json() {
        let reply = |line: &str| OutputLine::read(line).unwrap();
        assert_eq!(
            reply(r#"{"result": {"status": 200, "body": {"nodes": [1]}}}"#),
            OutputLine::Ended(Ok(ApiReply {
                status: ApiStatus::Ok,
                body: json!({"nodes": [1]})
            }))
        );
        assert_eq!(
            reply(r#"{"result": {"status": 204}}"#),
            OutputLine::Ended(Ok(ApiReply {
                status: ApiStatus::NoContent,
                body: Value::Null
            }))
        );
        assert_eq!(
            reply(r#"{"error": "away", "class": "transient"}"#),
            OutputLine::Ended(Err(DriverError::Transient("away".into())))
        );
    }

    #[test]
    fn a_mistake_in_a_reply_is_named() {
        for (line, words) in [
            (r#"{"result": {}}"#, "missing field `status`"),
            (
                r#"{"result": {"status": 500}}"#,
                "status 500 is none of 200, 202, 204",
            ),
            (
                r#"{"result": {"status": 200, "headers": {}}}"#,
                "unknown field `headers`",
            ),
            (r#"{"result": {"cluster": {}}}"#, "unknown field `cluster`"),
            (
                r#"{"result": {"status": 200}, "class": "permanent"}"#,
                "a line holds either",
            ),
            ("hello", "expected"),
        ] {
            let reason = OutputLine::read(line).unwrap_err();
            assert!(reason.contains(words), "{line}: {reason}");
        }
    }
}
