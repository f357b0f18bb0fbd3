//! What goes on in the whole deployment, and which of it does not go on.

use diesel::dsl::{count_star, sql};
use diesel::prelude::*;
use diesel::sql_types::Bool;

use super::Operation;
use super::search::OPEN_STATES;
use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::schema::conductor_operation::dsl as op;

/// No operation of its cluster that was accepted before it is open: it waits for a conductor, and not for its turn.
const IS_FIRST_OF_ITS_CLUSTER: &str = "NOT EXISTS (SELECT 1 FROM conductor_operation ahead \
     WHERE ahead.cluster_uuid = conductor_operation.cluster_uuid AND ahead.id < conductor_operation.id \
     AND ahead.state IN ('queued', 'running', 'retrying', 'observing'))";

/// How many operations are in each open state; a state without any is not there.
///
/// # Errors
/// When the database fails.
pub fn open_counts(conn: &mut AnyConnection) -> Result<Vec<(String, i64)>, DbError> {
    Ok(op::conductor_operation
        .filter(op::state.eq_any(OPEN_STATES))
        .group_by(op::state)
        .select((op::state, count_star()))
        .load(conn)?)
}

/// At most `most` operations that do not go on as they should at `now_ms`, by the database's clock, the oldest first:
///
/// * those that have failed and are to be tried again;
/// * those past their time limit;
/// * those that a conductor has lost `patience_ms` ago, and no other has taken;
/// * those that were accepted `patience_ms` ago, have no other one of their cluster before them, and were not begun.
///
/// # Errors
/// When the database fails.
pub fn stuck(
    conn: &mut AnyConnection,
    now_ms: i64,
    patience_ms: i64,
    most: u32,
) -> Result<Vec<Operation>, DbError> {
    let since = now_ms.saturating_sub(patience_ms);
    let retries = op::state.eq("retrying");
    let is_late = op::deadline_ms.is_not_null().and(op::deadline_ms.lt(now_ms));
    let is_lost = op::state
        .eq_any(["running", "observing"])
        .and(op::lease_expires_ms.gt(0))
        .and(op::lease_expires_ms.lt(since));
    let waits = op::state
        .eq("queued")
        .and(op::created_ms.lt(since))
        .and(sql::<Bool>(IS_FIRST_OF_ITS_CLUSTER));
    // Each is NULL where a column is; NULL OR true is true.
    let is_stuck = retries
        .nullable()
        .or(is_late.nullable())
        .or(is_lost.nullable())
        .or(waits.nullable());
    Ok(op::conductor_operation
        .filter(op::state.eq_any(OPEN_STATES))
        .filter(is_stuck)
        .order(op::id.asc())
        .limit(i64::from(most))
        .select(Operation::as_select())
        .load(conn)?)
}

/// The open operation that this one of the same cluster waits for: the one accepted just before it.
///
/// # Errors
/// When the database fails.
pub fn ahead_of(conn: &mut AnyConnection, operation: &Operation) -> Result<Option<Operation>, DbError> {
    Ok(op::conductor_operation
        .filter(op::cluster_uuid.eq(operation.cluster_uuid.clone()))
        .filter(op::id.lt(operation.id))
        .filter(op::state.eq_any(OPEN_STATES))
        .order(op::id.desc())
        .select(Operation::as_select())
        .first(conn)
        .optional()?)
}

/// The last `most` operations by their acceptance that have ended, however.
///
/// # Errors
/// When the database fails.
pub fn ended(conn: &mut AnyConnection, most: u32) -> Result<Vec<Operation>, DbError> {
    // Not by the states that are an end: the table is read from its newest row down, and hardly further than these are.
    Ok(op::conductor_operation
        .filter(op::ended_ms.is_not_null())
        .order(op::id.desc())
        .limit(i64::from(most))
        .select(Operation::as_select())
        .load(conn)?)
}
