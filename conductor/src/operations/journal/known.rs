//! Which operations this release can carry out, by what their columns say: the format, the kind and the step.

use diesel::dsl::not;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use magnum_db::{self as db, AnyConnection, MultiBackend, schema};

use super::JournalError;
use super::read::is_left_since;
use super::rows::{EventKind, OperationRow};
use super::write;
use crate::operations::hold;
use crate::operations::state::State;
use crate::workflows::{OperationKind, format};

use schema::conductor_operation::dsl as op;

/// A condition on operations.
pub(super) type Condition = dyn BoxableExpression<op::conductor_operation, MultiBackend, SqlType = Bool>;

/// Whether this release knows all that the operation needs.
pub(super) fn is_known() -> Box<Condition> {
    let kinds = OperationKind::ALL.iter().map(|kind| kind.as_str());
    let steps = OperationKind::ALL.iter().flat_map(|kind| kind.steps());
    let steps = steps.map(|step| step.as_str()).chain([hold::STEP]);
    let mut steps: Vec<&str> = steps.collect();
    steps.sort_unstable();
    steps.dedup();
    let is_known_step = op::step
        .is_not_null()
        .and(op::step.eq_any(steps).assume_not_null());
    Box::new(
        op::format
            .le(format::KNOWN)
            .and(op::kind.eq_any(kinds.chain([hold::KIND]).collect::<Vec<_>>()))
            .and(is_known_step),
    )
}

/// How long somebody is waited for who is, or may be, able to do something.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A conductor is alive when it announced its drivers within so many milliseconds.
    pub alive_ms: i64,
    /// Nobody is waited for longer than so many milliseconds.
    pub most_ms: i64,
}

/// Operations that are not known here (`is_known`), and that no conductor that is alive may know: their rows. Nobody works on them,
/// and they wait for [`Patience::most_ms`], are out of time, or shall stop.
///
/// A conductor that announces a higher format than ours may know kinds and steps that we do not, and ends by itself what it does
/// not know either.
///
/// # Errors
/// The database failed.
pub fn unknown_to_all(conn: &mut AnyConnection, patience: Patience) -> Result<Vec<i64>, JournalError> {
    let now = db::now_ms(conn)?;
    let highest = highest_announced(conn, now.saturating_sub(patience.alive_ms))?;
    let known_elsewhere = if highest > format::KNOWN { highest } else { 0 };
    let (just_now, long_ago) = (
        now.saturating_sub(patience.alive_ms),
        now.saturating_sub(patience.most_ms),
    );
    let is_over = || {
        op::stop_requested
            .eq(true)
            .or(op::deadline_ms.is_not_null().and(op::deadline_ms.le(just_now)))
            .assume_not_null()
    };
    let waits = op::state
        .eq_any([
            State::Queued.as_str(),
            State::Retrying.as_str(),
            State::Observing.as_str(),
        ])
        .and(
            op::updated_ms
                .le(long_ago)
                .or(op::updated_ms.le(just_now).and(is_over())),
        );
    let left_behind = op::state
        .eq(State::Running.as_str())
        .and(is_left_since(long_ago).or(is_left_since(just_now).and(is_over())));
    Ok(op::conductor_operation
        .filter(waits.or(left_behind))
        .filter(op::format.gt(known_elsewhere))
        .filter(not(is_known()))
        .select(op::id)
        .load(conn)?)
}

fn highest_announced(conn: &mut AnyConnection, since_ms: i64) -> Result<i32, JournalError> {
    use schema::conductor_driver::dsl as d;
    let highest: Option<i32> = d::conductor_driver
        .filter(d::announced_ms.ge(since_ms))
        .select(diesel::dsl::max(d::journal_format))
        .first(conn)?;
    Ok(highest.unwrap_or(format::FIRST))
}

/// How often conductors have claimed an operation and could not read it.
///
/// # Errors
/// The database failed.
pub fn times_unread(conn: &mut AnyConnection, uuid: &str) -> Result<i64, JournalError> {
    use schema::conductor_operation_event::dsl as e;
    Ok(e::conductor_operation_event
        .filter(e::operation_uuid.eq(uuid))
        .filter(e::kind.eq(EventKind::Unread.as_str()))
        .count()
        .get_result(conn)?)
}

/// Marks an operation that nobody works on, and that has been out of time for `grace_ms`, as one for a newer release: this one
/// cannot read it. Does nothing when it has moved meanwhile.
///
/// # Errors
/// The database failed.
pub fn mark_late(
    conn: &mut AnyConnection,
    row: &OperationRow,
    grace_ms: i64,
    by: &str,
) -> Result<(), JournalError> {
    let before = db::now_ms(conn)?.saturating_sub(grace_ms);
    let marked = diesel::update(
        op::conductor_operation
            .filter(op::id.eq(row.id))
            .filter(op::state.eq(&row.state))
            .filter(op::state.ne(State::Running.as_str()))
            .filter(op::lease_epoch.eq(row.lease_epoch))
            .filter(op::format.le(format::KNOWN))
            .filter(op::deadline_ms.le(before)),
    )
    .set(op::format.eq(format::KNOWN + 1))
    .execute(conn)?;
    if marked == 0 {
        return Ok(());
    }
    let detail = "it is out of time, and this release cannot read it";
    write::note(conn, row.id, EventKind::Unread, Some(by), Some(detail))
}
