//! What a caller gets, as the journal keeps it.
//!
//! The answer of a call is stored in the transaction that decides it. A crash between that and the reply loses
//! nothing, and a repeated delivery of the call is answered again instead of executed again.

use indexmap::IndexMap;
use magnum_common::error::{Exception, Fault};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a call, or the exception it raises.
pub type Answer = Result<Value, Fault>;

/// An answer in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded(Vec<u8>);

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
pub struct UnreadableAnswer(#[from] rmp_serde::decode::Error);

impl Recorded {
    /// Stores an answer.
    pub fn new(answer: &Answer) -> Result<Self, rmp_serde::encode::Error> {
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
    pub fn read(bytes: &[u8]) -> Result<Answer, UnreadableAnswer> {
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
            let recorded = Recorded::new(&answer).unwrap();
            assert_eq!(Recorded::read(recorded.bytes()).unwrap(), answer);
        }
        assert!(Recorded::read(b"\xc1").is_err());
    }
}
