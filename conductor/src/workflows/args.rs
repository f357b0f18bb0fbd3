//! What an operation needs to know beyond the rows, as it lies in the journal.

use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::ClusterStatus;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{CertificateRefs, OperationKind, Work};

/// How the rows were before the operation started: the way back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// The cluster's status.
    #[serde(default, with = "status_text")]
    pub status: Option<ClusterStatus>,
    /// Its reason.
    #[serde(default)]
    pub status_reason: Option<String>,
    /// The status of the node group that the operation is about.
    #[serde(default, with = "status_text")]
    pub group_status: Option<ClusterStatus>,
    /// A node count that was changed.
    #[serde(default)]
    pub resized: Option<Resized>,
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

/// The arguments of an operation: what to do, and, once it has started, the way back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Args {
    /// What to do.
    pub work: Work,
    /// `None` while another operation of the cluster is in the way: then the rows do not show this one yet.
    #[serde(default)]
    pub started: Option<Started>,
    /// New certificates that are not the cluster's yet.
    #[serde(default)]
    pub certificates: Option<CertificateRefs>,
}

/// Arguments in the journal that this program cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the arguments of the operation cannot be read: {0}; was it written by a newer release?")]
pub struct UnreadableArgs(#[from] rmp_serde::decode::Error);

impl Args {
    /// The kind these arguments belong to.
    pub const fn kind(&self) -> OperationKind {
        self.work.kind()
    }

    /// A node count that the operation has changed.
    pub fn resized(&self) -> Option<&Resized> {
        self.started.as_ref()?.resized.as_ref()
    }

    /// The bytes for the journal.
    ///
    /// # Errors
    /// A value that MessagePack cannot hold; arguments come from JSON, so there is none.
    pub fn to_bytes(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        rmp_serde::to_vec_named(self)
    }

    /// Reads them back.
    ///
    /// # Errors
    /// See [`UnreadableArgs`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, UnreadableArgs> {
        Ok(rmp_serde::from_slice(bytes)?)
    }
}

impl<W: Into<Work>> From<W> for Args {
    fn from(work: W) -> Self {
        Self {
            work: work.into(),
            started: None,
            certificates: None,
        }
    }
}

/// Statuses by their texts. One that a newer release knows reads as none: it is not put back.
mod status_text {
    use super::{ClusterStatus, Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(
        status: &Option<ClusterStatus>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        status.map(ClusterStatus::as_str).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<ClusterStatus>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(text.and_then(|text| text.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::{ClusterDelete, ClusterResize};
    use super::*;

    #[test]
    fn arguments_survive_the_journal() {
        let started = Started {
            status: Some(ClusterStatus::UpdateFailed),
            status_reason: Some("no room".into()),
            group_status: None,
            resized: Some(Resized {
                node_group: "n-1".into(),
                from: 1,
                to: 3,
            }),
        };
        for (work, started) in [
            (
                Work::from(ClusterResize {
                    node_group: "n-1".into(),
                    node_count: 3,
                    nodes_to_remove: vec!["server-1".into()],
                }),
                Some(started),
            ),
            (ClusterDelete {}.into(), Some(Started::default())),
            (ClusterDelete {}.into(), None),
        ] {
            let args = Args {
                work,
                started,
                certificates: None,
            };
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
