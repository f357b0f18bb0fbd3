//! What an operation of each kind does, as data and pure functions, plus the one effect: the driver call.
//!
//! A workflow is a list of named steps. The executor ([`crate::operations`]) walks it: intent into the journal,
//! effect, result into the journal. A step whose result is journalled never runs again; one whose intent stands
//! without a result runs again. Hence every step may run twice, and names that a cloud sees come from the
//! cluster's uuid and the operation's id, never from an attempt.
//!
//! Workflows know drivers and domain types. They know neither database nor lease nor message.
//!
//! Where Magnum differs: its handlers run the same sequences in one go, inside the message's thread, and what a
//! crash cuts off is never taken up again.

pub mod args;
pub mod capability;
pub mod choose_driver;
pub mod create_timeout;
pub mod kind;
pub mod outcome;
pub mod rules;
pub mod start;

use std::fmt;
use std::str::FromStr;

use magnum_common::model::status::UnknownText;

pub use args::{Args, Work};
pub use choose_driver::{DriverRef, DriverSource};
pub use kind::OperationKind;

/// The steps of all workflows. The texts are in journals: never rename one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// Find the driver and remember name and version for the cluster's whole life.
    ChooseDriver,
    /// Ask the driver to build the cluster.
    CreateCluster,
    /// Ask the driver to bring the cluster to what its rows say.
    UpdateCluster,
    /// Ask the driver to take the cluster away.
    DeleteCluster,
    /// Ask the driver for another number of nodes in a group.
    ResizeCluster,
    /// Ask the driver to bring the cluster to another template.
    UpgradeCluster,
    /// Ask the driver to build a node group.
    CreateNodeGroup,
    /// Ask the driver to bring a node group to what its row says.
    UpdateNodeGroup,
    /// Ask the driver to take a node group away.
    DeleteNodeGroup,
    /// Make the cluster's certificates and keep them in their store.
    GenerateCertificates,
    /// Ask the driver to bring new certificates to the cluster.
    RotateCa,
    /// Ask the driver for a new credential of the cluster.
    RotateCredential,
}

impl Step {
    /// Every step.
    pub const ALL: &[Self] = &[
        Self::ChooseDriver,
        Self::CreateCluster,
        Self::UpdateCluster,
        Self::DeleteCluster,
        Self::ResizeCluster,
        Self::UpgradeCluster,
        Self::CreateNodeGroup,
        Self::UpdateNodeGroup,
        Self::DeleteNodeGroup,
        Self::GenerateCertificates,
        Self::RotateCa,
        Self::RotateCredential,
    ];

    /// The text in the journal and in border names.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ChooseDriver => "choose_driver",
            Self::CreateCluster => "create_cluster",
            Self::UpdateCluster => "update_cluster",
            Self::DeleteCluster => "delete_cluster",
            Self::ResizeCluster => "resize_cluster",
            Self::UpgradeCluster => "upgrade_cluster",
            Self::CreateNodeGroup => "create_nodegroup",
            Self::UpdateNodeGroup => "update_nodegroup",
            Self::DeleteNodeGroup => "delete_nodegroup",
            Self::GenerateCertificates => "generate_certificates",
            Self::RotateCa => "rotate_ca",
            Self::RotateCredential => "rotate_credential",
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
        Self::ALL
            .iter()
            .find(|step| step.as_str() == text)
            .copied()
            .ok_or_else(|| UnknownText {
                kind: "Step",
                text: text.to_owned(),
            })
    }
}

/// The steps of a kind, in order. Never empty; the last one calls the driver.
pub const fn steps(kind: OperationKind) -> &'static [Step] {
    match kind {
        OperationKind::ClusterCreate => &[
            Step::ChooseDriver,
            Step::GenerateCertificates,
            Step::CreateCluster,
        ],
        OperationKind::ClusterUpdate => &[Step::ChooseDriver, Step::UpdateCluster],
        OperationKind::ClusterDelete => &[Step::ChooseDriver, Step::DeleteCluster],
        OperationKind::ClusterResize => &[Step::ChooseDriver, Step::ResizeCluster],
        OperationKind::ClusterUpgrade => &[Step::ChooseDriver, Step::UpgradeCluster],
        OperationKind::NodegroupCreate => &[Step::ChooseDriver, Step::CreateNodeGroup],
        OperationKind::NodegroupUpdate => &[Step::ChooseDriver, Step::UpdateNodeGroup],
        OperationKind::NodegroupDelete => &[Step::ChooseDriver, Step::DeleteNodeGroup],
        OperationKind::RotateCaCertificate => {
            &[Step::ChooseDriver, Step::GenerateCertificates, Step::RotateCa]
        }
        OperationKind::CredentialRotate => &[Step::ChooseDriver, Step::RotateCredential],
    }
}

/// The step to begin with, given the last one whose result is journalled. `None`: nothing is left.
pub fn step_after(kind: OperationKind, done: Option<Step>) -> Option<Step> {
    let steps = steps(kind);
    match done {
        None => steps.first().copied(),
        Some(done) => steps
            .iter()
            .position(|step| *step == done)
            .and_then(|at| steps.get(at + 1))
            .copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_reads_back_and_fits_its_column() {
        for step in Step::ALL {
            assert_eq!(step.as_str().parse(), Ok(*step));
            assert!(step.as_str().len() <= 32);
        }
    }

    #[test]
    fn walking_a_workflow_visits_each_step_once_and_ends() {
        for kind in OperationKind::ALL {
            let mut walked = Vec::new();
            let mut done = None;
            while let Some(step) = step_after(*kind, done) {
                walked.push(step);
                done = Some(step);
            }
            assert_eq!(walked, steps(*kind), "{kind}");
        }
    }

    #[test]
    fn a_step_of_another_workflow_leaves_nothing_to_do() {
        assert_eq!(
            step_after(OperationKind::ClusterCreate, Some(Step::DeleteCluster)),
            None
        );
    }
}
