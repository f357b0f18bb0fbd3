//! What an operator may do to operations: look, retry, discard. Dead letters are data.
//!
//! Each action leaves an event with who did it. Nothing here shows a context, an answer or a reply address.

use magnum_common::model::{ClusterStatus, Outcome};
use magnum_db::AnyConnection;

use super::finish;
use super::hold;
use super::journal::rows::EventRow;
use super::journal::{JournalError, Operation, OperationRow, read, write};
use super::state::State;
use crate::store;
use crate::workflows::Args;
use crate::workflows::start::start;

/// Why an action was refused.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No such operation.
    #[error("there is no operation {0}; see `magnum-conductor operations list`")]
    Unknown(String),
    /// The operation's state does not allow it.
    #[error("{0}")]
    Refused(String),
}

impl From<magnum_db::DbError> for AdminError {
    fn from(error: magnum_db::DbError) -> Self {
        Self::Journal(error.into())
    }
}

/// An operation with its events.
///
/// # Errors
/// See [`AdminError`].
pub fn show(conn: &mut AnyConnection, uuid: &str) -> Result<(OperationRow, Vec<EventRow>), AdminError> {
    let row = read::find(conn, uuid)?.ok_or_else(|| AdminError::Unknown(uuid.to_owned()))?;
    let events = read::events(conn, uuid)?;
    Ok((row, events))
}

/// Another try: a waiting retry becomes due now; a failed operation goes back into the queue if its cluster is
/// still as the failure left it. The token it was accepted with is gone by then: only drivers that do not act
/// with the user's token can do it.
///
/// # Errors
/// See [`AdminError`].
pub fn retry(conn: &mut AnyConnection, uuid: &str, by: &str) -> Result<&'static str, AdminError> {
    let row = read::find(conn, uuid)?.ok_or_else(|| AdminError::Unknown(uuid.to_owned()))?;
    let state = row.state.parse::<State>();
    if let Ok(state) = state
        && !matches!(state, State::Retrying | State::Failed)
    {
        return Err(AdminError::Refused(format!(
            "operation {uuid} is {state}; only a failed or retrying one can be retried"
        )));
    }
    if row.kind == hold::KIND {
        return Err(AdminError::Refused(format!(
            "operation {uuid} was a call of a driver's own API, which is never repeated; send a new request instead"
        )));
    }
    let operation = Operation::try_from(row).map_err(JournalError::from)?;
    match operation.state {
        State::Retrying => {
            if !write::make_due(conn, operation.row, Some(by))? {
                return Err(AdminError::Journal(JournalError::Stale));
            }
            Ok("the next attempt is due now")
        }
        State::Failed => {
            let args = reopen(conn, &operation)?;
            store::certificate_removals::keep_made_by(conn, &operation.id)?;
            let args = args
                .to_bytes()
                .map_err(|error| AdminError::Refused(error.to_string()))?;
            let step = operation.kind.first_step();
            write::requeue_failed(conn, operation.row, step.as_str(), &args, by)?;
            Ok("queued again")
        }
        state => Err(AdminError::Refused(format!(
            "operation {uuid} is {state}; only a failed or retrying one can be retried"
        ))),
    }
}

/// The rows show again what is wanted. Returns the arguments with the way back from here.
fn reopen(conn: &mut AnyConnection, operation: &Operation) -> Result<Args, AdminError> {
    let cluster = store::clusters::find(conn, &operation.cluster)
        .map_err(JournalError::from)?
        .ok_or_else(|| {
            AdminError::Refused(format!("cluster {} does not exist any more", operation.cluster))
        })?;
    let others = read::open(conn, &[operation.cluster.as_str()])?;
    if let Some(other) = others.first() {
        return Err(AdminError::Refused(format!(
            "operation {} of the same cluster is {}; wait for its end",
            other.uuid, other.state
        )));
    }
    // One that does not move the status begins from whatever it is.
    let failed = operation.kind.status(Outcome::Failed);
    if operation.kind.moves_status() && cluster.status != Some(failed) {
        return Err(AdminError::Refused(format!(
            "the cluster is {} and not {failed} any more; send a new request instead",
            cluster.status.map_or("without status", ClusterStatus::as_str)
        )));
    }
    let groups = store::node_groups::of(conn, &operation.cluster).map_err(JournalError::from)?;
    let start =
        start(&operation.args.work, &cluster, &groups).map_err(|fault| AdminError::Refused(fault.message))?;
    if !store::start::apply(conn, &operation.cluster, &start).map_err(JournalError::from)? {
        return Err(AdminError::Journal(JournalError::Stale));
    }
    Ok(operation.args.started_anew(start.started))
}

/// Gives an operation up. One that waits ends as cancelled and its cluster as `*_FAILED`; one that runs is asked
/// to stop; a failed one leaves the list of failures.
///
/// # Errors
/// See [`AdminError`].
pub fn discard(
    conn: &mut AnyConnection,
    uuid: &str,
    reason: &str,
    by: &str,
) -> Result<&'static str, AdminError> {
    let row = read::find(conn, uuid)?.ok_or_else(|| AdminError::Unknown(uuid.to_owned()))?;
    let (number, state) = (row.id, row.state.parse::<State>());
    let Ok(state) = state else {
        return Err(AdminError::Refused(format!(
            "operation {uuid} is in a state that this program does not know: {}",
            row.state
        )));
    };
    match state {
        State::Queued | State::Retrying | State::Observing => {
            match Operation::try_from(row) {
                Ok(operation) => finish::give_up(conn, &operation, State::Cancelled, reason, by)?,
                // Unreadable ones must be discardable too; their cluster cannot be told from here.
                Err(_) => write::end(conn, number, state, State::Cancelled, Some(reason), Some(by))?,
            }
            Ok("discarded")
        }
        State::Running => {
            write::request_stop(conn, number, Some(by), reason)?;
            Ok("asked to stop; its conductor stops the driver within seconds")
        }
        State::Failed => {
            write::end(conn, number, state, State::Cancelled, Some(reason), Some(by))?;
            Ok("discarded")
        }
        State::Succeeded | State::Refused | State::Cancelled => Err(AdminError::Refused(format!(
            "operation {uuid} has ended as {state}; there is nothing to discard"
        ))),
    }
}
