//! What a failure to accept means: for all requests, for one of them, or for good.

use std::time::Duration;

use magnum_common::error::Fault;
use magnum_db::DbError;

use crate::operations::journal::{JournalError, UNKNOWN_PATIENCE};

/// What is told of a request that the database does not take: the column, and not the database's words.
pub(super) fn not_taken(error: &JournalError) -> Fault {
    let column = match error {
        JournalError::Db(error) => error.refused_value().flatten(),
        _ => None,
    };
    Fault::invalid_parameter(match column {
        Some(column) => format!("The database does not take the request's value of {column}."),
        None => "The database does not take one of the request's values.".to_owned(),
    })
}

/// Whether nothing can be accepted for now. A failure that nobody knows is one until the request has met it for
/// [`UNKNOWN_PATIENCE`].
pub(super) fn is_outage(error: &JournalError, tried_for: Duration) -> bool {
    let is_given_up = error.is_unknown() && tried_for >= UNKNOWN_PATIENCE;
    !is_collision(error) && error.is_transient() && !is_given_up
}

/// Whether a row that somebody else has locked was in the way.
pub(super) const fn is_locked(error: &JournalError) -> bool {
    matches!(error, JournalError::Db(error) if error.is_locked())
}

/// Whether what keeps a request from being accepted may concern it alone.
pub(super) fn is_its_own(error: &JournalError) -> bool {
    is_locked(error) || error.is_unknown() || is_collision(error)
}

/// Whether another transaction was faster, with the same rows.
pub(super) fn is_collision(error: &JournalError) -> bool {
    matches!(
        error,
        JournalError::Stale | JournalError::Db(DbError::UniqueViolation { .. })
    )
}
