//! Nodes of a cluster built anew. Ours: Magnum has nothing like it.

use magnum_common::error::Fault;
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Action, ClusterTemplate, NodeGroup};
use magnum_drivers::DriverInfo;
use serde::{Deserialize, Serialize};

use super::OperationKind;
use crate::workflows::description::{
    BeginsIn, Description, GroupStatuses, ReplyValue, Step, TimeLimit, Workflow,
};
use magnum_driver_api::{Nodes, Task};

/// Arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRebuild {
    /// The group whose nodes are meant; `None` means every group.
    pub node_group: Option<NodeGroupUuid>,
    /// Of those the ones with these names, as the cloud names them; none means all.
    pub nodes: Vec<String>,
}

impl ClusterRebuild {
    pub(super) const DESCRIPTION: Description = Description {
        method: "cluster_rebuild",
        steps: &[
            Step::ChooseDriver,
            Step::CallDriver(OperationKind::ClusterRebuild),
        ],
        driver_step: "rebuild_cluster",
        begins_in: BeginsIn::CompleteOrUpdating,
        refused_as: "Rebuilding nodes of a cluster",
        action: Action::Update,
        moves_status: true,
        group_statuses: GroupStatuses::OfGroup(Action::Update),
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::Update,
        timed_out_as: "rebuilt",
        answer: ReplyValue::Accepted,
        notification: "update",
    };
}

impl Workflow for ClusterRebuild {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::Rebuild(Nodes {
            node_group: self.node_group.as_ref(),
            names: &self.nodes,
        })
    }

    fn node_group(&self) -> Option<&NodeGroupUuid> {
        self.node_group.as_ref()
    }

    fn supported(&self, _groups: &[NodeGroup], driver: &DriverInfo) -> Result<(), Fault> {
        if driver.capabilities.rebuild {
            return Ok(());
        }
        Err(Fault::not_supported(&format!(
            "Rebuilding nodes of a cluster of driver {}",
            driver.name
        )))
    }
}
