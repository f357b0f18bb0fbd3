//! The inner request: method, arguments, ids, context.
//!
//! Reading is liberal where oslo.messaging is (absent `args`, unknown context keys, no `_unique_id`) and names
//! what it cannot use. A request whose parts are mistyped but that says where its reply goes is answered with
//! the exception a Python server would raise; see [`Malformed`].

use std::fmt;
use std::time::Duration;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::wire_format::WireFormat;
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::MessageId;

const CONTEXT_PREFIX: &str = "_context_";

/// The shortest call monitor a server honours; below it, oslo.messaging sends no heartbeats either.
const SHORTEST_MONITOR: u64 = 2;

/// Where a reply goes. Serialisable: the journal keeps it with the operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyAddress {
    /// The caller's reply queue.
    pub queue: String,
    /// The call it answers.
    pub msg_id: String,
    /// The format of the request, which the reply mirrors.
    pub format: WireFormat,
}

/// A request, decoded.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Arguments by name.
    pub args: Map<String, Value>,
    /// Context of the sender.
    pub context: RequestContext,
    /// The message's id, repeated by redeliveries and by a sender's retries. Absent from odd senders.
    pub unique_id: Option<MessageId>,
    /// Where the reply goes; none for a cast.
    pub reply: Option<ReplyAddress>,
    /// The caller wants a sign of life twice in each such interval.
    pub call_monitor: Option<Duration>,
    /// Namespace of the target; Magnum has none.
    pub namespace: Option<String>,
    /// Version of the target; absent means 1.0.
    pub version: Option<String>,
}

/// A request that cannot be dispatched, with what a caller should be told.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// What a Python server would raise.
    pub fault: Box<Fault>,
    /// Where to say so; none for a cast.
    pub reply: Option<ReplyAddress>,
}

/// A request as it stands on the wire, each part unchecked.
#[derive(Default)]
pub struct WireRequest {
    method: Option<Value>,
    args: Option<Value>,
    namespace: Option<Value>,
    version: Option<Value>,
    msg_id: Option<String>,
    reply_queue: Option<String>,
    timeout: Option<Value>,
    unique_id: Option<String>,
    context: RequestContext,
}

impl<'de> Deserialize<'de> for WireRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts;

        impl<'de> Visitor<'de> for Parts {
            type Value = WireRequest;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a request object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<WireRequest, A::Error> {
                let mut request = WireRequest::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "method" => request.method = Some(map.next_value()?),
                        "args" => request.args = Some(map.next_value()?),
                        "namespace" => request.namespace = Some(map.next_value()?),
                        "version" => request.version = Some(map.next_value()?),
                        "_msg_id" => request.msg_id = map.next_value()?,
                        "_reply_q" => request.reply_queue = map.next_value()?,
                        "_timeout" => request.timeout = Some(map.next_value()?),
                        "_unique_id" => request.unique_id = map.next_value()?,
                        other => match other.strip_prefix(CONTEXT_PREFIX) {
                            Some(name) => request.context.take_value(name, &mut map)?,
                            None => {
                                let IgnoredAny = map.next_value()?;
                            }
                        },
                    }
                }
                Ok(request)
            }
        }

        deserializer.deserialize_map(Parts)
    }
}

impl WireRequest {
    /// Checks the type of each part of a request.
    ///
    /// # Errors
    /// A part is missing or has the wrong type; the error names it.
    pub fn check(self, format: WireFormat) -> Result<Request, Malformed> {
        // oslo's own rule: a `_msg_id` without a queue could never be answered, so it is a cast.
        let reply = match (self.msg_id, self.reply_queue) {
            (Some(msg_id), Some(queue)) if !queue.is_empty() => Some(ReplyAddress {
                queue,
                msg_id,
                format,
            }),
            _ => None,
        };
        let refuse = |exception, message: String| Malformed {
            fault: Box::new(Fault::new(exception, message)),
            reply: reply.clone(),
        };
        let method = match self.method {
            Some(Value::String(method)) => method,
            None | Some(Value::Null) => {
                return Err(refuse(Exception::TypeError, "`method` is missing".to_owned()));
            }
            Some(other) => {
                return Err(refuse(
                    Exception::TypeError,
                    format!("`method` must be a string, not {}", kind(&other)),
                ));
            }
        };
        let args = match self.args {
            None => Map::new(),
            Some(Value::Object(args)) => args,
            Some(other) => {
                return Err(refuse(
                    Exception::AttributeError,
                    format!("`args` of {method} must be an object, not {}", kind(&other)),
                ));
            }
        };
        check_version(&method, self.namespace.as_ref(), self.version.as_ref()).map_err(|fault| {
            Malformed {
                fault: Box::new(fault),
                reply: reply.clone(),
            }
        })?;
        Ok(Request {
            method,
            args,
            context: self.context,
            unique_id: self.unique_id.map(MessageId::new),
            call_monitor: self.timeout.as_ref().and_then(monitor),
            reply,
            namespace: None,
            version: self
                .version
                .and_then(|version| version.as_str().map(str::to_owned)),
        })
    }
}

/// Magnum's endpoints have no target, so they implement version 1.0 in no namespace and nothing else.
fn check_version(method: &str, namespace: Option<&Value>, version: Option<&Value>) -> Result<(), Fault> {
    let wanted = match version {
        None => "1.0",
        Some(Value::String(text)) => text,
        Some(Value::Null) => "None",
        Some(other) => {
            let text = format!("`version` of {method} must be a string, not {}", kind(other));
            return Err(Fault::new(Exception::AttributeError, text));
        }
    };
    let in_namespace = matches!(namespace, Some(value) if !value.is_null());
    if wanted == "1.0" && !in_namespace {
        return Ok(());
    }
    Err(Fault::new(
        Exception::UnsupportedVersion,
        format!("Endpoint does not support RPC version {wanted}. Attempted method: {method}"),
    ))
}

/// `_timeout` as an interval. Bad values mean no heartbeats, not an error.
fn monitor(value: &Value) -> Option<Duration> {
    let seconds = match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }?;
    (SHORTEST_MONITOR..=86_400)
        .contains(&seconds)
        .then(|| Duration::from_secs(seconds))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

impl Serialize for Request {
    /// The wire form, in oslo's order.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", &self.method)?;
        map.serialize_entry("args", &self.args)?;
        if let Some(namespace) = &self.namespace {
            map.serialize_entry("namespace", namespace)?;
        }
        if let Some(version) = &self.version {
            map.serialize_entry("version", version)?;
        }
        if let Some(reply) = &self.reply {
            map.serialize_entry("_msg_id", &reply.msg_id)?;
            map.serialize_entry("_reply_q", &reply.queue)?;
            map.serialize_entry("_timeout", &self.call_monitor.map(|interval| interval.as_secs()))?;
        }
        if let Some(id) = &self.unique_id {
            map.serialize_entry("_unique_id", id)?;
        }
        let mut key = String::from(CONTEXT_PREFIX);
        for (name, value) in self.context.entries() {
            key.truncate(CONTEXT_PREFIX.len());
            key.push_str(name);
            map.serialize_entry(&key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(inner: Value) -> Result<Request, Malformed> {
        let wire: WireRequest = serde_json::from_value(inner).unwrap();
        wire.check(WireFormat::Json)
    }

    #[test]
    fn a_cast_needs_no_more_than_a_method() {
        let request = read(json!({"method": "ping"})).unwrap();
        assert_eq!(request.method, "ping");
        assert!(request.args.is_empty() && request.reply.is_none() && request.unique_id.is_none());
    }

    #[test]
    fn a_call_is_written_as_it_was_read() {
        let inner = json!({
            "method": "m", "args": {"a": null}, "version": "1.0", "_msg_id": "1", "_reply_q": "q",
            "_timeout": 4, "_unique_id": "u", "_context_user": "x", "_context_later_key": {"a": 1},
        });
        let request = read(inner.clone()).unwrap();
        assert_eq!(request.call_monitor, Some(Duration::from_secs(4)));
        assert_eq!(request.context.user_id(), Some("x"));
        assert_eq!(serde_json::to_value(&request).unwrap(), inner);
    }

    #[test]
    fn parts_of_the_wrong_type_become_the_exception_python_raises() {
        for (part, exception) in [
            (json!({"method": null}), Exception::TypeError),
            (json!({}), Exception::TypeError),
            (json!({"method": 5}), Exception::TypeError),
            (json!({"method": "m", "args": null}), Exception::AttributeError),
            (json!({"method": "m", "args": [1]}), Exception::AttributeError),
            (
                json!({"method": "m", "version": "1.1"}),
                Exception::UnsupportedVersion,
            ),
            (
                json!({"method": "m", "version": null}),
                Exception::UnsupportedVersion,
            ),
            (json!({"method": "m", "version": 1}), Exception::AttributeError),
            (
                json!({"method": "m", "namespace": "n"}),
                Exception::UnsupportedVersion,
            ),
        ] {
            let mut inner = part.clone();
            inner["_msg_id"] = "1".into();
            inner["_reply_q"] = "q".into();
            let malformed = read(inner).unwrap_err();
            assert_eq!(malformed.fault.exception, exception, "{part}");
            assert_eq!(malformed.reply.unwrap().queue, "q");
            assert_eq!(read(part).unwrap_err().reply, None);
        }
    }

    #[test]
    fn a_null_namespace_is_none() {
        assert!(read(json!({"method": "m", "namespace": null, "version": "1.0"})).is_ok());
    }

    #[test]
    fn a_message_id_without_a_queue_is_a_cast() {
        assert_eq!(read(json!({"method": "m", "_msg_id": "1"})).unwrap().reply, None);
        assert_eq!(
            read(json!({"method": "m", "_msg_id": "1", "_reply_q": ""}))
                .unwrap()
                .reply,
            None
        );
    }

    #[test]
    fn a_monitor_is_at_least_two_seconds() {
        for (timeout, expected) in [
            (json!(2), Some(2)),
            (json!("4"), Some(4)),
            (json!(1), None),
            (json!(null), None),
            (json!("soon"), None),
            (json!(-3), None),
        ] {
            let request = read(json!({"method": "m", "_timeout": timeout})).unwrap();
            assert_eq!(
                request.call_monitor,
                expected.map(Duration::from_secs),
                "{timeout}"
            );
        }
    }
}
