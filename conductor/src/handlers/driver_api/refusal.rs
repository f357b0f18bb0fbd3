//! Why a call of a driver's own API is not made, or has no reply, in words for its sender.

use std::time::Duration;

use magnum_common::error::Fault;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::ClusterStatus;
use magnum_driver_api::Reason;
use magnum_drivers::{ApiQuestion, ApiRefusal};

use crate::operations::hold::NotHeld;

/// A call that is not made, or has no reply.
pub(super) type Refusal = (ApiRefusal, Reason);

/// Whether a call may change a cluster in this status, which a Python conductor may have written; why not.
pub(super) fn may_change(status: Option<ClusterStatus>) -> Result<(), Reason> {
    match status {
        Some(status) if status.is_in_progress() || status == ClusterStatus::DeleteComplete => {
            Err(Reason::open(format!(
                "The cluster is {status}; a call that may change something needs it to itself. Try again when it is done."
            )))
        }
        _ => Ok(()),
    }
}

/// The cluster does not exist, or not for the caller.
pub(super) fn not_found(uuid: &ClusterUuid) -> Refusal {
    (
        ApiRefusal::NotFound,
        Reason::open(Fault::cluster_not_found(uuid.as_str()).message),
    )
}

/// The operator does not let users call this cluster's driver. The same refusal as for a driver without an API.
pub(super) fn no_route(uuid: &ClusterUuid) -> Refusal {
    (
        ApiRefusal::NotFound,
        Reason::open(format!(
            "The driver of cluster {uuid} has no API of its own that can be called."
        )),
    )
}

/// The cluster cannot be had for the call alone.
pub(super) fn not_held(error: NotHeld) -> Refusal {
    match error {
        NotHeld::Busy => (
            ApiRefusal::Conflict,
            "Another operation works on the cluster, or waits to; a call that may change something needs it to \
             itself. Try again when that has ended."
                .into(),
        ),
        NotHeld::Known => (
            ApiRefusal::Conflict,
            "This request was begun before, and whoever began it has ended; it is not repeated, and whether it had an \
             effect is not known. Look at the cluster."
                .into(),
        ),
        NotHeld::Journal(error) => no_database(&error),
    }
}

/// The database failed. Logged here.
pub(super) fn no_database(error: &dyn std::fmt::Display) -> Refusal {
    tracing::warn!(%error, "a call of a driver's own API finds no database");
    let reason = "The database is not available at the moment. Nothing was changed. Please try again later.";
    (ApiRefusal::Unavailable, reason.into())
}

/// The driver took longer than its sender or the option allows.
pub(super) fn timed_out(question: &ApiQuestion, limit: Duration) -> Refusal {
    let seconds = limit.as_secs_f64();
    (
        ApiRefusal::TimedOut,
        Reason::open(format!(
            "The cluster's driver did not reply to {} {} within {seconds} seconds, and was stopped.",
            question.method, question.path
        )),
    )
}

/// The call was stopped from outside, for the reason `why`.
pub(super) fn interrupted(why: &str) -> Refusal {
    (
        ApiRefusal::Unavailable,
        Reason::open(format!(
            "The call was stopped: {why}. Whether it had an effect is not known; look at the cluster before you repeat \
             it."
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_at_work_may_not_be_changed() {
        for status in ClusterStatus::ALL {
            let may = may_change(Some(*status));
            let is_at_work =
                status.as_str().ends_with("_IN_PROGRESS") || *status == ClusterStatus::DeleteComplete;
            assert_eq!(may.is_err(), is_at_work, "{status}");
        }
        assert_eq!(may_change(None), Ok(()));
    }
}
