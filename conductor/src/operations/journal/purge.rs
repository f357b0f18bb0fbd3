//! Ended operations leave the journal when their time is over, with their events.
//!
//! Never removed: what is open; what has an answer that is not sent; and the last operation of a cluster that
//! exists, because an operator may still retry or explain it (a refused one does not count: nothing came of it).
//!
//! With an operation goes its message id. A message that comes again after that is a new request: see
//! `docs/DURABILITY.md` for how that would have to happen.
//!
//! What changed nothing (a refusal, a deletion of what is being deleted) goes after a day: a program that asks for the
//! impossible once a minute would fill the journal.
//!
//! The other rows are walked in the order of their numbers and no further than to the first that is too young, so a
//! pass costs what it removes, and one row for each cluster that was left alone for long.

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use magnum_db::{self as db, AnyConnection, schema};

use super::JournalError;
use crate::operations::state::State;
use crate::operations::turns::NO_TURN;

use schema::conductor_operation::dsl as op;
use schema::conductor_operation_event::dsl as event;

/// How long what changed nothing is kept, in milliseconds: so long its message is recognised, and people find the reason.
const BRIEF_MS: i64 = 24 * 60 * 60 * 1000;

/// Not the last thing that happened to a cluster that exists.
const OF_NO_USE: &str = "(conductor_operation.state = 'refused' \
     OR NOT EXISTS (SELECT 1 FROM cluster c WHERE c.uuid = conductor_operation.cluster_uuid) \
     OR EXISTS (SELECT 1 FROM conductor_operation n WHERE n.cluster_uuid = conductor_operation.cluster_uuid \
                AND n.id > conductor_operation.id AND n.state <> 'refused'))";

/// What one step of the walk did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Purged {
    /// Operations removed.
    pub operations: usize,
    /// The row after which the walk goes on; `None` at its end.
    pub next: Option<i64>,
}

/// Removes, of the next `window` rows after the row `after`, those that ended more than `history_ms` ago. To be
/// run in a transaction of its own. `Stale` when somebody needs one of them in this very moment.
///
/// # Errors
/// [`JournalError::Stale`]: the row is not as it was when it was read. Else the database failed.
pub fn purge(
    conn: &mut AnyConnection,
    after: i64,
    history_ms: i64,
    window: i64,
) -> Result<Purged, JournalError> {
    let limit = db::now_ms(conn)?.saturating_sub(history_ms);
    let seen: Vec<(i64, i64)> = op::conductor_operation
        .filter(op::id.gt(after))
        .order(op::id)
        .limit(window)
        .select((op::id, op::created_ms))
        .load(conn)?;
    let Some((last, _)) = seen.last().copied() else {
        return Ok(Purged {
            operations: 0,
            next: None,
        });
    };
    let old: Vec<(i64, String)> = op::conductor_operation
        .filter(op::id.gt(after))
        .filter(op::id.le(last))
        .filter(op::state.eq_any(ended()))
        .filter(op::ended_ms.le(limit))
        .filter(op::reply_pending.eq(false))
        .filter(sql::<Bool>(OF_NO_USE))
        .select((op::id, op::uuid))
        .load(conn)?;
    remove(conn, &old)?;
    let is_young = seen.iter().any(|(_, created_ms)| *created_ms > limit);
    let is_full = i64::try_from(seen.len()).is_ok_and(|seen| seen >= window);
    Ok(Purged {
        operations: old.len(),
        next: (is_full && !is_young).then_some(last),
    })
}

/// Removes at most `limit` operations that changed nothing and ended longer than a day, or than `history_ms`, ago. To be run in a
/// transaction of its own. Returns how many.
///
/// # Errors
/// As for [`purge`].
pub fn purge_idle(conn: &mut AnyConnection, history_ms: i64, limit: i64) -> Result<usize, JournalError> {
    let before = db::now_ms(conn)?.saturating_sub(history_ms.min(BRIEF_MS));
    let old: Vec<(i64, String)> = op::conductor_operation
        .filter(op::state.eq_any(ended()))
        .filter(op::turn.eq(NO_TURN))
        .filter(op::ended_ms.le(before))
        .filter(op::reply_pending.eq(false))
        .select((op::id, op::uuid))
        .limit(limit)
        .load(conn)?;
    remove(conn, &old)?;
    Ok(old.len())
}

fn ended() -> impl Iterator<Item = &'static str> {
    State::ENDED.iter().map(|state| state.as_str())
}

fn remove(conn: &mut AnyConnection, old: &[(i64, String)]) -> Result<(), JournalError> {
    if old.is_empty() {
        return Ok(());
    }
    let (rows, uuids): (Vec<i64>, Vec<&str>) = old.iter().map(|(row, uuid)| (*row, uuid.as_str())).unzip();
    // Compared again: an operator may have queued one anew since the rows were read.
    let removed = diesel::delete(
        op::conductor_operation
            .filter(op::id.eq_any(rows))
            .filter(op::state.eq_any(ended()))
            .filter(op::reply_pending.eq(false)),
    )
    .execute(conn)?;
    if removed != old.len() {
        return Err(JournalError::Stale);
    }
    diesel::delete(event::conductor_operation_event.filter(event::operation_uuid.eq_any(uuids)))
        .execute(conn)?;
    Ok(())
}
