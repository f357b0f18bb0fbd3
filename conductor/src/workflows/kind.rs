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
}

impl OperationKind {
    /// Every kind.
    pub const ALL: &[Self] = &[Self::ClusterCreate, Self::ClusterUpdate, Self::ClusterDelete];

    /// The text in the journal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClusterCreate => "cluster_create",
            Self::ClusterUpdate => "cluster_update",
            Self::ClusterDelete => "cluster_delete",
        }
    }

    /// The first word of the statuses this kind writes.
    pub const fn action(self) -> Action {
        match self {
            Self::ClusterCreate => Action::Create,
            Self::ClusterUpdate => Action::Update,
            Self::ClusterDelete => Action::Delete,
        }
    }

    /// The cluster's status with this kind's action and `outcome`.
    pub const fn status(self, outcome: Outcome) -> ClusterStatus {
        ClusterStatus::of(self.action(), outcome)
    }

    /// Whether this kind supersedes what goes on at the cluster instead of waiting for it.
    pub const fn supersedes(self) -> bool {
        matches!(self, Self::ClusterDelete)
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
