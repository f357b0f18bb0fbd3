//! What a caller gets, as the journal keeps it.
//!
//! The answer of a call is stored in the transaction that decides it. A crash between that and the reply loses
//! nothing, and a repeated delivery of the call is answered again instead of executed again.

use std::time::Duration;

use indexmap::IndexMap;
use magnum_common::error::{Exception, Fault};
use magnum_rpc::{ReplyAddress, WireFormat};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a call, or the exception it raises.
pub type Reply = Result<Value, Fault>;

/// An answer in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReply(Vec<u8>);

/// Who waits for an answer, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    queue: String,
    msg_id: String,
    format: WireFormat,
    // Absent in what older releases wrote.
    #[serde(default)]
    monitor_ms: Option<u64>,
}

impl Caller {
    /// The caller at `address`, who wants signs of life twice in each `monitor`, if at all.
    pub fn new(address: &ReplyAddress, monitor: Option<Duration>) -> Self {
        Self {
            queue: address.queue.clone(),
            msg_id: address.msg_id.clone(),
            format: address.format,
            monitor_ms: monitor.map(|monitor| u64::try_from(monitor.as_millis()).unwrap_or(u64::MAX)),
        }
    }

    /// Where the answer goes.
    pub fn address(&self) -> ReplyAddress {
        ReplyAddress {
            queue: self.queue.clone(),
            msg_id: self.msg_id.clone(),
            format: self.format,
        }
    }

    /// After how long without a sign of life the caller gives up; `None` if it wants none.
    pub fn monitor(&self) -> Option<Duration> {
        self.monitor_ms.map(Duration::from_millis)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stored {
    Result(Value),
    Failure(StoredFault),
}

#[derive(Serialize, Deserialize)]
struct StoredFault {
    exception: String,
    message: String,
    #[serde(default)]
    kwargs: IndexMap<String, Value>,
}

/// A stored answer that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the stored answer cannot be read: {0}")]
pub struct UnreadableReply(#[from] rmp_serde::decode::Error);

impl StoredReply {
    /// The form in which a reply is stored.
    ///
    /// # Errors
    /// A value that MessagePack cannot hold; replies are JSON, so there is none.
    pub fn new(answer: &Reply) -> Result<Self, rmp_serde::encode::Error> {
        let stored = match answer {
            Ok(value) => Stored::Result(value.clone()),
            Err(fault) => Stored::Failure(StoredFault {
                exception: fault.exception.name().to_owned(),
                message: fault.message.clone(),
                kwargs: fault.kwargs.clone(),
            }),
        };
        rmp_serde::to_vec_named(&stored).map(Self)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, owned.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Reads a stored answer. An exception class of a newer release becomes its plain base class.
    ///
    /// # Errors
    /// See [`UnreadableReply`].
    pub fn read(bytes: &[u8]) -> Result<Reply, UnreadableReply> {
        Ok(match rmp_serde::from_slice(bytes)? {
            Stored::Result(value) => Ok(value),
            Stored::Failure(stored) => Err(Fault {
                exception: Exception::ALL
                    .iter()
                    .find(|exception| exception.name() == stored.exception)
                    .copied()
                    .unwrap_or(Exception::MagnumException),
                message: stored.message,
                kwargs: stored.kwargs,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_survive_the_journal() {
        let mut fault = Fault::cluster_not_found("c");
        fault.kwargs.insert("objname".into(), json!("Cluster"));
        for answer in [
            Ok(Value::Null),
            Ok(
                json!({"magnum_object.data": {"id": 1, "name": "ü", "f": 1.5}, "magnum_object.changes": ["status"]}),
            ),
            Err(fault),
        ] {
            let recorded = StoredReply::new(&answer).unwrap();
            assert_eq!(StoredReply::read(recorded.bytes()).unwrap(), answer);
        }
        assert!(StoredReply::read(b"\xc1").is_err());
    }

    #[test]
    fn callers_survive_the_journal_those_of_older_releases_too() {
        let address = ReplyAddress {
            queue: "reply_1".into(),
            msg_id: "m".into(),
            format: WireFormat::MessagePack,
        };
        let caller = Caller::new(&address, Some(Duration::from_secs(4)));
        let bytes = rmp_serde::to_vec_named(&caller).unwrap();
        let read: Caller = rmp_serde::from_slice(&bytes).unwrap();
        assert_eq!(
            (read.address(), read.monitor()),
            (address.clone(), Some(Duration::from_secs(4)))
        );

        let older = rmp_serde::to_vec_named(&address).unwrap();
        let read: Caller = rmp_serde::from_slice(&older).unwrap();
        assert_eq!((read.address(), read.monitor()), (address, None));
        // And an older conductor reads ours.
        assert_eq!(
            rmp_serde::from_slice::<ReplyAddress>(&bytes).unwrap(),
            read.address()
        );
    }
}
