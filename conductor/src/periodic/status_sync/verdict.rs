//! Decides what the result of a status poll changes. Pure.

use std::time::Duration;

use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use magnum_driver_api::{DriverError, DriverReport};

/// What to do with one cluster after its poll.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nothing new.
    Unchanged,
    /// Something to write.
    Changed(Box<DriverReport>),
    /// The poll failed: the cluster stays unchanged, and is polled again after a pause. The reason is for the log.
    Failed(String),
}

impl Verdict {
    /// Judges the result for `cluster`; `None` when the driver omitted it.
    pub fn of(
        cluster: &Cluster,
        groups: &[NodeGroup],
        result: Option<Result<DriverReport, DriverError>>,
    ) -> Self {
        match result {
            None => Self::Failed("the driver said nothing about the cluster".to_owned()),
            Some(Err(error)) => Self::Failed(error.reason().whole().to_owned()),
            Some(Ok(report)) if contradicts_deletion(cluster.status, report.cluster.status) => {
                let shown = |status: Option<ClusterStatus>| status.map_or("None", ClusterStatus::as_str);
                Self::Failed(format!(
                    "the driver reports {} of a cluster that is {}",
                    shown(report.cluster.status),
                    shown(cluster.status)
                ))
            }
            Some(Ok(report)) if changes(cluster, groups, &report) => Self::Changed(Box::new(report)),
            Some(Ok(_)) => Self::Unchanged,
        }
    }

    /// The label value of metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Changed(_) => "changed",
            Self::Failed(_) => "failed",
        }
    }
}

/// Whether the driver reports a deletion that was not requested, or another status while one is in progress. Such a
/// report is not written: it would remove the rows of an existing cluster, or finish a deletion that did nothing.
fn contradicts_deletion(now: Option<ClusterStatus>, reported: Option<ClusterStatus>) -> bool {
    let deletes = |status: ClusterStatus| {
        matches!(
            status,
            ClusterStatus::DeleteInProgress | ClusterStatus::DeleteFailed | ClusterStatus::DeleteComplete
        )
    };
    matches!((now, reported), (Some(now), Some(reported)) if deletes(now) != deletes(reported))
}

fn changes(cluster: &Cluster, groups: &[NodeGroup], report: &DriverReport) -> bool {
    let mut after = cluster.clone();
    report.cluster.apply(&mut after);
    after != *cluster
        || report.node_groups.iter().any(|changes| {
            groups
                .iter()
                .find(|group| group.uuid == changes.uuid)
                .is_some_and(|group| {
                    let mut after = group.clone();
                    changes.apply(&mut after);
                    after != *group
                })
        })
}

/// The status to write: what the driver reports, else what is there.
pub fn status_after(now: ClusterStatus, report: &DriverReport) -> ClusterStatus {
    report.cluster.status.unwrap_or(now)
}

/// The pause before the next poll after `failures` failed ones: doubling, up to five minutes.
pub fn pause_after(failures: i32, interval: Duration) -> Duration {
    const LONGEST: Duration = Duration::from_secs(300);
    let doublings = u32::try_from(failures).unwrap_or(0).min(16);
    interval.saturating_mul(1 << doublings).min(LONGEST.max(interval))
}

#[cfg(test)]
mod tests {
    use super::*;
    use magnum_driver_api::NodeGroupChanges;

    fn cluster() -> Cluster {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.status = Some(ClusterStatus::CreateInProgress);
        cluster
    }

    #[test]
    fn repeated_report_changes_nothing() {
        let report = DriverReport::status(ClusterStatus::CreateInProgress);
        assert_eq!(Verdict::of(&cluster(), &[], Some(Ok(report))), Verdict::Unchanged);
        assert_eq!(
            Verdict::of(&cluster(), &[], Some(Ok(DriverReport::default()))),
            Verdict::Unchanged
        );
    }

    #[test]
    fn a_new_status_or_a_new_address_is_a_change() {
        let done = DriverReport::status(ClusterStatus::CreateComplete);
        assert!(matches!(
            Verdict::of(&cluster(), &[], Some(Ok(done))),
            Verdict::Changed(_)
        ));

        let group = NodeGroup::new("g".into(), "workers", "c".into(), "p", "worker");
        let mut changes = NodeGroupChanges::of("g".into());
        changes.node_addresses = Some(vec!["10.0.0.1".into()]);
        let report = DriverReport {
            node_groups: vec![changes],
            ..DriverReport::default()
        };
        let groups = [group];
        let result = Some(Ok(report.clone()));
        assert!(matches!(
            Verdict::of(&cluster(), &groups, result),
            Verdict::Changed(_)
        ));
        // A group that is not the cluster's any more.
        assert_eq!(Verdict::of(&cluster(), &[], Some(Ok(report))), Verdict::Unchanged);
    }

    #[test]
    fn an_error_leaves_the_cluster_alone_whatever_its_class() {
        for error in [
            DriverError::Permanent("x".into()),
            DriverError::NotSupported("x".into()),
            DriverError::Transient("x".into()),
        ] {
            assert_eq!(
                Verdict::of(&cluster(), &[], Some(Err(error))),
                Verdict::Failed("x".into())
            );
        }
        assert!(matches!(Verdict::of(&cluster(), &[], None), Verdict::Failed(_)));
    }

    #[test]
    fn report_that_starts_or_drops_a_deletion_is_rejected() {
        let judged = |now, reported| {
            let mut cluster = cluster();
            cluster.status = Some(now);
            Verdict::of(&cluster, &[], Some(Ok(DriverReport::status(reported))))
        };
        assert_eq!(
            judged(ClusterStatus::CreateInProgress, ClusterStatus::DeleteComplete),
            Verdict::Failed(
                "the driver reports DELETE_COMPLETE of a cluster that is CREATE_IN_PROGRESS".into()
            )
        );
        assert!(matches!(
            judged(ClusterStatus::DeleteInProgress, ClusterStatus::CreateComplete),
            Verdict::Failed(_)
        ));
        assert!(matches!(
            judged(ClusterStatus::DeleteInProgress, ClusterStatus::DeleteComplete),
            Verdict::Changed(_)
        ));
        assert!(matches!(
            judged(ClusterStatus::UpdateInProgress, ClusterStatus::RollbackComplete),
            Verdict::Changed(_)
        ));
    }

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let pause = |failures| pause_after(failures, Duration::from_secs(10)).as_secs();
        assert_eq!(
            [0, 1, 2, 3, 5, 100, -1].map(pause),
            [10, 20, 40, 80, 300, 300, 10]
        );
        assert_eq!(pause_after(3, Duration::from_secs(600)), Duration::from_secs(600));
    }
}
