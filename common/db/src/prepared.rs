//! Queries that a connection keeps prepared.
//!
//! diesel prepares a statement once for a connection and finds it again by its text, but not one that names a list of values or has
//! a part in plain SQL: there it fears texts without end. Such a one is prepared for each use and thrown away, which costs a server a
//! round trip, and SQLite most of what the statement takes. [`KeepPrepared`] says that a query has few texts.
//!
//! What this does not give: a bound. A list of values has a text for each length, so one of any length is for [`padded`] first; a
//! value that is written into the text is not for this at all. MySQL counts the prepared statements of all its sessions
//! (`max_prepared_stmt_count`), so only what conductors ask again and again is worth a place. Nor does it help writes, which diesel
//! never keeps.

use diesel::QueryResult;
use diesel::RunQueryDsl;
use diesel::backend::Backend;
use diesel::query_builder::{AstPass, Query, QueryFragment, QueryId};

/// Keeps a query prepared.
pub trait KeepPrepared: Sized {
    /// The same query, prepared once for a connection. To be said last, before it is run.
    fn keep_prepared(self) -> Kept<Self> {
        Kept(self)
    }
}

impl<Q: Query> KeepPrepared for Q {}

/// A query that is found again by its text.
#[derive(Debug, Clone, Copy)]
pub struct Kept<Q>(Q);

impl<Q> QueryId for Kept<Q> {
    type QueryId = ();
    const HAS_STATIC_QUERY_ID: bool = false;
}

impl<Q: Query> Query for Kept<Q> {
    type SqlType = Q::SqlType;
}

impl<Q, Conn> RunQueryDsl<Conn> for Kept<Q> {}

impl<DB: Backend, Q: QueryFragment<DB>> QueryFragment<DB> for Kept<Q> {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, DB>) -> QueryResult<()> {
        self.0.walk_ast(pass)
    }

    // Of diesel's interface for authors of backends; that diesel asks it is shown by the test `database::prepared`.
    fn is_safe_to_cache_prepared(&self, _: &DB) -> QueryResult<bool> {
        Ok(true)
    }
}

/// The list with its last value repeated until its length is a power of two: the same in an `IN (…)`, and a query with it
/// has few texts.
pub fn padded<T: Clone>(values: &[T]) -> Vec<T> {
    let mut padded = values.to_vec();
    if let Some(last) = values.last() {
        padded.resize(values.len().next_power_of_two(), last.clone());
    }
    padded
}
