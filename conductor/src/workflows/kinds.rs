//! The kinds of operations, a file each: its [`Description`], its arguments as the journal keeps them, and what they
//! mean for the driver ([`Workflow`]).
//!
//! To add a kind, write its file, name it in the list below, and give it a handler (`docs/ARCHITECTURE.md` says what
//! asks for one). Everything else (journal, time limits, statuses, crash points, notifications) follows from the
//! description.
//!
//! Names of arguments, and which are there, are a stored format: only ever add optional ones.

mod cluster_create;
mod cluster_delete;
mod cluster_reboot;
mod cluster_rebuild;
mod cluster_resize;
mod cluster_update;
mod cluster_upgrade;
mod credential_rotate;
mod nodegroup_create;
mod nodegroup_delete;
mod nodegroup_update;
mod rotate_ca_certificate;

use std::fmt;
use std::str::FromStr;

use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::status::UnknownText;
use magnum_common::model::{Action, ClusterStatus, Outcome};
use serde::{Deserialize, Serialize};

use super::description::{Description, GroupStatuses, ReplyValue, Step, Workflow};

pub use cluster_create::ClusterCreate;
pub use cluster_delete::ClusterDelete;
pub use cluster_reboot::ClusterReboot;
pub use cluster_rebuild::ClusterRebuild;
pub use cluster_resize::ClusterResize;
pub use cluster_update::ClusterUpdate;
pub use cluster_upgrade::ClusterUpgrade;
pub use credential_rotate::CredentialRotate;
pub use nodegroup_create::NodegroupCreate;
pub use nodegroup_delete::NodegroupDelete;
pub use nodegroup_update::NodegroupUpdate;
pub use rotate_ca_certificate::RotateCaCertificate;

/// Makes the two enums from one list. The arguments of a kind have its name, and a constant `DESCRIPTION`.
macro_rules! kinds {
    ($($kind:ident),+ $(,)?) => {
        /// What an accepted request asks for. The texts are the RPC methods' names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names are the methods'")]
        pub enum OperationKind { $($kind),+ }

        /// What is to be done, with the arguments, as the journal keeps them.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[expect(missing_docs, reason = "the names are the methods'")]
        pub enum Work { $($kind($kind)),+ }

        impl OperationKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$kind),+];

            /// All that is known of the kind.
            pub const fn description(self) -> &'static Description {
                match self { $(Self::$kind => &$kind::DESCRIPTION),+ }
            }
        }

        impl Work {
            /// The kind of operation it is.
            pub const fn kind(&self) -> OperationKind {
                match self { $(Self::$kind(_) => OperationKind::$kind),+ }
            }

            /// The request, whatever its kind.
            pub fn workflow(&self) -> &dyn Workflow {
                match self { $(Self::$kind(request) => request),+ }
            }
        }

        $(impl From<$kind> for Work {
            fn from(request: $kind) -> Self {
                Self::$kind(request)
            }
        })+
    };
}

kinds! {
    ClusterCreate,
    ClusterUpdate,
    ClusterDelete,
    ClusterResize,
    ClusterUpgrade,
    NodegroupCreate,
    NodegroupUpdate,
    NodegroupDelete,
    RotateCaCertificate,
    CredentialRotate,
    ClusterRebuild,
    ClusterReboot,
}

impl OperationKind {
    /// The text in the journal: the RPC method.
    pub const fn as_str(self) -> &'static str {
        self.description().method
    }

    /// The cluster's status with this kind's action and `outcome`.
    pub const fn status(self, outcome: Outcome) -> ClusterStatus {
        ClusterStatus::of(self.description().action, outcome)
    }

    /// Whether the cluster is in progress while this is done.
    pub const fn moves_status(self) -> bool {
        self.description().moves_status
    }

    /// Whether a call of it is answered as soon as it is in the journal.
    pub const fn is_answered_when_accepted(self) -> bool {
        matches!(self.description().answer, ReplyValue::Accepted)
    }

    /// The steps, in order.
    pub const fn steps(self) -> &'static [Step] {
        self.description().steps
    }

    /// The step to begin with, given the last one whose result is journalled. `None`: nothing is left.
    pub fn step_after(self, done: Option<Step>) -> Option<Step> {
        let steps = self.steps();
        match done {
            None => steps.first().copied(),
            Some(done) => steps
                .iter()
                .position(|step| *step == done)
                .and_then(|at| steps.get(at + 1))
                .copied(),
        }
    }

    /// The step that an operation begins with.
    pub fn first_step(self) -> Step {
        self.step_after(None).unwrap_or(Step::ChooseDriver)
    }
}

impl Work {
    /// The node group that is to be gone in the end.
    pub fn removed_group(&self) -> Option<&NodeGroupUuid> {
        self.group_with(Action::Delete)
    }

    /// The node group that is to come about. Its row is there since the request was accepted, in progress.
    pub fn new_group(&self) -> Option<&NodeGroupUuid> {
        self.group_with(Action::Create)
    }

    fn group_with(&self, action: Action) -> Option<&NodeGroupUuid> {
        match self.kind().description().group_statuses {
            GroupStatuses::OfGroup(of) if of == action => self.workflow().node_group(),
            _ => None,
        }
    }
}

impl fmt::Display for OperationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for OperationKind {
    type Err = UnknownText;

    fn from_str(text: &str) -> Result<Self, UnknownText> {
        Self::ALL
            .iter()
            .find(|kind| kind.as_str() == text)
            .copied()
            .ok_or_else(|| UnknownText {
                kind: "OperationKind",
                text: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests;
