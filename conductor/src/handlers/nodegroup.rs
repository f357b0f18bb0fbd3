//! `nodegroup_create`, `nodegroup_update`, `nodegroup_delete`.
//!
//! A new group's row is there as soon as the request is accepted, also while another operation has the cluster,
//! so it can be read from then on and its name is taken. New bounds, labels and taints are written at acceptance
//! too; only the statuses wait for the operation's turn.
//!
//! Differs from Magnum: `DELETE_IN_PROGRESS` is written before the driver is called; a default group is not
//! deleted (Magnum's API checks that, its conductor does not); a group whose name or uuid is taken is refused
//! before the cluster's status changes.

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::{ClusterStatus, NodeGroup};
use magnum_objects::node_group::NodeGroupObject;
use uuid::Uuid;

use super::cluster_resize::belongs;
use super::columns;
use super::plan::{Plan, Verdict, View, Writes};
use crate::operations::State;
use crate::workflows::{OperationKind, kinds, rules};

/// Plans a new group.
pub fn plan_create(cluster: &ClusterUuid, group: &NodeGroup, view: &View) -> Plan {
    let Some(row) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(cluster.as_str()));
    };
    let checked = rules::allowed(OperationKind::NodegroupCreate, row.status)
        .and_then(|()| check(group))
        .and_then(|()| is_free(group, view));
    if let Err(fault) = checked {
        return Plan::refuse(fault);
    }
    let mut group = group.clone();
    group.status = Some(ClusterStatus::CreateInProgress);
    group.status_reason = None;
    let work = kinds::NodegroupCreate {
        node_group: group.uuid.clone(),
    };
    let writes = Writes {
        node_groups: vec![group],
        ..Writes::default()
    };
    Plan::queue_with(work, row, view, writes)
}

/// Plans an update of a group.
pub fn plan_update(
    cluster: &ClusterUuid,
    uuid: &NodeGroupUuid,
    wanted: &NodeGroupObject,
    view: &View,
) -> Plan {
    let Some(row) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(cluster.as_str()));
    };
    match rules::allowed(OperationKind::NodegroupUpdate, row.status)
        .and_then(|()| updated(uuid, wanted, view))
    {
        Err(fault) => Plan::refuse(fault),
        Ok(group) => {
            let work = kinds::NodegroupUpdate {
                node_group: uuid.clone(),
            };
            let writes = Writes {
                group: Some(Box::new(group)),
                ..Writes::default()
            };
            Plan::queue_with(work, row, view, writes)
        }
    }
}

/// Plans the deletion of a group.
pub fn plan_delete(cluster: &ClusterUuid, uuid: &NodeGroupUuid, view: &View) -> Plan {
    let Some(row) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(cluster.as_str()));
    };
    let checked = rules::allowed(OperationKind::NodegroupDelete, row.status)
        .and_then(|()| belongs(uuid, view))
        .and_then(|()| is_extra(uuid, view));
    if let Err(fault) = checked {
        return Plan::refuse(fault);
    }
    let going = view
        .node_groups
        .iter()
        .any(|group| group.uuid == *uuid && group.status == Some(ClusterStatus::DeleteInProgress));
    // In order, so the first one is the one that has started.
    let deleting = view
        .open
        .iter()
        .find(|open| open.kind == Some(OperationKind::NodegroupDelete) && open.state != State::Observing);
    if let (true, Some(deleting)) = (going, deleting) {
        return Plan {
            verdict: Verdict::Merge(format!(
                "operation {} is deleting the node group already",
                deleting.id
            )),
            writes: Writes {
                make_due: (deleting.state == State::Retrying).then(|| deleting.clone()),
                ..Writes::default()
            },
        };
    }
    let work = kinds::NodegroupDelete {
        node_group: uuid.clone(),
    };
    Plan::queue(work, row, view)
}

/// The group before and after the update.
fn updated(
    uuid: &NodeGroupUuid,
    wanted: &NodeGroupObject,
    view: &View,
) -> Result<(NodeGroup, NodeGroup), Fault> {
    let before = view
        .node_groups
        .iter()
        .find(|group| group.uuid == *uuid)
        .ok_or_else(|| Fault::node_group_not_found(uuid.as_str()))?;
    rules::group_allowed(before.status)?;
    let mut after = before.clone();
    wanted.apply(&mut after)?;
    // Owner and status are not set by the sender.
    after.cluster_id = before.cluster_id.clone();
    after.project_id.clone_from(&before.project_id);
    after.is_default = before.is_default;
    after.status = before.status;
    after.status_reason.clone_from(&before.status_reason);
    check(&after)?;
    Ok((before.clone(), after))
}

fn check(group: &NodeGroup) -> Result<(), Fault> {
    let uuid = group.uuid.as_str();
    if !Uuid::try_parse(uuid).is_ok_and(|parsed| parsed.to_string() == uuid.to_lowercase()) {
        let shown: String = uuid.chars().take(64).collect();
        return Err(Fault::new(
            Exception::InvalidUUID,
            format!("Expected a uuid but received {shown}."),
        ));
    }
    columns::not_negative(group.node_count)?;
    columns::texts(
        "nodegroup",
        &[
            ("name", Some(&group.name)),
            ("project_id", Some(&group.project_id)),
            ("role", Some(&group.role)),
            ("flavor_id", group.flavor_id.as_deref()),
            ("image_id", group.image_id.as_deref()),
            ("stack_id", group.stack_id.as_deref()),
        ],
    )?;
    columns::map("labels of the nodegroup", &group.labels)?;
    columns::map("node_labels of the nodegroup", &group.node_labels)
}

fn is_free(group: &NodeGroup, view: &View) -> Result<(), Fault> {
    // The database may compare without case; then the two names are one.
    let same = |known: &&NodeGroup| known.name.to_lowercase() == group.name.to_lowercase();
    let taken = view.node_groups.iter().find(same);
    if taken.is_some() || view.group_taken {
        return Err(Fault::new(
            Exception::NodeGroupAlreadyExists,
            format!(
                "A node group with name {} already exists in the cluster {}.",
                group.name, group.cluster_id
            ),
        ));
    }
    Ok(())
}

fn is_extra(uuid: &NodeGroupUuid, view: &View) -> Result<(), Fault> {
    let is_default = view
        .node_groups
        .iter()
        .any(|group| group.uuid == *uuid && group.is_default);
    if is_default {
        return Err(Fault::new(
            Exception::DeletingDefaultNGNotSupported,
            "Deleting a default nodegroup is not supported.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use magnum_common::model::Cluster;
    use magnum_objects as objects;

    use super::super::plan::OpenOperation;
    use super::*;

    const UUID: &str = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";

    fn pool() -> NodeGroup {
        NodeGroup::new(UUID.into(), "pool", "c".into(), "p", "worker")
    }

    fn view(status: ClusterStatus, groups: &[NodeGroup]) -> View {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.status = Some(status);
        View {
            cluster: Some(cluster),
            node_groups: groups.to_vec(),
            ..View::default()
        }
    }

    fn refusal(plan: Plan) -> Exception {
        assert_eq!(plan.writes, Writes::default(), "a refusal writes nothing");
        match plan.verdict {
            Verdict::Refuse(fault) => fault.exception,
            other => panic!("not refused: {other:?}"),
        }
    }

    fn busy(mut view: View, kind: OperationKind, state: State) -> View {
        view.open.push(OpenOperation {
            row: 1,
            id: "o-1".into(),
            kind: Some(kind),
            state,
        });
        view
    }

    #[test]
    fn a_new_group_is_there_at_once_even_while_the_cluster_is_busy() {
        let idle = plan_create(&"c".into(), &pool(), &view(ClusterStatus::CreateComplete, &[]));
        let start = idle.writes.start.unwrap();
        assert_eq!(start.group, Some((UUID.into(), ClusterStatus::CreateInProgress)));
        let at_work = busy(
            view(ClusterStatus::UpdateInProgress, &[]),
            OperationKind::ClusterResize,
            State::Running,
        );
        let waits = plan_create(&"c".into(), &pool(), &at_work);
        assert_eq!(waits.writes.start, None);
        assert_eq!(
            waits.writes.node_groups[0].status,
            Some(ClusterStatus::CreateInProgress)
        );
    }

    #[test]
    fn group_of_a_cluster_being_deleted_is_refused() {
        let deleting = view(ClusterStatus::DeleteInProgress, &[]);
        assert_eq!(
            refusal(plan_create(&"c".into(), &pool(), &deleting)),
            Exception::NotSupported
        );
    }

    #[test]
    fn a_taken_name_or_uuid_is_a_conflict() {
        let mut other = pool();
        other.uuid = "1a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d".into();
        other.name = "POOL".into();
        let named = view(ClusterStatus::CreateComplete, &[other]);
        assert_eq!(
            refusal(plan_create(&"c".into(), &pool(), &named)),
            Exception::NodeGroupAlreadyExists
        );
        let mut taken = view(ClusterStatus::CreateComplete, &[]);
        taken.group_taken = true;
        assert_eq!(
            refusal(plan_create(&"c".into(), &pool(), &taken)),
            Exception::NodeGroupAlreadyExists
        );
    }

    #[test]
    fn update_takes_changed_fields_but_no_status() {
        let mut row = pool();
        row.status = Some(ClusterStatus::CreateComplete);
        let mut sent = row.clone();
        sent.max_node_count = Some(9);
        sent.min_node_count = 7;
        sent.status = Some(ClusterStatus::UpdateInProgress);
        let sent = objects::encode_with_changes(&sent, &["max_node_count", "status"]);
        let sent = objects::node_group::decode(&sent).unwrap();
        let view = view(ClusterStatus::CreateComplete, &[row]);
        let plan = plan_update(&"c".into(), &UUID.into(), &sent, &view);
        let (before, after) = *plan.writes.group.unwrap();
        assert_eq!((before.max_node_count, after.max_node_count), (None, Some(9)));
        assert_eq!((after.min_node_count, after.status), (0, before.status));
    }

    #[test]
    fn a_default_group_stays_and_a_second_delete_joins_the_first() {
        let mut group = pool();
        group.is_default = true;
        let default = view(ClusterStatus::CreateComplete, &[group.clone()]);
        assert_eq!(
            refusal(plan_delete(&"c".into(), &UUID.into(), &default)),
            Exception::DeletingDefaultNGNotSupported
        );
        group.is_default = false;
        group.status = Some(ClusterStatus::DeleteInProgress);
        let going = view(ClusterStatus::UpdateInProgress, &[group]);
        let again = busy(going, OperationKind::NodegroupDelete, State::Running);
        let plan = plan_delete(&"c".into(), &UUID.into(), &again);
        assert!(matches!(plan.verdict, Verdict::Merge(_)));
    }
}
