//! `cluster_resize` and `cluster_upgrade`: another number of nodes in one group, another template.
//!
//! Both are checked against the rows. Whether the new number lies within the group's bounds, and whether the new
//! template fits, the API has checked, as in Magnum.
//!
//! Differs from Magnum: a resize that comes while the cluster is being updated waits for its turn, and the rows
//! show it from then on; what the driver cannot do is refused before anything changes (where the driver is known,
//! see [`crate::workflows::description::Workflow::supported`]).

use magnum_common::error::Fault;
use magnum_common::ids::NodeGroupUuid;

use super::columns::not_negative;
use super::command::{ClusterResize, ClusterUpgrade};
use super::plan::{Plan, View};
use crate::workflows::{OperationKind, kinds, rules};

/// Plans a resize.
pub fn plan(resize: &ClusterResize, view: &View) -> Plan {
    let Some(cluster) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(resize.cluster.as_str()));
    };
    let checked = rules::allowed(OperationKind::ClusterResize, cluster.status)
        .and_then(|()| belongs(&resize.node_group, view))
        .and_then(|()| not_negative(resize.node_count));
    if let Err(fault) = checked {
        return Plan::refuse(fault);
    }
    let work = kinds::ClusterResize {
        node_group: resize.node_group.clone(),
        node_count: resize.node_count,
        nodes_to_remove: resize.nodes_to_remove.clone(),
    };
    Plan::queue(work, cluster, view)
}

/// Plans an upgrade.
pub fn plan_upgrade(upgrade: &ClusterUpgrade, view: &View) -> Plan {
    let Some(cluster) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(upgrade.cluster.as_str()));
    };
    let checked = rules::allowed(OperationKind::ClusterUpgrade, cluster.status)
        .and_then(|()| belongs(&upgrade.node_group, view));
    if let Err(fault) = checked {
        return Plan::refuse(fault);
    }
    if view.named_template.is_none() {
        return Plan::refuse(Fault::cluster_template_not_found(upgrade.template.as_str()));
    }
    let work = kinds::ClusterUpgrade {
        template: upgrade.template.clone(),
        node_group: upgrade.node_group.clone(),
        max_batch_size: upgrade.max_batch_size,
        rollback: upgrade.rollback,
    };
    Plan::queue(work, cluster, view)
}

/// Whether the group is one of the cluster's.
pub(super) fn belongs(group: &NodeGroupUuid, view: &View) -> Result<(), Fault> {
    if view.node_groups.iter().any(|known| known.uuid == *group) {
        return Ok(());
    }
    Err(Fault::node_group_not_found(group.as_str()))
}

#[cfg(test)]
mod tests {
    use magnum_common::error::Exception;
    use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, NodeGroup};

    use super::super::plan::{OpenOperation, Verdict, Writes};
    use super::*;
    use crate::operations::State;

    fn view(status: ClusterStatus) -> View {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.status = Some(status);
        View {
            cluster: Some(cluster),
            node_groups: vec![NodeGroup::new(
                "w".into(),
                "default-worker",
                "c".into(),
                "p",
                "worker",
            )],
            named_template: Some(ClusterTemplate::new("t-2".into())),
            ..View::default()
        }
    }

    fn resize(node_count: i32) -> ClusterResize {
        ClusterResize {
            cluster: "c".into(),
            node_group: "w".into(),
            node_count,
            nodes_to_remove: Vec::new(),
        }
    }

    fn upgrade() -> ClusterUpgrade {
        ClusterUpgrade {
            cluster: "c".into(),
            template: "t-2".into(),
            node_group: "w".into(),
            max_batch_size: Some(1),
            rollback: false,
        }
    }

    fn refusal(plan: Plan) -> Exception {
        assert_eq!(plan.writes, Writes::default(), "a refusal writes nothing");
        match plan.verdict {
            Verdict::Refuse(fault) => fault.exception,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_resize_waits_for_its_turn_when_the_cluster_is_busy() {
        let mut busy = view(ClusterStatus::UpdateInProgress);
        busy.open.push(OpenOperation {
            row: 1,
            id: "o-1".into(),
            kind: Some(OperationKind::ClusterResize),
            state: State::Observing,
        });
        let waits = plan(&resize(3), &busy);
        assert!(matches!(waits.verdict, Verdict::Queue(_)));
        assert_eq!(waits.writes.start, None);
        assert!(
            plan(&resize(3), &view(ClusterStatus::UpdateFailed))
                .writes
                .start
                .is_some()
        );
    }

    #[test]
    fn missing_targets_and_invalid_counts_and_statuses_are_refused() {
        let complete = view(ClusterStatus::CreateComplete);
        assert_eq!(
            refusal(plan(&resize(-1), &complete)),
            Exception::InvalidParameterValue
        );
        assert_eq!(
            refusal(plan(&resize(1), &View::default())),
            Exception::ClusterNotFound
        );
        let other = ClusterResize {
            node_group: "x".into(),
            ..resize(1)
        };
        assert_eq!(refusal(plan(&other, &complete)), Exception::NodeGroupNotFound);
        assert_eq!(
            refusal(plan(&resize(1), &view(ClusterStatus::CreateInProgress))),
            Exception::NotSupported
        );
        let nowhere = View {
            named_template: None,
            ..complete
        };
        assert_eq!(
            refusal(plan_upgrade(&upgrade(), &nowhere)),
            Exception::ClusterTemplateNotFound
        );
        assert_eq!(
            refusal(plan_upgrade(&upgrade(), &view(ClusterStatus::UpdateFailed))),
            Exception::NotSupported
        );
    }

    #[test]
    fn an_upgrade_marks_cluster_and_group() {
        let plan = plan_upgrade(&upgrade(), &view(ClusterStatus::UpdateComplete));
        let start = plan.writes.start.unwrap();
        assert_eq!(start.group, Some(("w".into(), ClusterStatus::UpdateInProgress)));
        assert!(start.status.is_some());
    }
}
