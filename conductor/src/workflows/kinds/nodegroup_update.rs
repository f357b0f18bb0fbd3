//! Other values of a node group, whose row holds them already.

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
pub struct NodegroupUpdate {
    /// The group.
    pub node_group: NodeGroupUuid,
}

impl NodegroupUpdate {
    pub(super) const DESCRIPTION: Description = Description {
        method: "nodegroup_update",
        steps: &[
            Step::ChooseDriver,
            Step::CallDriver(OperationKind::NodegroupUpdate),
        ],
        driver_step: "update_nodegroup",
        begins_in: BeginsIn::NotDeleting,
        refused_as: "Updating a nodegroup of a cluster",
        action: Action::Update,
        moves_status: true,
        group_statuses: GroupStatuses::OfGroup(Action::Update),
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::Update,
        timed_out_as: "updated",
        answer: ReplyValue::NodeGroup,
        notification: "update",
    };
}

impl Workflow for NodegroupUpdate {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::UpdateNodeGroup(&self.node_group)
    }

    fn node_group(&self) -> Option<&NodeGroupUuid> {
        Some(&self.node_group)
    }
}
