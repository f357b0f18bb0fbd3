//! The end of a cluster. The rows say which.

use magnum_common::model::{Action, ClusterTemplate};
use serde::{Deserialize, Serialize};

use super::OperationKind;
use crate::workflows::description::{
    BeginsIn, Description, GroupStatuses, ReplyValue, Step, TimeLimit, Workflow,
};
use magnum_driver_api::Task;

/// Arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterDelete {}

impl ClusterDelete {
    pub(super) const DESCRIPTION: Description = Description {
        method: "cluster_delete",
        steps: &[Step::ChooseDriver, Step::CallDriver(OperationKind::ClusterDelete)],
        driver_step: "delete_cluster",
        begins_in: BeginsIn::AnyStatus,
        refused_as: "Deleting a cluster",
        action: Action::Delete,
        moves_status: true,
        group_statuses: GroupStatuses::OfCluster,
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::Delete,
        timed_out_as: "deleted",
        answer: ReplyValue::Nothing,
        notification: "delete",
    };
}

impl Workflow for ClusterDelete {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::Delete
    }
}
