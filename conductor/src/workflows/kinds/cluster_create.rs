//! A new cluster. Everything but the time that it may take is in its row.

use std::time::Duration;

use magnum_common::model::{Action, ClusterTemplate};
use serde::{Deserialize, Serialize};

use super::OperationKind;
use crate::workflows::description::{
    BeginsIn, Description, GroupStatuses, ReplyValue, Step, TimeLimit, Workflow,
};
use magnum_driver_api::Task;

/// What `openstack coe cluster create` sends when the user gives no `--timeout`.
const DEFAULT_TIMEOUT_MINUTES: i32 = 60;

/// Arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterCreate {
    /// Minutes; `None` takes the default, 0 or less means no limit.
    pub create_timeout: Option<i32>,
}

impl ClusterCreate {
    pub(super) const DESCRIPTION: Description = Description {
        method: "cluster_create",
        steps: &[
            Step::ChooseDriver,
            Step::GenerateCertificates,
            Step::CallDriver(OperationKind::ClusterCreate),
        ],
        driver_step: "create_cluster",
        begins_in: BeginsIn::AnyStatus,
        refused_as: "Creating a cluster",
        action: Action::Create,
        moves_status: true,
        group_statuses: GroupStatuses::OfCluster,
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::CreateTimeout,
        timed_out_as: "created",
        answer: ReplyValue::Cluster,
        notification: "create",
    };

    /// How long it may take, enforced for every driver; Magnum leaves it to the driver. `None`: without limit.
    pub fn time_limit(&self) -> Option<Duration> {
        let minutes = self.create_timeout.unwrap_or(DEFAULT_TIMEOUT_MINUTES);
        u64::try_from(minutes)
            .ok()
            .filter(|minutes| *minutes > 0)
            .map(|minutes| Duration::from_secs(minutes * 60))
    }
}

impl Workflow for ClusterCreate {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::Create
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_timeout_counts_and_zero_means_none() {
        let limit = |create_timeout| ClusterCreate { create_timeout }.time_limit();
        assert_eq!(limit(Some(5)), Some(Duration::from_secs(300)));
        assert_eq!(limit(None), Some(Duration::from_secs(3600)));
        assert_eq!(limit(Some(0)), None);
        assert_eq!(limit(Some(-1)), None);
    }
}
