//! What an operator may do to operations: look, retry, discard. Dead letters are data.
//!
//! Each action leaves an event with who did it. Nothing here shows a context, an answer or a reply address.

use magnum_common::db::AnyConnection;
use magnum_common::model::{ClusterStatus, Outcome};

use super::journal::rows::EventRow;
use super::journal::{JournalError, Operation, OperationRow, read, write};
use super::settle;
use super::state::State;
use crate::store;
use crate::workflows::{Args, OperationKind};

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

impl From<magnum_common::db::DbError> for AdminError {
    fn from(error: magnum_common::db::DbError) -> Self {
        Self::Journal(error.into())
    }
}

/// An operation with its events.
pub fn show(conn: &mut AnyConnection, uuid: &str) -> Result<(OperationRow, Vec<EventRow>), AdminError> {
    let row = read::find(conn, uuid)?.ok_or_else(|| AdminError::Unknown(uuid.to_owned()))?;
    let events = read::events(conn, uuid)?;
    Ok((row, events))
}

/// Another try: a waiting retry becomes due now; a failed operation goes back into the queue if its cluster is
/// still as the failure left it. The token it was accepted with is gone by then: only drivers that do not act
/// with the user's token can do it.
pub fn retry(conn: &mut AnyConnection, uuid: &str, by: &str) -> Result<&'static str, AdminError> {
    let row = read::find(conn, uuid)?.ok_or_else(|| AdminError::Unknown(uuid.to_owned()))?;
    let operation = Operation::try_from(row).map_err(JournalError::from)?;
    match operation.state {
        State::Retrying => {
            if !write::hasten(conn, operation.row, Some(by))? {
                return Err(AdminError::Journal(JournalError::Stale));
            }
            Ok("the next attempt is due now")
        }
        State::Failed => {
            reopen(conn, &operation)?;
            write::requeue_failed(
                conn,
                operation.row,
                settle::first_step(operation.kind).as_str(),
                by,
            )?;
            Ok("queued again")
        }
        state => Err(AdminError::Refused(format!(
            "operation {uuid} is {state}; only a failed or retrying one can be retried"
        ))),
    }
}

fn reopen(conn: &mut AnyConnection, operation: &Operation) -> Result<(), AdminError> {
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
    let failed = operation.kind.status(Outcome::Failed);
    if cluster.status != Some(failed) {
        return Err(AdminError::Refused(format!(
            "the cluster is {} and not {failed} any more; send a new request instead",
            cluster.status.map_or("without status", ClusterStatus::as_str)
        )));
    }
    let to = operation.kind.status(Outcome::InProgress);
    if !store::clusters::set_status(conn, &operation.cluster, Some(failed), to, None)
        .map_err(JournalError::from)?
    {
        return Err(AdminError::Journal(JournalError::Stale));
    }
    if operation.kind != OperationKind::ClusterUpdate {
        store::node_groups::set_all_status(conn, &operation.cluster, to).map_err(JournalError::from)?;
    }
    if let Args::ClusterUpdate {
        resized: Some(resized),
        ..
    } = &operation.args
    {
        store::node_groups::set_count(conn, &resized.node_group, resized.from, resized.to)
            .map_err(JournalError::from)?;
    }
    Ok(())
}

/// Gives an operation up. One that waits ends as cancelled and its cluster as `*_FAILED`; one that runs is asked
/// to stop at its next border; a failed one leaves the list of failures.
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
                Ok(operation) => settle::give_up(conn, &operation, State::Cancelled, reason, by)?,
                // Unreadable ones must be discardable too; their cluster cannot be told from here.
                Err(_) => write::end(conn, number, state, State::Cancelled, Some(reason), Some(by))?,
            }
            Ok("discarded")
        }
        State::Running => {
            write::request_stop(conn, number, Some(by), reason)?;
            Ok("asked to stop at its next border")
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
