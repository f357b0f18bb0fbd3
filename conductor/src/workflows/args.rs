//! What an operation needs to know beyond the rows, as it lies in the journal.

use magnum_common::ids::NodeGroupUuid;
use serde::{Deserialize, Serialize};

use super::OperationKind;

/// The arguments of an operation. Payload of the journal: only ever add optional fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Args {
    /// Everything else is in the cluster's row.
    ClusterCreate {
        /// Minutes; `None` takes the default, 0 or less means no limit.
        create_timeout: Option<i32>,
    },
    /// The rows hold the wanted count already.
    ClusterUpdate {
        /// The worker group whose count was changed; `None` when only health was.
        resized: Option<Resized>,
        /// As the caller gave it; no driver of ours uses it.
        rollback: bool,
    },
    /// The rows say the rest.
    ClusterDelete {},
}

/// A changed node count and how to undo it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resized {
    /// The group.
    pub node_group: NodeGroupUuid,
    /// Its count before.
    pub from: i32,
    /// Its count wanted.
    pub to: i32,
}

/// Arguments in the journal that this program cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the arguments of the operation cannot be read: {0}; was it written by a newer release?")]
pub struct UnreadableArgs(#[from] rmp_serde::decode::Error);

impl Args {
    /// The kind these arguments belong to.
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::ClusterCreate { .. } => OperationKind::ClusterCreate,
            Self::ClusterUpdate { .. } => OperationKind::ClusterUpdate,
            Self::ClusterDelete {} => OperationKind::ClusterDelete,
        }
    }

    /// The bytes for the journal.
    pub fn to_bytes(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// Reads them back.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableArgs> {
        Ok(rmp_serde::from_slice(bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_survive_the_journal() {
        for args in [
            Args::ClusterCreate {
                create_timeout: Some(60),
            },
            Args::ClusterUpdate {
                resized: Some(Resized {
                    node_group: "n-1".into(),
                    from: 1,
                    to: 3,
                }),
                rollback: true,
            },
            Args::ClusterDelete {},
        ] {
            let bytes = args.to_bytes().unwrap();
            assert_eq!(Args::from_bytes(&bytes).unwrap(), args);
        }
    }

    #[test]
    fn foreign_bytes_are_an_error_and_not_a_panic() {
        assert!(Args::from_bytes(b"").is_err());
        assert!(Args::from_bytes(&[0x81, 0xa3, b'f', b'o', b'o', 0xc0]).is_err());
    }
}
