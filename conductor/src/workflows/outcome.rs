//! What a driver's report, or its failure, means for the rows. Pure.

use magnum_common::model::{Cluster, ClusterStatus, NodeGroup, Outcome};

use super::args::Resized;
use super::{Args, OperationKind};
use crate::drivers::DriverReport;

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

/// What to write when an operation ends as failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Consequences {
    /// The cluster's status to expect; another one means that something else went ahead.
    pub expected: ClusterStatus,
    /// The cluster's new status; node groups that are in progress get it too.
    pub status: ClusterStatus,
    /// The reason for both.
    pub reason: String,
    /// A node count to put back.
    pub restore: Option<Resized>,
}

/// The consequences of a failure.
pub fn failed(args: &Args, reason: &str) -> Consequences {
    let kind = args.kind();
    Consequences {
        expected: kind.status(Outcome::InProgress),
        status: kind.status(Outcome::Failed),
        reason: reason.to_owned(),
        restore: match args {
            Args::ClusterUpdate { resized, .. } => resized.clone(),
            Args::ClusterCreate { .. } | Args::ClusterDelete {} => None,
        },
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

    #[test]
    fn only_a_failed_resize_puts_a_count_back() {
        let resized = Resized {
            node_group: "n".into(),
            from: 1,
            to: 2,
        };
        let update = Args::ClusterUpdate {
            resized: Some(resized.clone()),
            rollback: false,
        };
        assert_eq!(failed(&update, "x").restore, Some(resized));
        assert_eq!(failed(&Args::ClusterDelete {}, "x").restore, None);
        assert_eq!(failed(&Args::ClusterDelete {}, "x").status, S::DeleteFailed);
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
