//! `cluster_rebuild` and `cluster_reboot`: nodes built anew, nodes restarted. Ours: Magnum has neither.
//!
//! Both are calls that get their reply as soon as they are in the journal, or refused: a Python conductor does not know
//! them and replies with an exception, so that no such request is lost. Their outcome is in the cluster's status.
//!
//! Only the driver knows the names of nodes; it refuses unknown names before it changes anything.

use magnum_common::error::Fault;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};

use super::cluster_resize::belongs;
use super::plan::{Plan, View};
use crate::workflows::kinds::{ClusterReboot, ClusterRebuild};
use crate::workflows::{Work, rules};

/// The longest name of a node, in characters.
const NODE_NAME: usize = 255;

/// Plans a rebuild of nodes.
pub fn plan_rebuild(cluster: &ClusterUuid, rebuild: &ClusterRebuild, view: &View) -> Plan {
    let group = rebuild.node_group.as_ref();
    plan(cluster, rebuild.clone().into(), group, &rebuild.nodes, view)
}

/// Plans a reboot of nodes.
pub fn plan_reboot(cluster: &ClusterUuid, reboot: &ClusterReboot, view: &View) -> Plan {
    let group = reboot.node_group.as_ref();
    plan(cluster, reboot.clone().into(), group, &reboot.nodes, view)
}

fn plan(
    cluster: &ClusterUuid,
    work: Work,
    group: Option<&NodeGroupUuid>,
    nodes: &[String],
    view: &View,
) -> Plan {
    let Some(row) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(cluster.as_str()));
    };
    let checked = rules::allowed(work.kind(), row.status)
        .and_then(|()| group.map_or(Ok(()), |group| belongs(group, view)))
        .and_then(|()| named(nodes));
    match checked {
        Ok(()) => Plan::queue(work, row, view),
        Err(fault) => Plan::refuse(fault),
    }
}

fn named(nodes: &[String]) -> Result<(), Fault> {
    match nodes
        .iter()
        .position(|node| node.is_empty() || node.chars().count() > NODE_NAME)
    {
        None => Ok(()),
        Some(at) => Err(Fault::invalid_parameter(format!(
            "nodes[{at}] must have 1 to {NODE_NAME} characters."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use magnum_common::error::Exception;
    use magnum_common::model::{Cluster, ClusterStatus, NodeGroup, RebootType};

    use super::super::plan::{Verdict, Writes};
    use super::*;

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
            ..View::default()
        }
    }

    fn reboot(group: Option<&str>, nodes: &[&str]) -> ClusterReboot {
        ClusterReboot {
            reboot_type: RebootType::Soft,
            node_group: group.map(Into::into),
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
        }
    }

    fn refusal(plan: Plan) -> Fault {
        assert_eq!(plan.writes, Writes::default(), "a refusal writes nothing");
        match plan.verdict {
            Verdict::Refuse(fault) => fault,
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn a_named_group_is_in_progress_with_its_cluster_and_else_all_groups_are() {
        let complete = view(ClusterStatus::CreateComplete);
        let start = |group| {
            let plan = plan_reboot(&"c".into(), &reboot(group, &["n-1"]), &complete);
            plan.writes.start.unwrap()
        };
        let named = start(Some("w"));
        assert_eq!(named.group, Some(("w".into(), ClusterStatus::UpdateInProgress)));
        assert!(!named.all_groups);
        let all = start(None);
        assert_eq!((all.group, all.all_groups), (None, true));
        assert_eq!(
            all.status.map(|(_, to)| to),
            Some(ClusterStatus::UpdateInProgress)
        );
    }

    #[test]
    fn unbuilt_cluster_is_refused() {
        for status in [ClusterStatus::CreateFailed, ClusterStatus::DeleteInProgress] {
            let plan = plan_reboot(&"c".into(), &reboot(None, &[]), &view(status));
            assert_eq!(refusal(plan).exception, Exception::NotSupported, "{status}");
        }
        let rebuild = ClusterRebuild {
            node_group: None,
            nodes: Vec::new(),
        };
        let gone = plan_rebuild(&"c".into(), &rebuild, &View::default());
        assert_eq!(refusal(gone).exception, Exception::ClusterNotFound);
    }

    #[test]
    fn a_foreign_group_and_an_empty_name_are_refused() {
        let complete = view(ClusterStatus::UpdateFailed);
        let foreign = plan_reboot(&"c".into(), &reboot(Some("x"), &[]), &complete);
        assert_eq!(refusal(foreign).exception, Exception::NodeGroupNotFound);
        let nameless = plan_reboot(&"c".into(), &reboot(None, &["a", ""]), &complete);
        assert!(refusal(nameless).message.contains("nodes[1]"));
    }
}
