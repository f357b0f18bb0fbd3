//! What the journal holds at the moment, for metrics.

use diesel::dsl::{count_star, min};
use diesel::prelude::*;
use magnum_db::{self as db, AnyConnection, DbError, schema};

use schema::conductor_operation::dsl as op;

/// The open operations of one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateStats {
    /// The state.
    pub state: String,
    /// How many.
    pub count: i64,
    /// Age of the oldest, in milliseconds.
    pub oldest_ms: i64,
}

/// Open operations by state; a state without any is left out.
///
/// # Errors
/// The database failed.
pub fn by_state(conn: &mut AnyConnection, states: &[&str]) -> Result<Vec<StateStats>, DbError> {
    let now = db::now_ms(conn)?;
    let rows: Vec<(String, i64, Option<i64>)> = op::conductor_operation
        .filter(op::state.eq_any(states))
        .group_by(op::state)
        .select((op::state, count_star(), min(op::created_ms)))
        .load(conn)?;
    Ok(rows
        .into_iter()
        .map(|(state, count, oldest)| StateStats {
            state,
            count,
            oldest_ms: oldest.map_or(0, |oldest| now.saturating_sub(oldest).max(0)),
        })
        .collect())
}
