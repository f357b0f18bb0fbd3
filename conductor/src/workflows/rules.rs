//! In which statuses of a cluster an operation may begin. Pure.
//!
//! The sets are Magnum's, with two differences: nothing but a deletion begins on a cluster that is being deleted
//! (in Magnum a new node group makes it forget the deletion), and the status is that of the row, not the one that
//! the sender saw when it asked.

use magnum_common::error::Fault;
use magnum_common::model::ClusterStatus;

use super::OperationKind;

/// Whether an operation of this kind may begin on a cluster in `status`.
///
/// # Errors
/// `NotSupported`, in Magnum's words.
pub fn allowed(kind: OperationKind, status: Option<ClusterStatus>) -> Result<(), Fault> {
    let description = kind.description();
    if description.begins_in.contains(status) {
        return Ok(());
    }
    let shown = status.map_or("None", ClusterStatus::as_str);
    Err(Fault::not_supported(&format!(
        "{} when status is \"{shown}\"",
        description.refused_as
    )))
}

/// Whether a node group in `status` may be updated. One without a status may.
///
/// # Errors
/// `NotSupported`. Magnum's text shows the cluster's status instead of the group's.
pub fn group_allowed(status: Option<ClusterStatus>) -> Result<(), Fault> {
    match status {
        None | Some(ClusterStatus::UpdateFailed | ClusterStatus::UpdateInProgress) => Ok(()),
        Some(status) if ClusterStatus::COMPLETE.contains(&status) => Ok(()),
        Some(status) => Err(Fault::not_supported(&format!(
            "nodegroup_update when nodegroup status is \"{status}\""
        ))),
    }
}

#[cfg(test)]
mod tests {
    use ClusterStatus as S;
    use OperationKind as K;

    use super::*;

    /// The statuses in which a kind may not begin.
    fn refused(kind: K) -> Vec<S> {
        let all = ClusterStatus::ALL.iter().copied();
        all.filter(|status| allowed(kind, Some(*status)).is_err())
            .collect()
    }

    fn all_but(allowed: &[S]) -> Vec<S> {
        let all = ClusterStatus::ALL.iter().copied();
        all.filter(|status| !allowed.contains(status)).collect()
    }

    #[test]
    fn each_kind_begins_in_magnums_set_of_statuses() {
        let updating: Vec<S> = [S::COMPLETE, &[S::UpdateFailed, S::UpdateInProgress]].concat();
        for kind in [K::ClusterUpdate, K::ClusterUpgrade, K::RotateCaCertificate] {
            assert_eq!(refused(kind), all_but(S::COMPLETE), "{kind}");
        }
        for kind in [
            K::ClusterResize,
            K::CredentialRotate,
            K::ClusterRebuild,
            K::ClusterReboot,
        ] {
            assert_eq!(refused(kind), all_but(&updating), "{kind}");
        }
        for kind in [K::NodegroupCreate, K::NodegroupUpdate, K::NodegroupDelete] {
            assert_eq!(refused(kind), [S::DeleteInProgress, S::DeleteComplete], "{kind}");
        }
        assert_eq!(refused(K::ClusterDelete), []);
    }

    #[test]
    fn refusal_names_the_change_and_the_status() {
        let fault = allowed(K::ClusterUpdate, Some(S::CreateFailed)).unwrap_err();
        assert_eq!(
            fault.message,
            "Updating a cluster when status is \"CREATE_FAILED\" is not supported."
        );
        let fault = allowed(K::ClusterResize, None).unwrap_err();
        assert_eq!(
            fault.message,
            "Resizing a cluster when status is \"None\" is not supported."
        );
    }

    #[test]
    fn a_node_group_is_updated_unless_it_is_made_or_taken_away_or_that_failed() {
        assert_eq!(group_allowed(None), Ok(()));
        assert_eq!(group_allowed(Some(S::UpdateInProgress)), Ok(()));
        for status in [S::CreateInProgress, S::CreateFailed, S::DeleteInProgress] {
            let fault = group_allowed(Some(status)).unwrap_err();
            assert!(fault.message.contains(status.as_str()), "{fault}");
        }
    }
}
