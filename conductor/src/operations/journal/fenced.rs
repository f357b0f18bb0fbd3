//! What a worker writes about its operation. Every function takes the lease and compares it.
//!
//! Callers run these in a transaction that began with [`crate::operations::lease::fence`]; the comparison here
//! is the second lock on the same door, and costs nothing.

use std::time::Duration;

use diesel::prelude::*;
use magnum_db::{self as db, AnyConnection, schema};
use magnum_driver_api::Reason;

use super::rows::EventKind;
use super::write::{Ending, clip, store_answer};
use super::{JournalError, append};
use crate::operations::lease::{Fenced, Lease, fence, held};
use crate::operations::state::State;
use crate::operations::stored_reply::StoredReply;
use crate::workflows::{DriverRef, Step};

use schema::conductor_operation::dsl as op;

fn one(rows: usize) -> Result<(), JournalError> {
    if rows == 1 {
        Ok(())
    } else {
        Err(JournalError::LeaseLost)
    }
}

/// The intent of a step. Tells whether the operation is to stop instead.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn intent(conn: &mut AnyConnection, lease: &Lease, step: Step) -> Result<Fenced, JournalError> {
    let fenced = fence(conn, lease)?;
    if !fenced.stop_requested {
        let mut event = lease.event(EventKind::Intent);
        event.step = Some(step.as_str());
        append(conn, &event)?;
    }
    Ok(fenced)
}

/// The result of a step that is followed by `next`.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn result(
    conn: &mut AnyConnection,
    lease: &Lease,
    step: Step,
    next: Step,
    detail: Option<&str>,
) -> Result<(), JournalError> {
    one(diesel::update(held!(lease))
        .set(op::step.eq(Some(next.as_str())))
        .execute(conn)?)?;
    let mut event = lease.event(EventKind::Result);
    event.step = Some(step.as_str());
    event.detail = detail;
    append(conn, &event)
}

/// The arguments, now that the operation has started.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn set_args(conn: &mut AnyConnection, lease: &Lease, args: &[u8]) -> Result<(), JournalError> {
    one(diesel::update(held!(lease))
        .set(op::args.eq(args))
        .execute(conn)?)
}

/// Conductors have to know this format of the journal to carry the operation out.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn set_format(conn: &mut AnyConnection, lease: &Lease, format: i32) -> Result<(), JournalError> {
    one(diesel::update(held!(lease))
        .set(op::format.eq(format))
        .execute(conn)?)
}

/// The driver that works on the operation.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn set_driver(conn: &mut AnyConnection, lease: &Lease, driver: &DriverRef) -> Result<(), JournalError> {
    one(diesel::update(held!(lease))
        .set((
            op::driver.eq(Some(&driver.name)),
            op::driver_version.eq(Some(&driver.version)),
        ))
        .execute(conn)?)
}

/// Starts the clock of the operation, if it does not run yet. `fenced` is what this transaction's fence has read. Returns
/// the milliseconds left.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn start_deadline(
    conn: &mut AnyConnection,
    lease: &Lease,
    fenced: Fenced,
    limit: Option<Duration>,
) -> Result<Option<i64>, JournalError> {
    if let Some(deadline) = fenced.deadline_ms {
        return Ok(Some(deadline.saturating_sub(fenced.now_ms)));
    }
    let Some(limit) = limit else {
        return Ok(None);
    };
    let limit = i64::try_from(limit.as_millis()).unwrap_or(i64::MAX / 4);
    one(diesel::update(held!(lease))
        .set(op::deadline_ms.eq(Some(fenced.now_ms.saturating_add(limit))))
        .execute(conn)?)?;
    Ok(Some(limit))
}

/// How far the driver got, in its words.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn progress(conn: &mut AnyConnection, lease: &Lease, text: &str) -> Result<(), JournalError> {
    let now = db::now_ms_expr(conn);
    one(diesel::update(held!(lease))
        .set((op::progress_text.eq(Some(clip(text))), op::updated_ms.eq(now)))
        .execute(conn)?)
}

/// Why a step is to be tried again, and with it what counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryAgain {
    /// It failed: one failure more.
    Failed,
    /// It panicked: one failure more, and a panic among the events.
    Panicked,
    /// This conductor cannot do it, another one may: not even the claim counts.
    NotHere,
    /// This release cannot read it, another one may: the same.
    Unread,
}

/// A step to be tried again after `delay`, by whoever claims it then. The whole `reason`: while an operation is open,
/// administrators read it and nobody else.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn retry_later(
    conn: &mut AnyConnection,
    lease: &Lease,
    step: Option<&str>,
    delay: Duration,
    why: TryAgain,
    reason: &str,
) -> Result<(), JournalError> {
    let (failures, claims, kind) = match why {
        TryAgain::Failed => (1, 0, EventKind::Failed),
        TryAgain::Panicked => (1, 0, EventKind::Panicked),
        TryAgain::NotHere => (0, 1, EventKind::Released),
        TryAgain::Unread => (0, 1, EventKind::Unread),
    };
    let at = db::now_plus_ms_expr(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX / 4));
    one(diesel::update(held!(lease))
        .set((
            op::state.eq(State::Retrying.as_str()),
            op::failures.eq(op::failures + failures),
            op::attempts.eq(op::attempts - claims),
            op::next_attempt_ms.eq(at.nullable()),
            op::owner.eq(None::<String>),
            op::lease_expires_ms.eq(None::<i64>),
            op::reason.eq(Some(clip(reason))),
        ))
        .execute(conn)?)?;
    let mut event = lease.event(kind);
    event.step = step;
    event.detail = Some(clip(reason));
    append(conn, &event)
}

/// The driver call returned and the cloud goes on working: the operation has no owner, but keeps its cluster.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn observe(
    conn: &mut AnyConnection,
    lease: &Lease,
    step: Step,
    answer: Option<&StoredReply>,
) -> Result<(), JournalError> {
    one(diesel::update(held!(lease))
        .set((
            op::state.eq(State::Observing.as_str()),
            op::owner.eq(None::<String>),
            op::lease_expires_ms.eq(None::<i64>),
            op::reason.eq(None::<String>),
        ))
        .execute(conn)?)?;
    if let Some(answer) = answer {
        store_answer(conn, lease.row(), answer)?;
    }
    let mut event = lease.event(EventKind::Observing);
    event.step = Some(step.as_str());
    append(conn, &event)
}

/// The end, whatever it is. Erases the context and frees the cluster. The operation has the reason as its owner reads it,
/// the event the whole.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn end(
    conn: &mut AnyConnection,
    lease: &Lease,
    state: State,
    reason: Option<&Reason>,
    answer: Option<&StoredReply>,
) -> Result<(), JournalError> {
    let now = db::now_ms(conn)?;
    one(diesel::update(held!(lease))
        .set(Ending::new(state, reason.map(Reason::told), now))
        .execute(conn)?)?;
    if let Some(answer) = answer {
        store_answer(conn, lease.row(), answer)?;
    }
    let detail = match reason {
        Some(reason) => format!("{state}: {}", clip(reason.whole())),
        None => state.to_string(),
    };
    let mut event = lease.event(EventKind::Ended);
    event.detail = Some(&detail);
    append(conn, &event)
}

/// Counts a failure of an operation that is about to end with it.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn count_failure(conn: &mut AnyConnection, lease: &Lease) -> Result<(), JournalError> {
    one(diesel::update(held!(lease))
        .set(op::failures.eq(op::failures + 1))
        .execute(conn)?)
}
