//! What is known of a kind of operation before any request of it: the form that each file of [`super::kinds`] fills in.

use std::fmt;
use std::str::FromStr;

use magnum_common::error::Fault;
use magnum_common::ids::{NodeGroupUuid, TemplateUuid};
use magnum_common::model::status::UnknownText;
use magnum_common::model::{Action, ClusterStatus, ClusterTemplate, NodeGroup};
use magnum_drivers::DriverInfo;

use super::{OperationKind, format};
use magnum_driver_api::Task;

/// A kind of operation, but for what differs from request to request ([`Workflow`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// The RPC method that asks for it, and its text in journals: at most 32 characters, never renamed.
    pub method: &'static str,
    /// The steps in order. Never empty; the last one calls the driver.
    pub steps: &'static [Step],
    /// The text of [`Step::CallDriver`] in journals and in the names of crash points: at most 32 characters, never
    /// renamed.
    pub driver_step: &'static str,
    /// The statuses of the cluster in which it may begin.
    pub begins_in: BeginsIn,
    /// What is not supported in the other ones.
    pub refused_as: &'static str,
    /// The first word of the statuses that it writes to the cluster.
    pub action: Action,
    /// Whether the cluster is `*_IN_PROGRESS` meanwhile. Without, its status changes only if the driver reports one.
    pub moves_status: bool,
    /// What the node groups show while it runs.
    pub group_statuses: GroupStatuses,
    /// Whether a driver that cannot do it leaves no trace: the status is put back, and only the caller hears of it.
    pub is_put_back_when_unsupported: bool,
    /// How long it may take as a whole.
    pub time_limit: TimeLimit,
    /// What the cluster was not when the time was over.
    pub timed_out_as: &'static str,
    /// The answer to a call that goes well.
    pub answer: ReplyValue,
    /// The end of the notification's event type, and CADF's word for the action.
    pub notification: &'static str,
}

/// A set of statuses. All but [`BeginsIn::AnyStatus`] leave out a cluster that is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeginsIn {
    /// All.
    AnyStatus,
    /// All but `DELETE_IN_PROGRESS` and `DELETE_COMPLETE`.
    NotDeleting,
    /// `*_COMPLETE`.
    Complete,
    /// `*_COMPLETE`, `UPDATE_IN_PROGRESS` and `UPDATE_FAILED`.
    CompleteOrUpdating,
}

impl BeginsIn {
    /// Whether `status` is one of the set.
    pub fn contains(self, status: Option<ClusterStatus>) -> bool {
        use ClusterStatus as S;
        let complete = || status.is_some_and(|status| S::COMPLETE.contains(&status));
        match self {
            Self::AnyStatus => true,
            Self::NotDeleting => !matches!(status, Some(S::DeleteInProgress | S::DeleteComplete)),
            Self::Complete => complete(),
            Self::CompleteOrUpdating => {
                complete() || matches!(status, Some(S::UpdateFailed | S::UpdateInProgress))
            }
        }
    }
}

/// What the node groups of a cluster show while an operation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupStatuses {
    /// All of them the cluster's status.
    OfCluster,
    /// The group that it is about, this action in progress; with [`Action::Delete`], its row goes in the end. All
    /// groups the cluster's status, if it is about none.
    OfGroup(Action),
    /// What they showed before.
    Unchanged,
}

/// What limits the time of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeLimit {
    /// `create_timeout` of the cluster.
    CreateTimeout,
    /// `[conductor] update_timeout`
    Update,
    /// `[conductor] delete_timeout`
    Delete,
    /// `[conductor] upgrade_timeout`
    Upgrade,
    /// `[conductor] rotation_timeout`
    Rotation,
}

impl TimeLimit {
    /// Where it is set, for a reader of a reason.
    pub const fn set_by(self) -> &'static str {
        match self {
            Self::CreateTimeout => "create_timeout of the cluster",
            Self::Update => "option [conductor] update_timeout",
            Self::Delete => "option [conductor] delete_timeout",
            Self::Upgrade => "option [conductor] upgrade_timeout",
            Self::Rotation => "option [conductor] rotation_timeout",
        }
    }
}

/// What a call is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyValue {
    /// The cluster, as its row is then.
    Cluster,
    /// The node group, as its row is then.
    NodeGroup,
    /// Null.
    Nothing,
    /// Null as soon as the request is in the journal: the caller does not wait for the driver.
    Accepted,
}

/// A step of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Find the driver and remember name and version for the cluster's whole life.
    ChooseDriver,
    /// Make the cluster's certificates and keep them in their store.
    GenerateCertificates,
    /// Let the driver choose the nodes that go, and remember them: see [`super::choose_nodes`]. Left out where there is
    /// nothing to choose.
    ChooseNodes,
    /// Ask the driver for what this kind is about.
    CallDriver(OperationKind),
}

impl Step {
    /// The text in the journal and in the names of crash points.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChooseDriver => "choose_driver",
            Self::GenerateCertificates => "generate_certificates",
            Self::ChooseNodes => "choose_nodes",
            Self::CallDriver(kind) => kind.description().driver_step,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Step {
    type Err = UnknownText;

    fn from_str(text: &str) -> Result<Self, UnknownText> {
        OperationKind::ALL
            .iter()
            .flat_map(|kind| kind.description().steps)
            .find(|step| step.as_str() == text)
            .copied()
            .ok_or_else(|| UnknownText {
                kind: "Step",
                text: text.to_owned(),
            })
    }
}

/// What one request asks for: the arguments that the journal keeps, seen by whoever need not know their kind.
pub trait Workflow {
    /// The lowest format of the journal with which it can be carried out: see [`mod@format`].
    fn format(&self) -> i32 {
        format::FIRST
    }

    /// What the driver is asked for. `template`: the one that the cluster shall have afterwards.
    fn task<'a>(&'a self, template: &'a ClusterTemplate) -> Task<'a>;

    /// The node group it is about, if it is about one.
    fn node_group(&self) -> Option<&NodeGroupUuid> {
        None
    }

    /// The number of nodes that this group shall have.
    fn node_count(&self) -> Option<i32> {
        None
    }

    /// The template that the cluster is to go to.
    fn new_template(&self) -> Option<&TemplateUuid> {
        None
    }

    /// Whether `driver` can do it on a cluster with these groups, by what its manifest says. Asked before anything
    /// changes: when the request is accepted, if the driver is loaded there, and else when the operation has found its
    /// driver. Magnum finds out by calling the driver, after it has changed the rows.
    ///
    /// # Errors
    /// What the caller is told: `NotSupported` and its like, in Magnum's words where Magnum has some.
    fn supported(&self, groups: &[NodeGroup], driver: &DriverInfo) -> Result<(), Fault> {
        let _ = (groups, driver);
        Ok(())
    }
}
