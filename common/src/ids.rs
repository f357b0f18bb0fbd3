//! Identifiers as types, so that a cluster's uuid cannot be passed where an operation's is wanted.
//!
//! All of them are strings on every border (wire, rows, JSON), and are kept as the text that arrived: Magnum
//! compares uuids as plain strings.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Takes a text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The text, owned.
            pub fn into_string(self) -> String {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text)
            }
        }
    };
}

string_id! {
    /// A cluster's uuid, lower case with dashes.
    ClusterUuid
}
string_id! {
    /// A node group's uuid.
    NodeGroupUuid
}
string_id! {
    /// A cluster template's uuid.
    TemplateUuid
}
string_id! {
    /// Our id of one accepted request: a uuid, lower case with dashes.
    OperationId
}
string_id! {
    /// oslo's `_unique_id` of a message: 32 hex digits, fresh for each message, repeated by a redelivery.
    MessageId
}
string_id! {
    /// `req-<uuid>`: the id by which a person finds a request in the logs of every service.
    RequestId
}
string_id! {
    /// One conductor process: `<host>:<random>`. Owns leases; never reused after a restart.
    ConductorId
}

impl ClusterUuid {
    /// A new random uuid.
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }
}

impl NodeGroupUuid {
    /// A new random uuid.
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }
}

impl TemplateUuid {
    /// A new random uuid.
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }
}

impl OperationId {
    /// A new random id.
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string())
    }
}

impl MessageId {
    /// A new random id in oslo's form.
    pub fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string())
    }
}

impl RequestId {
    /// A new random id in oslo's form.
    pub fn random() -> Self {
        Self(format!("req-{}", Uuid::new_v4()))
    }
}

impl ConductorId {
    /// The id of this process on `host`.
    pub fn for_host(host: &str) -> Self {
        let random = Uuid::new_v4().simple().to_string();
        Self(format!("{host}:{}", &random[..12]))
    }
}

/// A claim's number: it only rises, and every fenced write compares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub i64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}
