//! `cluster_update`: another worker count, and the health a monitor reports.
//!
//! Nothing different: answered with null. Only health: the row is changed here and now, in any status of the cluster,
//! whatever else is going on there. Another count: allowed by the status of the row, the count and
//! `UPDATE_IN_PROGRESS` are written and the driver gets work.
//!
//! Differs from Magnum: health is taken while other work goes on, too, where Magnum drops it; `UPDATE_IN_PROGRESS` is
//! written before the driver is called, not after.

use magnum_common::clock;
use magnum_common::error::Fault;
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Cluster, NodeGroup};
use magnum_objects as objects;
use serde_json::Value;

use super::columns::not_negative;
use super::command::{ClusterUpdate, ReportedHealth};
use super::plan::{Plan, Verdict, View, Writes};
use crate::workflows::{OperationKind, kinds, rules};

/// Plans an update.
pub fn plan(update: &ClusterUpdate, view: &View) -> Plan {
    let Some(cluster) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(update.cluster.as_str()));
    };
    let wanted = match wanted_count(update, &view.node_groups) {
        Ok(wanted) => wanted,
        Err(fault) => return Plan::refuse(fault),
    };
    let reported = update.health.clone().filter(|health| {
        health.status != cluster.health_status || health.reasons != cluster.health_status_reason
    });
    let answer = match &reported {
        None => Value::Null,
        Some(health) => objects::cluster::encode(&with_health(cluster, health)),
    };
    let writes = Writes {
        health: reported,
        ..Writes::default()
    };
    let Some((node_group, node_count)) = wanted else {
        return Plan {
            verdict: Verdict::Done(answer),
            writes,
        };
    };
    if let Err(fault) = rules::allowed(OperationKind::ClusterUpdate, cluster.status) {
        return Plan::refuse(fault);
    }
    let work = kinds::ClusterUpdate {
        node_group,
        node_count,
        rollback: update.rollback,
    };
    Plan::queue_with(work, cluster, view, writes)
}

/// The change of the default worker group, if there is one.
fn wanted_count(update: &ClusterUpdate, groups: &[NodeGroup]) -> Result<Option<(NodeGroupUuid, i32)>, Fault> {
    let Some(to) = update.node_count else {
        return Ok(None);
    };
    let worker = groups
        .iter()
        .find(|group| group.is_default && !group.is_master())
        .ok_or_else(|| Fault::node_group_not_found("default-worker"))?;
    if worker.node_count == to {
        return Ok(None);
    }
    not_negative(to)?;
    Ok(Some((worker.uuid.clone(), to)))
}

fn with_health(cluster: &Cluster, health: &ReportedHealth) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.health_status = health.status;
    cluster.health_status_reason.clone_from(&health.reasons);
    cluster.updated_at = Some(clock::row_now());
    cluster
}

#[cfg(test)]
mod tests {
    use magnum_common::error::Exception;
    use magnum_common::model::{ClusterStatus, HealthStatus, StringMap};

    use super::*;
    use crate::workflows::Work;

    fn view(status: Option<ClusterStatus>) -> View {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.status = status;
        let mut worker = NodeGroup::new("w".into(), "default-worker", "c".into(), "p", "worker");
        worker.is_default = true;
        worker.node_count = 2;
        let mut master = NodeGroup::new("m".into(), "default-master", "c".into(), "p", "master");
        master.is_default = true;
        View {
            cluster: Some(cluster),
            node_groups: vec![master, worker],
            ..View::default()
        }
    }

    fn report(status: HealthStatus) -> ReportedHealth {
        ReportedHealth {
            status: Some(status),
            reasons: StringMap::new(),
        }
    }

    fn update(node_count: Option<i32>, health: Option<HealthStatus>) -> ClusterUpdate {
        ClusterUpdate {
            cluster: "c".into(),
            node_count,
            health: health.map(report),
            rollback: false,
        }
    }

    #[test]
    fn only_the_complete_statuses_allow_an_update() {
        for status in ClusterStatus::ALL {
            let plan = plan(&update(Some(3), None), &view(Some(*status)));
            let allowed = ClusterStatus::COMPLETE.contains(status);
            assert_eq!(matches!(plan.verdict, Verdict::Queue(_)), allowed, "{status}");
            if let Verdict::Refuse(fault) = plan.verdict {
                assert_eq!(
                    fault.message,
                    format!("Updating a cluster when status is \"{status}\" is not supported.")
                );
                assert_eq!(plan.writes, Writes::default());
            }
        }
    }

    #[test]
    fn update_without_a_difference_is_done_with_null() {
        for count in [Some(2), None] {
            let plan = plan(&update(count, None), &view(Some(ClusterStatus::CreateComplete)));
            assert_eq!(plan.verdict, Verdict::Done(Value::Null));
            assert_eq!(plan.writes, Writes::default());
        }
    }

    #[test]
    fn health_alone_changes_no_status_and_calls_no_driver_in_any_status() {
        for status in ClusterStatus::ALL {
            let plan = plan(
                &update(Some(2), Some(HealthStatus::Unhealthy)),
                &view(Some(*status)),
            );
            let Verdict::Done(answer) = plan.verdict else {
                panic!("done at once in {status}");
            };
            assert_eq!(answer["magnum_object.data"]["health_status"], "UNHEALTHY");
            assert_eq!(plan.writes.start, None);
            assert_eq!(plan.writes.health, Some(report(HealthStatus::Unhealthy)));
        }
    }

    #[test]
    fn another_count_is_written_with_the_way_back() {
        let plan = plan(&update(Some(5), None), &view(Some(ClusterStatus::UpdateComplete)));
        let start = plan.writes.start.unwrap();
        let resized = start.started.resized.unwrap();
        assert_eq!(
            (resized.node_group.as_str(), resized.from, resized.to),
            ("w", 2, 5)
        );
        assert_eq!(
            start.status,
            Some((
                Some(ClusterStatus::UpdateComplete),
                ClusterStatus::UpdateInProgress
            ))
        );
        assert!(matches!(plan.verdict, Verdict::Queue(Work::ClusterUpdate(_))));
    }

    #[test]
    fn unknown_clusters_and_negative_counts_are_refused() {
        let Verdict::Refuse(fault) = plan(&update(Some(1), None), &View::default()).verdict else {
            panic!("refused");
        };
        assert_eq!(fault.exception, Exception::ClusterNotFound);
        let complete = view(Some(ClusterStatus::CreateComplete));
        assert!(matches!(
            plan(&update(Some(-1), None), &complete).verdict,
            Verdict::Refuse(_)
        ));
    }
}
