//! What a driver's report, or its failure, means for the rows. Pure.

use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Cluster, ClusterStatus, NodeGroup, Outcome};
use magnum_driver_api::DriverReport;

use super::args::Resized;
use super::{Args, OperationKind};

/// How an operation stands after its driver call returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The cloud goes on working; the status sync will see the end.
    InProgress,
    /// Done.
    Complete,
    /// The driver reports a failed cluster.
    Failed(String),
}

/// Reads a report. A report without a status means that the work is done; so does any `*_COMPLETE`. A status of
/// another action (a driver that mixes them up) counts by its outcome only.
pub fn standing(report: &DriverReport) -> Standing {
    match report.cluster.status {
        None => Standing::Complete,
        Some(status) if status.is_in_progress() => Standing::InProgress,
        Some(status) if status.is_failed() => Standing::Failed(
            report
                .cluster
                .status_reason
                .clone()
                .unwrap_or_else(|| format!("The driver reported {status} without a reason.")),
        ),
        Some(_) => Standing::Complete,
    }
}

/// The cluster's status for how its operation stands.
pub fn status(kind: OperationKind, standing: &Standing) -> ClusterStatus {
    kind.status(match standing {
        Standing::InProgress => Outcome::InProgress,
        Standing::Complete => Outcome::Complete,
        Standing::Failed(_) => Outcome::Failed,
    })
}

/// What to write when an operation ends without having done what it was to do. For one that had not started, that is no more than
/// the end of a group that waited to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consequences {
    /// The cluster's status, from and to; another one there means that something else went ahead, and what is said of groups does
    /// not count.
    pub status: Option<(ClusterStatus, ClusterStatus)>,
    /// The reason for it, and for the groups that fail with the cluster.
    pub reason: Option<String>,
    /// Whether groups that are in progress end with the cluster.
    pub groups_too: bool,
    /// The status of the group that the operation was about.
    pub group: Option<(NodeGroupUuid, ClusterStatus)>,
    /// A node count to put back.
    pub restore: Option<Resized>,
}

/// The consequences of a failure: `*_FAILED` with the reason, and a changed node count as it was before (as Magnum
/// does), unless something else has changed it since. Other values of a node group stay as they were wanted.
pub fn failed(args: &Args, reason: &str) -> Consequences {
    let kind = args.kind();
    if args.started.is_none() {
        let Some(group) = args.work.new_group() else {
            return Consequences::default();
        };
        return Consequences {
            reason: Some(reason.to_owned()),
            groups_too: true,
            group: Some((group.clone(), ClusterStatus::CreateFailed)),
            ..Consequences::default()
        };
    }
    Consequences {
        status: kind
            .moves_status()
            .then(|| (kind.status(Outcome::InProgress), kind.status(Outcome::Failed))),
        reason: Some(reason.to_owned()),
        groups_too: true,
        // Groups that go are not in progress for the cluster.
        group: args
            .work
            .removed_group()
            .map(|group| (group.clone(), ClusterStatus::DeleteFailed)),
        restore: args.resized().cloned(),
    }
}

/// The consequences of something that the driver cannot do, when nobody but the caller is to notice: everything
/// as it was before.
pub fn put_back(args: &Args) -> Consequences {
    let Some(started) = &args.started else {
        return Consequences::default();
    };
    Consequences {
        status: started
            .status
            .map(|before| (args.kind().status(Outcome::InProgress), before)),
        reason: started.status_reason.clone(),
        groups_too: false,
        group: args
            .work
            .workflow()
            .node_group()
            .cloned()
            .zip(started.group_status),
        restore: started.resized.clone(),
    }
}

/// The cluster and its groups with a report on them, for the answer to a caller and for the driver's next step.
/// Groups without a stack of their own get the cluster's, as in Magnum.
pub fn applied(report: &DriverReport, cluster: &mut Cluster, groups: &mut [NodeGroup]) {
    report.cluster.apply(cluster);
    for group in groups.iter_mut() {
        if let Some(changes) = report
            .node_groups
            .iter()
            .find(|changes| changes.uuid == group.uuid)
        {
            changes.apply(group);
        }
        if group.stack_id.is_none() {
            group.stack_id.clone_from(&cluster.stack_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use magnum_common::model::ClusterStatus as S;

    use super::super::Work;
    use super::super::args::Started;
    use super::super::kinds::{
        ClusterDelete, ClusterResize, ClusterUpgrade, CredentialRotate, NodegroupCreate, NodegroupDelete,
    };
    use super::*;

    fn report(status: Option<S>, reason: Option<&str>) -> DriverReport {
        let mut report = DriverReport::default();
        report.cluster.status = status;
        report.cluster.status_reason = reason.map(str::to_owned);
        report
    }

    #[test]
    fn a_report_without_a_status_is_the_end() {
        assert_eq!(standing(&report(None, None)), Standing::Complete);
        assert_eq!(
            standing(&report(Some(S::UpdateInProgress), None)),
            Standing::InProgress
        );
    }

    #[test]
    fn a_failed_report_always_has_a_reason() {
        assert_eq!(
            standing(&report(Some(S::CreateFailed), Some("no quota"))),
            Standing::Failed("no quota".into())
        );
        let Standing::Failed(reason) = standing(&report(Some(S::CreateFailed), None)) else {
            panic!("failed is failed");
        };
        assert!(reason.contains("CREATE_FAILED"));
    }

    #[test]
    fn the_status_written_is_of_the_operations_own_action() {
        let standing = standing(&report(Some(S::CreateComplete), None));
        assert_eq!(status(OperationKind::ClusterUpdate, &standing), S::UpdateComplete);
    }

    fn started(work: impl Into<Work>) -> Args {
        let work = work.into();
        Args {
            started: Some(Started {
                status: Some(S::CreateComplete),
                status_reason: Some("as it was".into()),
                group_status: Some(S::CreateComplete),
                resized: matches!(work, Work::ClusterResize(_)).then(|| Resized {
                    node_group: "n".into(),
                    from: 1,
                    to: 2,
                }),
            }),
            ..Args::from(work)
        }
    }

    #[test]
    fn a_failed_resize_puts_its_count_back() {
        let resize = ClusterResize {
            node_group: "n".into(),
            node_count: 2,
            nodes_to_remove: Vec::new(),
        };
        let failed = failed(&started(resize.clone()), "no room");
        assert_eq!(failed.status, Some((S::UpdateInProgress, S::UpdateFailed)));
        assert_eq!(failed.restore.map(|resized| resized.from), Some(1));
        assert_eq!(super::failed(&resize.into(), "no room"), Consequences::default());
    }

    #[test]
    fn a_group_that_waited_to_be_made_fails_without_its_cluster() {
        let create = NodegroupCreate {
            node_group: "n".into(),
        };
        let failed = failed(&create.into(), "no driver");
        assert_eq!(failed.group, Some(("n".into(), S::CreateFailed)));
        assert_eq!(
            (failed.status, failed.reason),
            (None, Some("no driver".to_owned()))
        );
    }

    #[test]
    fn group_that_failed_to_delete_marks_itself_and_its_cluster() {
        let delete = NodegroupDelete {
            node_group: "n".into(),
        };
        let failed = failed(&started(delete), "stuck");
        assert_eq!(failed.group, Some(("n".into(), S::DeleteFailed)));
        assert_eq!(failed.status, Some((S::UpdateInProgress, S::UpdateFailed)));
    }

    #[test]
    fn an_upgrade_that_is_not_supported_leaves_no_trace() {
        let upgrade = ClusterUpgrade {
            template: "t-2".into(),
            node_group: "n".into(),
            max_batch_size: None,
            rollback: false,
        };
        let back = put_back(&started(upgrade));
        assert_eq!(back.status, Some((S::UpdateInProgress, S::CreateComplete)));
        assert_eq!(back.reason.as_deref(), Some("as it was"));
        assert_eq!(back.group, Some(("n".into(), S::CreateComplete)));
    }

    #[test]
    fn a_failed_rotation_of_the_credential_leaves_the_status_alone() {
        assert_eq!(failed(&started(CredentialRotate {}), "x").status, None);
        assert_eq!(
            failed(&started(ClusterDelete {}), "x").status,
            Some((S::DeleteInProgress, S::DeleteFailed))
        );
    }

    #[test]
    fn groups_get_the_clusters_stack() {
        let mut cluster = Cluster::new("c".into(), "t".into());
        let mut groups = vec![NodeGroup::new(
            "n".into(),
            "default-worker",
            "c".into(),
            "p",
            "worker",
        )];
        let mut report = report(Some(S::CreateInProgress), None);
        report.cluster.stack_id = Some("stack-1".into());
        applied(&report, &mut cluster, &mut groups);
        assert_eq!(cluster.stack_id.as_deref(), Some("stack-1"));
        assert_eq!(groups[0].stack_id.as_deref(), Some("stack-1"));
    }
}
