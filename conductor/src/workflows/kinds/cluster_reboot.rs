//! Nodes of a cluster restarted. Ours: Magnum has nothing like it.

use magnum_common::error::Fault;
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Action, ClusterTemplate, NodeGroup, RebootType};
use magnum_drivers::DriverInfo;
use serde::{Deserialize, Serialize};

use super::OperationKind;
use crate::workflows::description::{
    BeginsIn, Description, GroupStatuses, ReplyValue, Step, TimeLimit, Workflow,
};
use magnum_driver_api::{Nodes, Task};

/// Arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterReboot {
    /// How.
    pub reboot_type: RebootType,
    /// The group whose nodes are meant; `None` means every group.
    pub node_group: Option<NodeGroupUuid>,
    /// Of those the ones with these names, as the cloud names them; none means all.
    pub nodes: Vec<String>,
}

impl ClusterReboot {
    pub(super) const DESCRIPTION: Description = Description {
        method: "cluster_reboot",
        steps: &[Step::ChooseDriver, Step::CallDriver(OperationKind::ClusterReboot)],
        driver_step: "reboot_cluster",
        begins_in: BeginsIn::CompleteOrUpdating,
        refused_as: "Rebooting nodes of a cluster",
        action: Action::Update,
        moves_status: true,
        group_statuses: GroupStatuses::OfGroup(Action::Update),
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::Update,
        timed_out_as: "rebooted",
        answer: ReplyValue::Accepted,
        notification: "update",
    };
}

impl Workflow for ClusterReboot {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::Reboot {
            how: self.reboot_type,
            nodes: Nodes {
                node_group: self.node_group.as_ref(),
                names: &self.nodes,
            },
        }
    }

    fn node_group(&self) -> Option<&NodeGroupUuid> {
        self.node_group.as_ref()
    }

    fn supported(&self, _groups: &[NodeGroup], driver: &DriverInfo) -> Result<(), Fault> {
        let can = match self.reboot_type {
            RebootType::Soft => driver.capabilities.soft_reboot,
            RebootType::Hard => driver.capabilities.hard_reboot,
        };
        if can {
            return Ok(());
        }
        Err(Fault::not_supported(&format!(
            "A {} reboot of nodes of a cluster of driver {}",
            self.reboot_type, driver.name
        )))
    }
}
