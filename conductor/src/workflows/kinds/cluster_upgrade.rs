//! Another template for a cluster.

use magnum_common::error::Fault;
use magnum_common::ids::{NodeGroupUuid, TemplateUuid};
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
pub struct ClusterUpgrade {
    /// The new template.
    pub template: TemplateUuid,
    /// The group to begin with.
    pub node_group: NodeGroupUuid,
    /// Nodes replaced at once.
    pub max_batch_size: Option<i32>,
    /// As the caller gave it; no driver of ours uses it.
    pub rollback: bool,
}

impl ClusterUpgrade {
    pub(super) const DESCRIPTION: Description = Description {
        method: "cluster_upgrade",
        steps: &[
            Step::ChooseDriver,
            Step::CallDriver(OperationKind::ClusterUpgrade),
        ],
        driver_step: "upgrade_cluster",
        begins_in: BeginsIn::Complete,
        refused_as: "Upgrading a cluster",
        action: Action::Update,
        moves_status: true,
        group_statuses: GroupStatuses::OfGroup(Action::Update),
        is_put_back_when_unsupported: true,
        time_limit: TimeLimit::Upgrade,
        timed_out_as: "upgraded",
        answer: ReplyValue::Cluster,
        notification: "update",
    };
}

impl Workflow for ClusterUpgrade {
    fn task<'a>(&'a self, template: &'a ClusterTemplate) -> Task<'a> {
        Task::Upgrade {
            to: template,
            node_group: &self.node_group,
            max_batch_size: self.max_batch_size,
        }
    }

    fn node_group(&self) -> Option<&NodeGroupUuid> {
        Some(&self.node_group)
    }

    fn new_template(&self) -> Option<&TemplateUuid> {
        Some(&self.template)
    }

    fn supported(&self, _groups: &[NodeGroup], driver: &DriverInfo) -> Result<(), Fault> {
        if driver.capabilities.upgrade {
            return Ok(());
        }
        Err(Fault::not_supported(&format!(
            "Upgrading a cluster of driver {}",
            driver.name
        )))
    }
}
