//! Another number of nodes in one group.

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Action, ClusterTemplate, NodeGroup};
use magnum_drivers::DriverInfo;
use serde::{Deserialize, Serialize};

use super::OperationKind;
use crate::workflows::description::{
    BeginsIn, Description, GroupStatuses, ReplyValue, Step, TimeLimit, Workflow,
};
use magnum_driver_api::Task;

/// Arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterResize {
    /// The group.
    pub node_group: NodeGroupUuid,
    /// Nodes wanted.
    pub node_count: i32,
    /// Servers to be removed rather than others, as the cloud names them: those of the request, or, where that names
    /// none, those that the driver has chosen in the step [`Step::ChooseNodes`].
    pub nodes_to_remove: Vec<String>,
}

impl ClusterResize {
    pub(super) const DESCRIPTION: Description = Description {
        method: "cluster_resize",
        steps: &[
            Step::ChooseDriver,
            Step::ChooseNodes,
            Step::CallDriver(OperationKind::ClusterResize),
        ],
        driver_step: "resize_cluster",
        begins_in: BeginsIn::CompleteOrUpdating,
        refused_as: "Resizing a cluster",
        action: Action::Update,
        moves_status: true,
        group_statuses: GroupStatuses::OfGroup(Action::Update),
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::Update,
        timed_out_as: "updated",
        answer: ReplyValue::Cluster,
        notification: "update",
    };
}

impl Workflow for ClusterResize {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::Resize {
            node_group: &self.node_group,
            remove: &self.nodes_to_remove,
        }
    }

    fn node_group(&self) -> Option<&NodeGroupUuid> {
        Some(&self.node_group)
    }

    fn node_count(&self) -> Option<i32> {
        Some(self.node_count)
    }

    fn supported(&self, groups: &[NodeGroup], driver: &DriverInfo) -> Result<(), Fault> {
        let of_masters = groups
            .iter()
            .any(|group| group.uuid == self.node_group && group.is_master());
        if of_masters && !driver.capabilities.resize_masters {
            return Err(Fault::new(
                Exception::MasterNGResizeNotSupported,
                "Resizing the master nodegroup is not supported by this driver.",
            ));
        }
        if of_masters {
            driver.master_size.check(self.node_count)?;
        }
        if !self.nodes_to_remove.is_empty() && !driver.capabilities.remove_named_nodes {
            return Err(Fault::not_supported(&format!(
                "Removing the nodes that nodes_to_remove names from a cluster of driver {}",
                driver.name
            )));
        }
        Ok(())
    }
}
