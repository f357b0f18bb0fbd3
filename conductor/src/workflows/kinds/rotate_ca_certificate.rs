//! New certificates for a cluster.

use magnum_common::error::{Exception, Fault};
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
pub struct RotateCaCertificate {}

impl RotateCaCertificate {
    pub(super) const DESCRIPTION: Description = Description {
        method: "rotate_ca_certificate",
        steps: &[
            Step::ChooseDriver,
            Step::GenerateCertificates,
            Step::CallDriver(OperationKind::RotateCaCertificate),
        ],
        driver_step: "rotate_ca",
        begins_in: BeginsIn::Complete,
        refused_as: "Updating a cluster",
        action: Action::Update,
        moves_status: true,
        group_statuses: GroupStatuses::Unchanged,
        is_put_back_when_unsupported: true,
        time_limit: TimeLimit::Rotation,
        timed_out_as: "given new certificates",
        answer: ReplyValue::Cluster,
        notification: "update",
    };
}

impl Workflow for RotateCaCertificate {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::RotateCa
    }

    fn supported(&self, _groups: &[NodeGroup], driver: &DriverInfo) -> Result<(), Fault> {
        if driver.capabilities.rotate_ca {
            return Ok(());
        }
        Err(Fault::new(
            Exception::NotSupported,
            "'rotate_ca_certificate' is not supported by this driver.",
        ))
    }
}
