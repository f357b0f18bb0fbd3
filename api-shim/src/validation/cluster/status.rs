//! In which statuses of a cluster a change may be asked for: those in which a conductor would begin it, or let it
//! wait for its turn. A refusal is a 409.
//!
//! Not here: upgrades and rotations. Their callers wait for the driver, and the conductor's refusal is a 400.

use magnum_common::error::{Exception, Fault};
use magnum_common::model::ClusterStatus;

/// What is asked for without waiting for the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Change {
    Update,
    Resize,
    NodeGroupCreate,
    NodeGroupUpdate,
    NodeGroupDelete,
    Rebuild,
    Reboot,
}

impl Change {
    const fn doing(self) -> &'static str {
        match self {
            Self::Update => "Updating a cluster",
            Self::Resize => "Resizing a cluster",
            Self::NodeGroupCreate => "Creating a nodegroup of a cluster",
            Self::NodeGroupUpdate => "Updating a nodegroup of a cluster",
            Self::NodeGroupDelete => "Deleting a nodegroup of a cluster",
            Self::Rebuild => "Rebuilding nodes of a cluster",
            Self::Reboot => "Rebooting nodes of a cluster",
        }
    }
}

/// Whether `change` may be asked of a cluster in `status`.
///
/// # Errors
/// 409 that names the status.
pub fn check(change: Change, status: Option<ClusterStatus>) -> Result<(), Fault> {
    use ClusterStatus::{DeleteComplete, DeleteInProgress, UpdateFailed, UpdateInProgress};

    let complete = status.is_some_and(|status| ClusterStatus::COMPLETE.contains(&status));
    let may = match change {
        Change::Update => complete,
        Change::Resize | Change::Rebuild | Change::Reboot => {
            complete || matches!(status, Some(UpdateFailed | UpdateInProgress))
        }
        Change::NodeGroupCreate | Change::NodeGroupUpdate | Change::NodeGroupDelete => {
            !matches!(status, Some(DeleteInProgress | DeleteComplete))
        }
    };
    if may {
        return Ok(());
    }
    Err(Fault::new(
        Exception::Conflict,
        format!(
            "{} when status is \"{}\" is not supported.",
            change.doing(),
            status.map_or("None", ClusterStatus::as_str)
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(change: Change, status: ClusterStatus) -> bool {
        match check(change, Some(status)) {
            Ok(()) => true,
            Err(fault) => {
                assert_eq!(fault.code(), 409);
                assert!(fault.message.contains(status.as_str()), "{}", fault.message);
                false
            }
        }
    }

    #[test]
    fn only_a_cluster_at_rest_can_be_updated() {
        assert!(allowed(Change::Update, ClusterStatus::UpdateComplete));
        for status in [
            ClusterStatus::CreateInProgress,
            ClusterStatus::UpdateFailed,
            ClusterStatus::DeleteComplete,
        ] {
            assert!(!allowed(Change::Update, status), "{status}");
        }
        assert!(check(Change::Update, None).is_err());
    }

    #[test]
    fn a_resize_may_follow_an_update_whatever_became_of_it() {
        for status in [
            ClusterStatus::CreateComplete,
            ClusterStatus::UpdateFailed,
            ClusterStatus::UpdateInProgress,
        ] {
            assert!(allowed(Change::Resize, status), "{status}");
        }
        assert!(!allowed(Change::Resize, ClusterStatus::CreateFailed));
    }

    #[test]
    fn nodes_are_rebuilt_and_rebooted_once_a_cluster_is_built_and_until_it_goes() {
        for change in [Change::Rebuild, Change::Reboot] {
            assert!(allowed(change, ClusterStatus::CreateComplete));
            assert!(allowed(change, ClusterStatus::UpdateFailed));
            assert!(allowed(change, ClusterStatus::UpdateInProgress));
            for status in [
                ClusterStatus::CreateInProgress,
                ClusterStatus::CreateFailed,
                ClusterStatus::DeleteInProgress,
                ClusterStatus::DeleteFailed,
            ] {
                assert!(!allowed(change, status), "{status}");
            }
        }
    }

    #[test]
    fn node_groups_come_and_go_until_the_cluster_does() {
        for change in [
            Change::NodeGroupCreate,
            Change::NodeGroupUpdate,
            Change::NodeGroupDelete,
        ] {
            assert!(allowed(change, ClusterStatus::CreateFailed));
            assert!(!allowed(change, ClusterStatus::DeleteInProgress));
        }
    }
}
