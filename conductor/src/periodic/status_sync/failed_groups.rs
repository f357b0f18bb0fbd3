//! A cluster is not complete while a node group of its operation has failed.
//!
//! Drivers such as magnum-capi-helm say of each group how it is, and then that the cluster is complete whatever became of its
//! groups. Nobody looks at the cluster afterwards, so that a group which recovers a minute later, because its machine was
//! replaced, stays failed for ever. Here the operation goes on until the group has recovered, or its time is over and it
//! fails.
//!
//! Only groups that the operation is about count, all of them when the cluster is created, and only where an operation of
//! ours waits: what failed before does not hold up what comes after it, nor does a group that already had this status when the
//! operation began, since not every driver gives it another one.

use magnum_common::ids::ClusterUuid;
use magnum_common::model::{ClusterStatus, NodeGroup};
use magnum_db::AnyConnection;
use magnum_driver_api::DriverReport;

use crate::operations::JournalError;
use crate::operations::journal::read;
use crate::store::node_groups;
use crate::workflows::args::Args;

/// What is written instead of a report that the cluster is complete, while a group of its operation has failed.
///
/// # Errors
/// The database failed.
pub(super) fn awaited(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    report: &DriverReport,
) -> Result<Option<DriverReport>, JournalError> {
    let created = match report.cluster.status {
        Some(ClusterStatus::CreateComplete) => true,
        Some(ClusterStatus::UpdateComplete) => false,
        _ => return Ok(None),
    };
    let Some(operation) = read::observing(conn, cluster.as_str())? else {
        return Ok(None);
    };
    // One that cannot be read is settled as the driver says.
    let Ok(args) = Args::from_bytes(&operation.args) else {
        return Ok(None);
    };
    let groups = as_reported(node_groups::of(conn, cluster)?, report);
    let failed: Vec<&str> = if created {
        failed(&groups, |_| true)
    } else {
        let about = args.work.workflow().node_group();
        let before = args.started.as_ref().and_then(|started| started.group_status);
        failed(&groups, |group| {
            about == Some(&group.uuid) && group.status != before
        })
    };
    if failed.is_empty() {
        return Ok(None);
    }
    let mut waiting = report.clone();
    waiting.cluster.status = None;
    waiting.cluster.status_reason = Some(reason(&failed));
    Ok(Some(waiting))
}

/// The groups as they will be: some drivers have written their statuses during the look, others have them in their report.
fn as_reported(mut groups: Vec<NodeGroup>, report: &DriverReport) -> Vec<NodeGroup> {
    for changes in &report.node_groups {
        let group = groups.iter_mut().find(|group| group.uuid == changes.uuid);
        if let (Some(group), Some(status)) = (group, changes.status) {
            group.status = Some(status);
        }
    }
    groups
}

/// The names of the groups that have failed, of those that the operation is about.
fn failed(groups: &[NodeGroup], is_about: impl Fn(&NodeGroup) -> bool) -> Vec<&str> {
    let concerned = groups.iter().filter(|group| is_about(group));
    concerned
        .filter(|group| group.status.is_some_and(ClusterStatus::is_failed))
        .map(|group| group.name.as_str())
        .collect()
}

fn reason(failed: &[&str]) -> String {
    format!(
        "Node groups have failed: {}. They may recover within the time limit of the operation.",
        failed.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use magnum_driver_api::NodeGroupChanges;

    use super::*;

    fn group(uuid: &str, name: &str, status: ClusterStatus) -> NodeGroup {
        let mut group = NodeGroup::new(uuid.into(), name, "c".into(), "p", "worker");
        group.status = Some(status);
        group
    }

    #[test]
    fn only_groups_of_the_operation_are_waited_for() {
        let groups = [
            group("1", "old", ClusterStatus::UpdateFailed),
            group("2", "new", ClusterStatus::CreateFailed),
            group("3", "fine", ClusterStatus::CreateComplete),
        ];
        assert_eq!(failed(&groups, |_| true), ["old", "new"]);
        assert_eq!(failed(&groups, |group| group.name == "new"), ["new"]);
        assert!(failed(&groups, |group| group.name == "fine").is_empty());
    }

    #[test]
    fn a_group_that_the_report_fails_has_failed_and_one_that_it_heals_has_not() {
        let groups = vec![
            group("1", "ill", ClusterStatus::CreateInProgress),
            group("2", "well", ClusterStatus::CreateFailed),
            group("3", "other", ClusterStatus::UpdateFailed),
        ];
        let changed = |uuid: &str, status| NodeGroupChanges {
            status: Some(status),
            ..NodeGroupChanges::of(uuid.into())
        };
        let report = DriverReport {
            node_groups: vec![
                changed("1", ClusterStatus::CreateFailed),
                changed("2", ClusterStatus::CreateComplete),
            ],
            ..DriverReport::default()
        };
        assert_eq!(failed(&as_reported(groups, &report), |_| true), ["ill", "other"]);
    }
}
