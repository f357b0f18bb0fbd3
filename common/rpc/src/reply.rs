//! Replies: results, failures, signs of life.
//!
//! All five keys are always present: a Python caller that misses `ending` waits until its timeout, one that
//! misses `failure` raises `KeyError`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::envelope;
use super::error::PublishError;
use super::failure::RemoteFailure;
use super::message::OutgoingMessage;
use super::options::RabbitOptions;
use super::request::ReplyAddress;
use super::target;
use magnum_common::error::Fault;
use magnum_common::ids::MessageId;

/// The inner reply as it stands on the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WireReply {
    /// The result; null on failure.
    #[serde(default)]
    pub result: Value,
    /// Null, or a string that holds JSON.
    #[serde(default, deserialize_with = "text_or_json")]
    pub failure: Option<String>,
    /// False in signs of life only. Absent reads as the end: there will be no other.
    #[serde(default = "yes")]
    pub ending: bool,
    /// The call it answers.
    #[serde(rename = "_msg_id", default)]
    pub msg_id: Option<String>,
    /// Fresh for each reply.
    #[serde(rename = "_unique_id", default)]
    pub unique_id: Option<MessageId>,
}

fn yes() -> bool {
    true
}

/// A failure that some peer wrote as an object is as good as its text.
fn text_or_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// The content of a reply message.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyContent {
    /// The server is still working: a heartbeat, not the end.
    Alive,
    /// The result of the call.
    Result(Value),
    /// The exception that the call raised.
    Failure(RemoteFailure),
}

impl WireReply {
    /// The reply to `address`.
    pub fn new(address: &ReplyAddress, outcome: Result<Value, &Fault>) -> Self {
        let (result, failure) = match outcome {
            Ok(result) => (result, None),
            Err(fault) => (Value::Null, Some(RemoteFailure::from(fault).to_json())),
        };
        Self {
            result,
            failure,
            ending: true,
            msg_id: Some(address.msg_id.clone()),
            unique_id: Some(MessageId::random()),
        }
    }

    /// A sign of life. Never send one to a caller that did not ask: it breaks that call.
    pub fn alive(address: &ReplyAddress) -> Self {
        Self {
            ending: false,
            ..Self::new(address, Ok(Value::Null))
        }
    }

    /// The content of the reply. An empty failure text is a success, as in the Python client.
    ///
    /// # Errors
    /// The failure is not the JSON of an exception.
    pub fn answer(self) -> Result<ReplyContent, serde_json::Error> {
        match self.failure {
            Some(text) if !text.is_empty() => RemoteFailure::from_json(&text).map(ReplyContent::Failure),
            _ if !self.ending && self.result.is_null() => Ok(ReplyContent::Alive),
            _ => Ok(ReplyContent::Result(self.result)),
        }
    }

    /// The message that carries the reply to `address`, in the format of the request.
    ///
    /// # Errors
    /// The result cannot be expressed in that format.
    pub fn into_message(
        self,
        address: &ReplyAddress,
        options: &RabbitOptions,
    ) -> Result<OutgoingMessage, PublishError> {
        let body = envelope::encode(&self, address.format)
            .map_err(|error| PublishError::Encode(error.to_string()))?;
        let route = target::direct(&address.queue);
        let mut message = OutgoingMessage::new(route, address.format, body);
        message.mandatory = options.direct_mandatory_flag;
        message.compressed(options.kombu_compression)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::wire_format::WireFormat;
    use super::*;
    use magnum_common::error::Exception;

    fn address() -> ReplyAddress {
        ReplyAddress {
            queue: "reply_1".into(),
            msg_id: "m".into(),
            format: WireFormat::Json,
        }
    }

    #[test]
    fn every_reply_has_all_five_keys() {
        for reply in [
            WireReply::new(&address(), Ok(json!(true))),
            WireReply::new(&address(), Err(&Fault::cluster_not_found("c"))),
            WireReply::alive(&address()),
        ] {
            let value = serde_json::to_value(&reply).unwrap();
            let keys: Vec<_> = value.as_object().unwrap().keys().cloned().collect();
            assert_eq!(keys, ["result", "failure", "ending", "_msg_id", "_unique_id"]);
        }
    }

    #[test]
    fn heartbeat_result_and_failure_are_distinguished() {
        let fault = Fault::cluster_not_found("c");
        let failure = WireReply::new(&address(), Err(&fault)).answer().unwrap();
        let ReplyContent::Failure(remote) = failure else {
            panic!("{failure:?}");
        };
        assert_eq!(remote.class, Exception::ClusterNotFound.name());
        assert_eq!(
            WireReply::alive(&address()).answer().unwrap(),
            ReplyContent::Alive
        );
        let done = WireReply::new(&address(), Ok(json!([1])));
        assert_eq!(done.answer().unwrap(), ReplyContent::Result(json!([1])));
    }

    #[test]
    fn a_sparse_reply_is_an_end_with_null() {
        let reply: WireReply = serde_json::from_value(json!({"_msg_id": "m", "failure": ""})).unwrap();
        assert_eq!(reply.answer().unwrap(), ReplyContent::Result(Value::Null));
    }

    #[test]
    fn a_failure_that_is_no_json_is_an_error() {
        let reply: WireReply = serde_json::from_value(json!({"failure": "oops"})).unwrap();
        assert!(reply.answer().is_err());
    }
}
