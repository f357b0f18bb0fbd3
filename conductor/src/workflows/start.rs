//! What the rows show once an operation has started, and the way back. Pure.
//!
//! An operation starts when it is accepted, unless another one of its cluster is in the way: then it starts when
//! its turn has come, from the rows as they are then. Either way what was there before goes into the journal in
//! the same transaction, so a failure puts back what this operation changed and nothing else.

use magnum_common::error::Fault;
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Cluster, ClusterStatus, NodeGroup, Outcome};

use super::Work;
use super::args::{Resized, Started};
use super::description::GroupStatuses;

/// Changes of rows. Each compares what the rows showed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start {
    /// The cluster's status, from and to; the reason is cleared.
    pub status: Option<(Option<ClusterStatus>, ClusterStatus)>,
    /// Whether all node groups get that status too.
    pub all_groups: bool,
    /// A node group's status; its reason is cleared.
    pub group: Option<(NodeGroupUuid, ClusterStatus)>,
    /// The way back, the change of a node count included.
    pub started: Started,
}

/// The start of `work`.
///
/// # Errors
/// The node group that it is about is not there any more.
pub fn start<'a>(
    work: &Work,
    cluster: &Cluster,
    groups: impl IntoIterator<Item = &'a NodeGroup>,
) -> Result<Start, Fault> {
    let (kind, request) = (work.kind(), work.workflow());
    let group = match request.node_group() {
        None => None,
        Some(uuid) => Some(
            groups
                .into_iter()
                .find(|group| group.uuid == *uuid)
                .ok_or_else(|| Fault::node_group_not_found(uuid.as_str()))?,
        ),
    };
    let mut start = Start {
        started: Started {
            status: cluster.status,
            status_reason: cluster.status_reason.clone(),
            group_status: group.and_then(|group| group.status),
            resized: None,
        },
        ..Start::default()
    };
    if kind.moves_status() {
        start.status = Some((cluster.status, kind.status(Outcome::InProgress)));
    }
    let group_status = match kind.description().group_statuses {
        GroupStatuses::OfGroup(action) => Some(ClusterStatus::of(action, Outcome::InProgress)),
        GroupStatuses::OfCluster | GroupStatuses::Unchanged => None,
    };
    start.all_groups = match kind.description().group_statuses {
        GroupStatuses::OfCluster => true,
        GroupStatuses::OfGroup(_) => group.is_none(),
        GroupStatuses::Unchanged => false,
    };
    start.group = group
        .zip(group_status)
        .map(|(group, status)| (group.uuid.clone(), status));
    start.started.resized = group.zip(request.node_count()).map(|(group, to)| Resized {
        node_group: group.uuid.clone(),
        from: group.node_count,
        to,
    });
    Ok(start)
}

#[cfg(test)]
mod tests {
    use magnum_common::error::Exception;

    use super::super::kinds::{
        ClusterDelete, ClusterResize, CredentialRotate, NodegroupCreate, NodegroupDelete, NodegroupUpdate,
    };
    use super::*;

    fn cluster(status: ClusterStatus) -> Cluster {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.status = Some(status);
        cluster.status_reason = Some("as it was".into());
        cluster
    }

    fn worker() -> NodeGroup {
        let mut worker = NodeGroup::new("w".into(), "default-worker", "c".into(), "p", "worker");
        worker.node_count = 2;
        worker.status = Some(ClusterStatus::CreateComplete);
        worker
    }

    #[test]
    fn a_resize_shows_the_new_count_and_keeps_the_old_one() {
        let resize = ClusterResize {
            node_group: "w".into(),
            node_count: 5,
            nodes_to_remove: Vec::new(),
        };
        let start = start(&resize.into(), &cluster(ClusterStatus::UpdateFailed), &[worker()]).unwrap();
        assert_eq!(
            start.status,
            Some((Some(ClusterStatus::UpdateFailed), ClusterStatus::UpdateInProgress))
        );
        assert_eq!(start.group, Some(("w".into(), ClusterStatus::UpdateInProgress)));
        assert_eq!(
            start.started,
            Started {
                status: Some(ClusterStatus::UpdateFailed),
                status_reason: Some("as it was".into()),
                group_status: Some(ClusterStatus::CreateComplete),
                resized: Some(Resized {
                    node_group: "w".into(),
                    from: 2,
                    to: 5
                }),
            }
        );
    }

    #[test]
    fn node_group_operations_mark_their_group_and_the_cluster() {
        for (work, status) in [
            (
                Work::from(NodegroupCreate {
                    node_group: "w".into(),
                }),
                ClusterStatus::CreateInProgress,
            ),
            (
                Work::from(NodegroupUpdate {
                    node_group: "w".into(),
                }),
                ClusterStatus::UpdateInProgress,
            ),
            (
                Work::from(NodegroupDelete {
                    node_group: "w".into(),
                }),
                ClusterStatus::DeleteInProgress,
            ),
        ] {
            let start = start(&work, &cluster(ClusterStatus::CreateComplete), &[worker()]).unwrap();
            assert_eq!(start.group, Some(("w".into(), status)));
            assert_eq!(
                start.status.map(|(_, to)| to),
                Some(ClusterStatus::UpdateInProgress)
            );
            assert!(!start.all_groups);
        }
    }

    #[test]
    fn a_delete_marks_everything_and_a_new_credential_nothing() {
        let complete = cluster(ClusterStatus::CreateComplete);
        let delete = start(&ClusterDelete {}.into(), &complete, &[worker()]).unwrap();
        assert!(delete.all_groups);
        let rotate = start(&CredentialRotate {}.into(), &complete, &[worker()]).unwrap();
        assert_eq!(
            (rotate.status, rotate.group, rotate.all_groups),
            (None, None, false)
        );
    }

    #[test]
    fn a_group_that_has_gone_meanwhile_is_not_found() {
        let work = NodegroupUpdate {
            node_group: "gone".into(),
        }
        .into();
        let fault = start(&work, &cluster(ClusterStatus::CreateComplete), &[worker()]).unwrap_err();
        assert_eq!(fault.exception, Exception::NodeGroupNotFound);
    }
}
