//! The call `api`: a driver's own API, replied to by its program.
//!
//! One process for one call, as for everything else; nothing is tried again. Its result is a reply and no report: it
//! changes no row.

use magnum_driver_api::{ApiCall, ApiReply, ApiStatus, DriverError, NoProgress};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::heard::Heard;
use super::outcome::{Ended, quote};
use super::process::{End, Listener};
use super::protocol::{self, Class, PROTOCOL, error_of};
use super::{ExecDriver, token};

/// The word of the call.
const API: &str = "api";

impl ExecDriver {
    /// Has the program reply to a call of the driver's own API.
    pub(super) async fn reply(&self, about: &ApiCall<'_>) -> Result<ApiReply, DriverError> {
        if self.info.api.is_empty() {
            return Err(DriverError::NotSupported(format!(
                "driver {} has no API of its own",
                self.info
            )));
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
        let mut heard = HeardReply {
            heard: Heard::new(&NoProgress, [token(about.context)]),
            reply: None,
        };
        // Whoever calls keeps the call's own time, by cancelling it.
        let limit = self.spec.timeout;
        let run = self.run(environment, request(about, &self.settings), limit, &about.cancel);
        let end = run.listen(&mut heard).await.map_err(|error| {
            DriverError::Transient(format!("cannot start a guard for {}: {error}", self.who))
        })?;
        let ended = Ended {
            end: &end,
            who: &self.who,
            last_complaint: heard.heard.last_complaint.as_deref(),
            limit,
        };
        match (ended.check(), heard.reply) {
            (Err(DriverError::Cancelled), _) => Err(DriverError::Cancelled),
            // An error that the program has named counts more than the way it ended.
            (Err(_), Some(Err(said))) => Err(said),
            (Err(error), _) => Err(error),
            (Ok(()), Some(reply)) => reply,
            (Ok(()), None) => Err(Ended {
                end: &End::Exited(0),
                ..ended
            }
            .silent()),
        }
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

/// What the program said so far.
struct HeardReply<'a> {
    heard: Heard<'a>,
    reply: Option<Result<ApiReply, DriverError>>,
}

impl Listener for HeardReply<'_> {
    fn answer(&mut self, line: &str) -> Result<(), String> {
        let line = self.heard.clean(line);
        if line.trim().is_empty() {
            return Ok(());
        }
        match read(&line).map_err(|reason| format!("{} ({reason})", quote(&line)))? {
            None => Ok(()),
            Some(_) if self.reply.is_some() => Err(format!("{} (a second result or error)", quote(&line))),
            Some(reply) => {
                self.reply = Some(reply);
                Ok(())
            }
        }
    }

    fn complaint(&mut self, line: &str) {
        self.heard.complaint(line);
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    progress: Option<String>,
    percent: Option<f64>,
    result: Option<ReplyLine>,
    error: Option<String>,
    class: Option<Class>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyLine {
    status: u16,
    #[serde(default)]
    body: Value,
}

/// Reads a line; `None`: progress, which nobody waits for. The error is for the driver's author.
fn read(line: &str) -> Result<Option<Result<ApiReply, DriverError>>, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    match (line.progress, line.result, line.error) {
        (Some(_), None, None) if line.class.is_none() => Ok(None),
        (None, Some(reply), None) if line.class.is_none() && line.percent.is_none() => {
            let status = ApiStatus::of(reply.status).ok_or_else(|| {
                let known: Vec<String> = ApiStatus::ALL
                    .iter()
                    .map(|status| status.code().to_string())
                    .collect();
                format!("status {} is none of {}", reply.status, known.join(", "))
            })?;
            Ok(Some(Ok(ApiReply {
                status,
                body: reply.body,
            })))
        }
        (None, None, Some(error)) if line.percent.is_none() => Ok(Some(Err(error_of(error, line.class)))),
        _ => Err(
            "a line of an answer to api holds either progress, or result (with status and body), or error (and class)"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_a_status_with_any_json() {
        let reply = |line: &str| read(line).unwrap().unwrap();
        assert_eq!(
            reply(r#"{"result": {"status": 200, "body": {"nodes": [1]}}}"#),
            Ok(ApiReply {
                status: ApiStatus::Ok,
                body: json!({"nodes": [1]})
            })
        );
        assert_eq!(
            reply(r#"{"result": {"status": 204}}"#),
            Ok(ApiReply {
                status: ApiStatus::NoContent,
                body: Value::Null
            })
        );
        assert_eq!(
            reply(r#"{"error": "away", "class": "transient"}"#),
            Err(DriverError::Transient("away".into()))
        );
        assert_eq!(
            reply(r#"{"error": "no"}"#),
            Err(DriverError::Permanent("no".into()))
        );
        assert_eq!(read(r#"{"progress": "half", "percent": 50}"#), Ok(None));
    }

    #[test]
    fn other_lines_are_told_apart() {
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
                "either progress",
            ),
            ("hello", "expected"),
        ] {
            let told = read(line).unwrap_err();
            assert!(told.contains(words), "{line}: {told}");
        }
    }
}
