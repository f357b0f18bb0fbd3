//! `cluster_delete`: have the driver take the cluster away, then remove its rows.
//!
//! `DELETE_IN_PROGRESS` is written when the request is accepted, before the driver is called (Magnum writes it
//! after, so that a crash leaves a half deleted cluster that looks complete). A cluster whose driver is not
//! there ends in `DELETE_FAILED` with the reason instead of a silent nothing.
//!
//! The rows are removed in the transaction that records the driver's `DELETE_COMPLETE`, so there is no moment
//! at which the cluster is gone and its operation still open.

use super::Step;

/// The steps, in order.
pub const STEPS: &[Step] = &[Step::ChooseDriver, Step::DeleteCluster];
