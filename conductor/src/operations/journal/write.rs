//! Journal writes that need no lease: recording, and moves of operations that nobody works on.
//!
//! Each move compares the state it moves from; zero rows is [`JournalError::Stale`], and the caller reads and
//! decides again.

use diesel::prelude::*;
use magnum_db::{self as db, AnyConnection, schema};

use super::rows::{EventKind, NewEvent, NewOperation, OperationRow};
use super::{Event, JournalError, append};
use crate::operations::state::State;
use crate::operations::stored_reply::StoredReply;

use crate::store::insert_many;
use schema::conductor_operation::dsl as op;

/// The longest text kept of a reason or a progress report: MySQL's TEXT ends at 64 KiB.
const MAX_TEXT: usize = 16 * 1024;

/// A text short enough for its column.
pub fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

/// The columns every end of an operation sets: nobody owns it, its cluster is free, its context is erased.
#[derive(AsChangeset)]
#[diesel(table_name = schema::conductor_operation, treat_none_as_null = true)]
pub(super) struct Ending<'a> {
    state: &'static str,
    running_key: Option<&'a str>,
    owner: Option<&'a str>,
    lease_expires_ms: Option<i64>,
    next_attempt_ms: Option<i64>,
    context: Option<&'a [u8]>,
    reason: Option<&'a str>,
    ended_ms: Option<i64>,
    updated_ms: i64,
}

impl<'a> Ending<'a> {
    pub(super) fn new(state: State, reason: Option<&'a str>, now: i64) -> Self {
        Self {
            state: state.as_str(),
            running_key: None,
            owner: None,
            lease_expires_ms: None,
            next_attempt_ms: None,
            context: None,
            reason: reason.map(clip),
            ended_ms: Some(now),
            updated_ms: now,
        }
    }
}

/// Records operations together with their first event. A message id that is there already is a
/// `UniqueViolation`: the caller looks for known ones first, and this is what a race between two consumers of
/// one redelivered message ends in.
///
/// # Errors
/// The database failed.
pub fn record(conn: &mut AnyConnection, operations: &[NewOperation], by: &str) -> Result<(), JournalError> {
    if operations.is_empty() {
        return Ok(());
    }
    let events: Vec<NewEvent> = operations
        .iter()
        .map(|operation| NewEvent {
            operation_uuid: operation.uuid.clone(),
            at_ms: operation.created_ms,
            attempt: 0,
            epoch: 0,
            kind: first_event(operation).as_str().to_owned(),
            step: None,
            conductor: Some(by.to_owned()),
            detail: operation.reason.clone(),
        })
        .collect();
    insert_many!(conn, op::conductor_operation, operations)?;
    insert_many!(conn, schema::conductor_operation_event::table, events)?;
    Ok(())
}

fn first_event(operation: &NewOperation) -> EventKind {
    if operation.state == State::Refused.as_str() {
        EventKind::Refused
    } else if operation.state == State::Cancelled.as_str() {
        EventKind::Merged
    } else {
        EventKind::Accepted
    }
}

/// Ends an operation that nobody works on and that is in `from`.
///
/// # Errors
/// [`JournalError::Stale`]: the row is not as it was when it was read, or had ended so that this is no end of it. Else the
/// database failed.
pub fn end(
    conn: &mut AnyConnection,
    row: i64,
    from: State,
    to: State,
    reason: Option<&str>,
    by: Option<&str>,
) -> Result<(), JournalError> {
    if !from.may_end_as(to) {
        return Err(JournalError::Stale);
    }
    let now = db::now_ms(conn)?;
    let moved = diesel::update(
        op::conductor_operation
            .filter(op::id.eq(row))
            .filter(op::state.eq(from.as_str())),
    )
    .set(Ending::new(to, reason, now))
    .execute(conn)?;
    if moved == 0 {
        return Err(JournalError::Stale);
    }
    let detail = match reason {
        Some(reason) => format!("{to}: {}", clip(reason)),
        None => to.to_string(),
    };
    note(conn, row, EventKind::Ended, by, Some(&detail))
}

/// Ends an operation that nobody works on, whatever is in it: as it was read, open, and of an owner that has left it behind. Its event
/// names who does it.
///
/// # Errors
/// [`JournalError::Stale`]: the row is not as it was when it was read. Else the database failed.
pub fn end_unread(
    conn: &mut AnyConnection,
    row: &OperationRow,
    reason: &str,
    by: &str,
) -> Result<(), JournalError> {
    let now = db::now_ms(conn)?;
    let is_left_behind = op::state
        .ne(State::Running.as_str())
        .or(op::lease_expires_ms.is_null())
        .or(op::lease_expires_ms.le(now));
    let ended = diesel::update(
        op::conductor_operation
            .filter(op::id.eq(row.id))
            .filter(op::state.eq(&row.state))
            .filter(op::state.eq_any(State::OPEN.iter().map(|state| state.as_str())))
            .filter(op::lease_epoch.eq(row.lease_epoch))
            .filter(is_left_behind),
    )
    .set(Ending::new(State::Failed, Some(reason), now))
    .execute(conn)?;
    if ended == 0 {
        return Err(JournalError::Stale);
    }
    let detail = format!("{}: {}", State::Failed, clip(reason));
    note(conn, row.id, EventKind::Ended, Some(by), Some(&detail))
}

/// Asks a running operation to stop: at its next step boundary, or when its conductor renews the lease.
///
/// # Errors
/// [`JournalError::Stale`]: the row is not as it was when it was read. Else the database failed.
pub fn request_stop(
    conn: &mut AnyConnection,
    row: i64,
    by: Option<&str>,
    reason: &str,
) -> Result<(), JournalError> {
    let asked = diesel::update(
        op::conductor_operation
            .filter(op::id.eq(row))
            .filter(op::state.eq(State::Running.as_str())),
    )
    .set(op::stop_requested.eq(true))
    .execute(conn)?;
    if asked == 0 {
        return Err(JournalError::Stale);
    }
    note(conn, row, EventKind::StopRequested, by, Some(reason))
}

/// Makes a waiting retry due now. Quietly does nothing when it is not waiting any more.
///
/// # Errors
/// The database failed.
pub fn make_due(conn: &mut AnyConnection, row: i64, by: Option<&str>) -> Result<bool, JournalError> {
    let updated = diesel::update(
        op::conductor_operation
            .filter(op::id.eq(row))
            .filter(op::state.eq(State::Retrying.as_str())),
    )
    .set(op::next_attempt_ms.eq(None::<i64>))
    .execute(conn)?;
    if updated == 1 {
        note(conn, row, EventKind::Hastened, by, None)?;
    }
    Ok(updated == 1)
}

/// Puts a failed operation back into the queue with its counters at zero.
///
/// # Errors
/// [`JournalError::Stale`]: the row is not as it was when it was read. Else the database failed.
pub fn requeue_failed(
    conn: &mut AnyConnection,
    row: i64,
    step: &str,
    args: &[u8],
    by: &str,
) -> Result<(), JournalError> {
    let now = db::now_ms(conn)?;
    let moved = diesel::update(
        op::conductor_operation
            .filter(op::id.eq(row))
            .filter(op::state.eq(State::Failed.as_str())),
    )
    .set((
        op::state.eq(State::Queued.as_str()),
        op::step.eq(Some(step)),
        op::args.eq(args),
        op::stop_requested.eq(false),
        op::attempts.eq(0),
        op::failures.eq(0),
        op::lost_claims.eq(0),
        op::deadline_ms.eq(None::<i64>),
        op::ended_ms.eq(None::<i64>),
        op::reason.eq(None::<String>),
        op::updated_ms.eq(now),
    ))
    .execute(conn)?;
    if moved == 0 {
        return Err(JournalError::Stale);
    }
    note(conn, row, EventKind::Retried, Some(by), None)
}

/// The answer went out, or nobody waits for it any more. A second conductor that sent it too changes nothing.
///
/// # Errors
/// The database failed.
pub fn answered(
    conn: &mut AnyConnection,
    operation: &str,
    kind: EventKind,
    by: &str,
    detail: Option<&str>,
) -> Result<(), JournalError> {
    let cleared = diesel::update(
        op::conductor_operation
            .filter(op::uuid.eq(operation))
            .filter(op::reply_pending.eq(true)),
    )
    .set(op::reply_pending.eq(false))
    .execute(conn)?;
    if cleared == 1 {
        append(
            conn,
            &Event {
                operation,
                attempt: 0,
                epoch: 0,
                kind,
                step: None,
                by: Some(by),
                detail,
            },
        )?;
    }
    Ok(())
}

/// Stores an answer to be sent.
///
/// # Errors
/// The database failed.
pub fn store_answer(conn: &mut AnyConnection, row: i64, answer: &StoredReply) -> Result<(), JournalError> {
    diesel::update(op::conductor_operation.filter(op::id.eq(row)))
        .set((op::answer.eq(Some(answer.bytes())), op::reply_pending.eq(true)))
        .execute(conn)?;
    Ok(())
}

/// Stores an answer to be sent, if the operation came from a call.
///
/// # Errors
/// The database failed.
pub fn store_answer_of_call(
    conn: &mut AnyConnection,
    row: i64,
    answer: &StoredReply,
) -> Result<(), JournalError> {
    diesel::update(
        op::conductor_operation
            .filter(op::id.eq(row))
            .filter(op::reply.is_not_null()),
    )
    .set((op::answer.eq(Some(answer.bytes())), op::reply_pending.eq(true)))
    .execute(conn)?;
    Ok(())
}

/// Asks for an answer to be sent (again).
///
/// # Errors
/// The database failed.
pub fn answer_again(conn: &mut AnyConnection, operation: &str) -> Result<(), JournalError> {
    diesel::update(
        op::conductor_operation
            .filter(op::uuid.eq(operation))
            .filter(op::answer.is_not_null()),
    )
    .set(op::reply_pending.eq(true))
    .execute(conn)?;
    Ok(())
}

/// An event about the operation in `row`, outside of any lease.
///
/// # Errors
/// The database failed.
pub fn note(
    conn: &mut AnyConnection,
    row: i64,
    kind: EventKind,
    by: Option<&str>,
    detail: Option<&str>,
) -> Result<(), JournalError> {
    let OperationRow {
        uuid,
        attempts,
        lease_epoch,
        ..
    } = super::read::by_row(conn, row)?;
    append(
        conn,
        &Event {
            operation: &uuid,
            attempt: attempts,
            epoch: lease_epoch,
            kind,
            step: None,
            by,
            detail,
        },
    )
}
