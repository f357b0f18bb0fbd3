//! Another number of nodes in a cluster's default worker group.

use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Action, ClusterTemplate};
use serde::{Deserialize, Serialize};

use super::OperationKind;
use crate::workflows::description::{
    BeginsIn, Description, GroupStatuses, ReplyValue, Step, TimeLimit, Workflow,
};
use magnum_driver_api::Task;

/// Arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterUpdate {
    /// The default worker group.
    pub node_group: NodeGroupUuid,
    /// Nodes wanted.
    pub node_count: i32,
    /// Whether the driver is to bring back what was there if it fails: as the caller gave it.
    pub rollback: bool,
}

impl ClusterUpdate {
    pub(super) const DESCRIPTION: Description = Description {
        method: "cluster_update",
        steps: &[Step::ChooseDriver, Step::CallDriver(OperationKind::ClusterUpdate)],
        driver_step: "update_cluster",
        begins_in: BeginsIn::Complete,
        refused_as: "Updating a cluster",
        action: Action::Update,
        moves_status: true,
        // Magnum leaves the group's status alone here, and its users know it so.
        group_statuses: GroupStatuses::Unchanged,
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::Update,
        timed_out_as: "updated",
        answer: ReplyValue::Cluster,
        notification: "update",
    };
}

impl Workflow for ClusterUpdate {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::Update {
            rollback: self.rollback,
        }
    }

    fn node_group(&self) -> Option<&NodeGroupUuid> {
        Some(&self.node_group)
    }

    fn node_count(&self) -> Option<i32> {
        Some(self.node_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_told_whether_what_was_there_shall_come_back() {
        for rollback in [false, true] {
            let update = ClusterUpdate {
                node_group: "g".into(),
                node_count: 2,
                rollback,
            };
            let template = ClusterTemplate::new("t".into());
            let told = matches!(update.task(&template), Task::Update { rollback: told } if told == rollback);
            assert!(told, "{rollback}");
        }
    }
}
