//! The database's clock: the only clock that decides leases.
//!
//! Conductors run on hosts whose clocks differ; all of them ask the same database, so "expired" means the same
//! to all. The expressions are evaluated by the server inside the statement that uses them. With SQLite the
//! database's clock is the host's wall clock, which all processes on that file share.

use diesel::expression::{AppearsOnTable, Expression, SelectableExpression, ValidGrouping, is_aggregate};
use diesel::prelude::*;
use diesel::query_builder::{AstPass, QueryFragment, QueryId};
use diesel::sql_types::BigInt;

use super::connection::{AnyConnection, MultiBackend};
use super::error::DbError;

/// Milliseconds since 1970 by the database's clock, plus an offset: usable in `.set()` and `.filter()`.
#[derive(Debug, Clone, Copy)]
pub struct NowMs {
    plus: i64,
}

/// The database's time. The connection only names the backend; no query is made.
pub fn now_ms_expr(_conn: &AnyConnection) -> NowMs {
    NowMs { plus: 0 }
}

/// The database's time plus some milliseconds (negative: before now), for `lease_expires_ms = now + lease`.
pub fn now_plus_ms_expr(plus: i64) -> NowMs {
    NowMs { plus }
}

/// The database's time, in milliseconds since 1970.
///
/// # Errors
/// The database fails.
pub fn now_ms(conn: &mut AnyConnection) -> Result<i64, DbError> {
    Ok(diesel::select(NowMs { plus: 0 }).get_result(conn)?)
}

impl Expression for NowMs {
    type SqlType = BigInt;
}

impl<QS> SelectableExpression<QS> for NowMs {}
impl<QS> AppearsOnTable<QS> for NowMs {}

impl<GroupBy> ValidGrouping<GroupBy> for NowMs {
    type IsAggregate = is_aggregate::Never;
}

impl QueryId for NowMs {
    type QueryId = Self;
    const HAS_STATIC_QUERY_ID: bool = true;
}

impl QueryFragment<MultiBackend> for NowMs {
    fn walk_ast<'b>(&'b self, pass: AstPass<'_, 'b, MultiBackend>) -> QueryResult<()> {
        MultiBackend::walk_variant_ast(self, pass)
    }
}

#[cfg(feature = "postgres")]
impl QueryFragment<diesel::pg::Pg> for NowMs {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, diesel::pg::Pg>) -> QueryResult<()> {
        // Not now(): that stands still during a transaction.
        pass.push_sql("(CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) + ");
        pass.push_bind_param::<BigInt, _>(&self.plus)?;
        pass.push_sql(")");
        Ok(())
    }
}

#[cfg(feature = "mysql")]
impl QueryFragment<diesel::mysql::Mysql> for NowMs {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, diesel::mysql::Mysql>) -> QueryResult<()> {
        pass.push_sql("(CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) + ");
        pass.push_bind_param::<BigInt, _>(&self.plus)?;
        pass.push_sql(")");
        Ok(())
    }
}

#[cfg(feature = "sqlite")]
impl QueryFragment<diesel::sqlite::Sqlite> for NowMs {
    fn walk_ast<'b>(&'b self, mut pass: AstPass<'_, 'b, diesel::sqlite::Sqlite>) -> QueryResult<()> {
        pass.push_sql("(CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS BIGINT) + ");
        pass.push_bind_param::<BigInt, _>(&self.plus)?;
        pass.push_sql(")");
        Ok(())
    }
}
