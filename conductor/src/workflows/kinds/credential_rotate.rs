//! A new credential for what runs in a cluster. Its status is left alone, unless the driver
//! reports that it is in progress.

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
pub struct CredentialRotate {}

impl CredentialRotate {
    pub(super) const DESCRIPTION: Description = Description {
        method: "credential_rotate",
        steps: &[
            Step::ChooseDriver,
            Step::CallDriver(OperationKind::CredentialRotate),
        ],
        driver_step: "rotate_credential",
        begins_in: BeginsIn::CompleteOrUpdating,
        refused_as: "Rotating the credential of a cluster",
        action: Action::Update,
        moves_status: false,
        group_statuses: GroupStatuses::Unchanged,
        is_put_back_when_unsupported: false,
        time_limit: TimeLimit::Rotation,
        timed_out_as: "given a new credential",
        answer: ReplyValue::Nothing,
        notification: "update",
    };
}

impl Workflow for CredentialRotate {
    fn task<'a>(&'a self, _template: &'a ClusterTemplate) -> Task<'a> {
        Task::RotateCredential
    }

    fn supported(&self, _groups: &[NodeGroup], driver: &DriverInfo) -> Result<(), Fault> {
        if driver.capabilities.rotate_credential {
            return Ok(());
        }
        Err(Fault::new(
            Exception::NotSupported,
            "Credential rotation is not supported by driver.",
        ))
    }
}
