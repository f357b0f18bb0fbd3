//! `cluster_update`: bring the default worker group to another node count.
//!
//! Health-only updates and updates that change nothing never get here: they are done in the accept transaction.
//! The wanted count is in the node group's row before the driver is called; a failure restores the old one,
//! as Magnum does, unless something else has changed it meanwhile.

use super::Step;

/// The steps, in order.
pub const STEPS: &[Step] = &[Step::ChooseDriver, Step::UpdateCluster];
