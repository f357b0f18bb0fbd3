//! `cluster_update`: another worker count, and the health a monitor reports.
//!
//! The status rule is checked against the row. Nothing different: done, answer null. Only health: the row is
//! changed here and now. Another count: the count and `UPDATE_IN_PROGRESS` are written and the driver gets work.
//!
//! Differs from Magnum: `UPDATE_IN_PROGRESS` is written before the driver is called, not after.

use magnum_common::clock;
use magnum_common::error::Fault;
use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use magnum_common::objects;
use serde_json::Value;

use super::command::ClusterUpdate;
use super::plan::{Plan, StatusChange, Verdict, View, Writes};
use crate::workflows::Args;
use crate::workflows::args::Resized;

/// Plans an update.
pub fn plan(update: &ClusterUpdate, view: &View) -> Plan {
    let Some(cluster) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(update.cluster.as_str()));
    };
    if let Err(fault) = allowed(cluster.status) {
        return Plan::refuse(fault);
    }
    let wanted = match wanted_count(update, &view.node_groups) {
        Ok(wanted) => wanted,
        Err(fault) => return Plan::refuse(fault),
    };
    let healthy_as_before = update.health_status == cluster.health_status
        && update.health_status_reason == cluster.health_status_reason;
    if wanted.is_none() && healthy_as_before {
        return Plan {
            verdict: Verdict::Done(Value::Null),
            writes: Writes::default(),
        };
    }
    let health = (!healthy_as_before).then(|| (update.health_status, update.health_status_reason.clone()));
    match wanted {
        None => Plan {
            verdict: Verdict::Done(objects::cluster::encode(&with_health(cluster, update))),
            writes: Writes {
                health,
                ..Writes::default()
            },
        },
        Some(resized) => Plan {
            writes: Writes {
                health,
                status: Some(StatusChange {
                    from: cluster.status,
                    to: ClusterStatus::UpdateInProgress,
                    node_groups: false,
                }),
                count: Some((resized.node_group.clone(), resized.from, resized.to)),
                ..Writes::default()
            },
            verdict: Verdict::Queue(Args::ClusterUpdate {
                resized: Some(resized),
                rollback: update.rollback,
            }),
        },
    }
}

fn allowed(status: Option<ClusterStatus>) -> Result<(), Fault> {
    if status.is_some_and(|status| ClusterStatus::COMPLETE.contains(&status)) {
        return Ok(());
    }
    let shown = status.map_or("None", ClusterStatus::as_str);
    Err(Fault::not_supported(&format!(
        "Updating a cluster when status is \"{shown}\""
    )))
}

/// The change of the default worker group, if there is one.
fn wanted_count(update: &ClusterUpdate, groups: &[NodeGroup]) -> Result<Option<Resized>, Fault> {
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
    if to < 0 {
        return Err(Fault::invalid_parameter(format!(
            "node_count must not be negative, it is {to}."
        )));
    }
    Ok(Some(Resized {
        node_group: worker.uuid.clone(),
        from: worker.node_count,
        to,
    }))
}

fn with_health(cluster: &Cluster, update: &ClusterUpdate) -> Cluster {
    let mut cluster = cluster.clone();
    cluster.health_status = update.health_status;
    cluster
        .health_status_reason
        .clone_from(&update.health_status_reason);
    cluster.updated_at = Some(clock::row_now());
    cluster
}

#[cfg(test)]
mod tests {
    use magnum_common::error::Exception;
    use magnum_common::model::{HealthStatus, StringMap};

    use super::*;

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

    fn update(node_count: Option<i32>, health: Option<HealthStatus>) -> ClusterUpdate {
        ClusterUpdate {
            cluster: "c".into(),
            node_count,
            health_status: health,
            health_status_reason: StringMap::new(),
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
    fn nothing_different_is_done_with_null() {
        for count in [Some(2), None] {
            let plan = plan(&update(count, None), &view(Some(ClusterStatus::CreateComplete)));
            assert_eq!(plan.verdict, Verdict::Done(Value::Null));
            assert_eq!(plan.writes, Writes::default());
        }
    }

    #[test]
    fn health_alone_changes_no_status_and_calls_no_driver() {
        let plan = plan(
            &update(Some(2), Some(HealthStatus::Unhealthy)),
            &view(Some(ClusterStatus::CreateComplete)),
        );
        let Verdict::Done(answer) = plan.verdict else {
            panic!("done at once");
        };
        assert_eq!(answer["magnum_object.data"]["health_status"], "UNHEALTHY");
        assert_eq!(plan.writes.status, None);
        assert_eq!(
            plan.writes.health,
            Some((Some(HealthStatus::Unhealthy), StringMap::new()))
        );
    }

    #[test]
    fn another_count_is_written_with_the_way_back() {
        let plan = plan(&update(Some(5), None), &view(Some(ClusterStatus::UpdateComplete)));
        assert_eq!(plan.writes.count, Some(("w".into(), 2, 5)));
        assert_eq!(
            plan.writes.status,
            Some(StatusChange {
                from: Some(ClusterStatus::UpdateComplete),
                to: ClusterStatus::UpdateInProgress,
                node_groups: false
            })
        );
        let Verdict::Queue(Args::ClusterUpdate {
            resized: Some(resized),
            ..
        }) = plan.verdict
        else {
            panic!("work for the driver");
        };
        assert_eq!((resized.from, resized.to), (2, 5));
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
