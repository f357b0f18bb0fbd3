//! The kinds of operations and what each means for a cluster's status.

use std::fmt;
use std::str::FromStr;

use magnum_common::model::status::UnknownText;
use magnum_common::model::{Action, ClusterStatus, Outcome};

/// What an accepted request asks for. The texts are the RPC methods' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the methods'")]
pub enum OperationKind {
    ClusterCreate,
    ClusterUpdate,
    ClusterDelete,
    ClusterResize,
    ClusterUpgrade,
    NodegroupCreate,
    NodegroupUpdate,
    NodegroupDelete,
    RotateCaCertificate,
    CredentialRotate,
}

impl OperationKind {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::ClusterCreate,
        Self::ClusterUpdate,
        Self::ClusterDelete,
        Self::ClusterResize,
        Self::ClusterUpgrade,
        Self::NodegroupCreate,
        Self::NodegroupUpdate,
        Self::NodegroupDelete,
        Self::RotateCaCertificate,
        Self::CredentialRotate,
    ];

    /// The text in the journal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterCreate => "cluster_create",
            Self::ClusterUpdate => "cluster_update",
            Self::ClusterDelete => "cluster_delete",
            Self::ClusterResize => "cluster_resize",
            Self::ClusterUpgrade => "cluster_upgrade",
            Self::NodegroupCreate => "nodegroup_create",
            Self::NodegroupUpdate => "nodegroup_update",
            Self::NodegroupDelete => "nodegroup_delete",
            Self::RotateCaCertificate => "rotate_ca_certificate",
            Self::CredentialRotate => "credential_rotate",
        }
    }

    /// The first word of the statuses this kind writes to the cluster.
    pub const fn action(self) -> Action {
        match self {
            Self::ClusterCreate => Action::Create,
            Self::ClusterDelete => Action::Delete,
            Self::ClusterUpdate
            | Self::ClusterResize
            | Self::ClusterUpgrade
            | Self::NodegroupCreate
            | Self::NodegroupUpdate
            | Self::NodegroupDelete
            | Self::RotateCaCertificate
            | Self::CredentialRotate => Action::Update,
        }
    }

    /// The cluster's status with this kind's action and `outcome`.
    pub const fn status(self, outcome: Outcome) -> ClusterStatus {
        ClusterStatus::of(self.action(), outcome)
    }

    /// Whether the cluster is in progress while this is done. A new credential leaves its status alone, unless
    /// the driver reports one.
    pub const fn moves_status(self) -> bool {
        !matches!(self, Self::CredentialRotate)
    }

    /// Whether a driver that cannot do it leaves no trace: the status is put back and the caller gets the
    /// exception. These are calls; of the others, which are casts, the status has to tell.
    pub const fn is_put_back_when_unsupported(self) -> bool {
        matches!(self, Self::ClusterUpgrade | Self::RotateCaCertificate)
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OperationKind {
    type Err = UnknownText;

    fn from_str(text: &str) -> Result<Self, UnknownText> {
        Self::ALL
            .iter()
            .find(|kind| kind.as_str() == text)
            .copied()
            .ok_or_else(|| UnknownText {
                kind: "OperationKind",
                text: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_reads_back_and_fits_its_column() {
        for kind in OperationKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(*kind));
            assert!(kind.as_str().len() <= 32);
        }
        assert!("cluster_paint".parse::<OperationKind>().is_err());
    }
}
