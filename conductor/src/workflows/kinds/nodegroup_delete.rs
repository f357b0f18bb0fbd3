//! The end of a node group.

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
pub struct NodegroupDelete {
    /// The group.
    pub node_group: NodeGroupUuid,
}

impl NodegroupDelete {
    pub(super) const DESCRIPTION: Description = Description {
        method: "nodegroup_delete",
        steps: &[
            Step::ChooseDriver,
            Step::CallDriver(OperationKind::NodegroupDelete),
        ],
        driver_step: "delete_nodegroup",
        begins_in: BeginsIn::NotDeleting,
        refused_as: "Deleting a nodegroup of a cluster",
        action: Action::Update,
        moves_status: true,
        group_statuses: GroupStatuses::OfGroup(Action::Delete),
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::Update,
        timed_out_as: "updated",
        answer: ReplyValue::Nothing,
        notification: "update",
    };
}

impl Workflow for NodegroupDelete {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::DeleteNodeGroup(&self.node_group)
    }

    fn node_group(&self) -> Option<&NodeGroupUuid> {
        Some(&self.node_group)
    }
}
