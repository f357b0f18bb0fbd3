//! The call `scale`: which nodes go when a group shrinks and the request names none.

use magnum_driver_api::{DriverCall, Shrinking};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::protocol::{self, FromResult};

/// The word of the call.
pub const SCALE: &str = "scale";

/// The request: that of the resize, but for the word, and with the number of nodes that go.
pub fn request(about: &DriverCall<'_>, shrinking: Shrinking<'_>, settings: &Map<String, Value>) -> Value {
    let mut request = protocol::request(about, settings);
    if let Some(fields) = request.as_object_mut() {
        fields.remove("nodes_to_remove");
    }
    request["call"] = json!(SCALE);
    request["node_group"] = json!(shrinking.node_group.as_str());
    request["node_count"] = json!(shrinking.to);
    request["surplus"] = json!(shrinking.surplus());
    request
}

/// The result: `{"nodes": ["…"]}`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodesLine {
    nodes: Vec<String>,
}

impl From<NodesLine> for Vec<String> {
    fn from(line: NodesLine) -> Self {
        line.nodes
    }
}

impl FromResult for Vec<String> {
    type Line = NodesLine;
}

#[cfg(test)]
mod tests {
    use magnum_driver_api::DriverError;

    use super::*;

    type OutputLine = protocol::OutputLine<Vec<String>>;

    #[test]
    fn a_choice_is_a_list_of_names() {
        let some = OutputLine::read(r#"{"result": {"nodes": ["b", "a"]}}"#).unwrap();
        assert_eq!(some, OutputLine::Ended(Ok(vec!["b".into(), "a".into()])));
        let none = OutputLine::read(r#"{"result": {"nodes": []}}"#).unwrap();
        assert_eq!(none, OutputLine::Ended(Ok(Vec::new())));
        let failed = OutputLine::read(r#"{"error": "the cloud is busy", "class": "transient"}"#).unwrap();
        let busy = DriverError::Transient("the cloud is busy".into());
        assert_eq!(failed, OutputLine::Ended(Err(busy)));
    }

    #[test]
    fn a_mistake_in_a_choice_is_named() {
        for (line, word) in [
            (r#"{"result": {}}"#, "missing field `nodes`"),
            (r#"{"result": {"nodes": [1]}}"#, "invalid type: integer `1`"),
            (r#"{"result": {"nodes": [], "why": "x"}}"#, "unknown field `why`"),
            (r#"{"result": {"cluster": {}}}"#, "unknown field `cluster`"),
        ] {
            let reason = OutputLine::read(line).unwrap_err();
            assert!(reason.contains(word), "{line}: {reason}");
        }
    }
}
