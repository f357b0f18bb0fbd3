//! Row locks, which diesel's common subset does not have.
//!
//! Inside a transaction these make the others wait: `SELECT … FOR UPDATE` on MySQL and PostgreSQL. On SQLite
//! there is nothing to do: [`super::Database::transaction`] holds the write lock from its start. Magnum's own
//! updates lock the same rows the same way, so a check made after the lock stays true against Python services
//! too. Lock order, to avoid deadlocks: the cluster first, then anything of it.
//!
//! A lock is known to one server. Where several take writes (Galera), it holds up nobody at another node, and only what is
//! written is compared when the transactions commit. So nothing may rest on a lock alone: whoever locks a row changes it in the
//! same transaction, or what it decided is decided again by a write that does.
//!
//! What is claimed can be left to the next look: there a row that somebody else holds is passed over (`SKIP LOCKED`:
//! MariaDB from 10.6 on, MySQL 8, PostgreSQL), so that one row which is held for long keeps nobody from the others.

use diesel::prelude::*;

use super::clock::now_ms_expr;
use super::connection::AnyConnection;
use super::error::DbError;
use super::prepared::{KeepPrepared as _, padded};
use super::schema::{
    cluster, cluster_template, conductor_cluster_health, conductor_cluster_poll, conductor_operation,
};
use magnum_common::ids::{ClusterUuid, ConductorId, OperationId, TemplateUuid};

/// Locks the row of `$table` whose uuid is `$uuid` and says whether there is one.
macro_rules! lock_by_uuid {
    ($conn:expr, $table:ident: $number:ty, $uuid:expr) => {{
        let row = $table::table.filter($table::uuid.eq($uuid)).select($table::id);
        let found = match $conn {
            #[cfg(feature = "postgres")]
            AnyConnection::Postgres(conn) => !row.for_update().load::<$number>(conn)?.is_empty(),
            #[cfg(feature = "mysql")]
            AnyConnection::Mysql(conn) => !row.for_update().load::<$number>(conn)?.is_empty(),
            #[cfg(feature = "sqlite")]
            AnyConnection::Sqlite(conn) => !row.load::<$number>(conn)?.is_empty(),
        };
        Ok(found)
    }};
}

/// Locks a cluster's row until the transaction ends. `false`: there is no such cluster.
///
/// # Errors
/// The database failed.
pub fn cluster(conn: &mut AnyConnection, uuid: &ClusterUuid) -> Result<bool, DbError> {
    lock_by_uuid!(conn, cluster: i32, uuid.as_str())
}

/// Locks a template's row until the transaction ends. `false`: there is no such template.
///
/// # Errors
/// The database failed.
pub fn cluster_template(conn: &mut AnyConnection, uuid: &TemplateUuid) -> Result<bool, DbError> {
    lock_by_uuid!(conn, cluster_template: i32, uuid.as_str())
}

/// Locks an operation's row until the transaction ends. `false`: there is no such operation.
///
/// # Errors
/// The database failed.
pub fn operation(conn: &mut AnyConnection, uuid: &OperationId) -> Result<bool, DbError> {
    lock_by_uuid!(conn, conductor_operation: i64, uuid.as_str())
}

/// Locks the operation with this number until the transaction ends, unless somebody else has locked it. Returns the
/// database's time, in milliseconds since 1970; `None`: it is locked, or there is none.
///
/// # Errors
/// The database failed.
pub fn operation_if_free(conn: &mut AnyConnection, row: i64) -> Result<Option<i64>, DbError> {
    let now = now_ms_expr(conn);
    let row = conductor_operation::table
        .filter(conductor_operation::id.eq(row))
        .select(now);
    let found: Vec<i64> = match conn {
        #[cfg(feature = "postgres")]
        AnyConnection::Postgres(conn) => row.for_update().skip_locked().load(conn)?,
        #[cfg(feature = "mysql")]
        AnyConnection::Mysql(conn) => row.for_update().skip_locked().load(conn)?,
        #[cfg(feature = "sqlite")]
        AnyConnection::Sqlite(conn) => row.load(conn)?,
    };
    Ok(found.into_iter().next())
}

/// Locks those operations with these numbers that run for `owner` and that nobody else has locked, until the transaction ends.
/// Returns the number and the epoch of each, and whether it is asked to stop.
///
/// # Errors
/// The database failed.
pub fn running_if_free(
    conn: &mut AnyConnection,
    owner: &ConductorId,
    rows: &[i64],
) -> Result<Vec<(i64, i64, bool)>, DbError> {
    let rows = conductor_operation::table
        .filter(conductor_operation::id.eq_any(padded(rows)))
        .filter(conductor_operation::owner.eq(owner.as_str()))
        .filter(conductor_operation::state.eq("running"))
        .select((
            conductor_operation::id,
            conductor_operation::lease_epoch,
            conductor_operation::stop_requested,
        ));
    Ok(match conn {
        #[cfg(feature = "postgres")]
        AnyConnection::Postgres(conn) => rows.for_update().skip_locked().keep_prepared().load(conn)?,
        #[cfg(feature = "mysql")]
        AnyConnection::Mysql(conn) => rows.for_update().skip_locked().keep_prepared().load(conn)?,
        #[cfg(feature = "sqlite")]
        AnyConnection::Sqlite(conn) => rows.keep_prepared().load(conn)?,
    })
}

/// Those of `$clusters` whose row in `$table` nobody else has locked.
macro_rules! free_rows {
    ($conn:expr, $table:ident, $clusters:expr) => {{
        let rows = $table::table
            .filter($table::cluster_uuid.eq_any($clusters))
            .select($table::cluster_uuid);
        Ok(match $conn {
            #[cfg(feature = "postgres")]
            AnyConnection::Postgres(conn) => rows.for_update().skip_locked().load::<String>(conn)?,
            #[cfg(feature = "mysql")]
            AnyConnection::Mysql(conn) => rows.for_update().skip_locked().load::<String>(conn)?,
            #[cfg(feature = "sqlite")]
            AnyConnection::Sqlite(conn) => rows.load::<String>(conn)?,
        })
    }};
}

/// Those of the clusters whose row for looks at their status nobody else has locked.
///
/// # Errors
/// The database failed.
pub fn free_polls(conn: &mut AnyConnection, clusters: &[String]) -> Result<Vec<String>, DbError> {
    free_rows!(conn, conductor_cluster_poll, clusters)
}

/// Those of the clusters whose row for looks at their health nobody else has locked.
///
/// # Errors
/// The database failed.
pub fn free_health_polls(conn: &mut AnyConnection, clusters: &[String]) -> Result<Vec<String>, DbError> {
    free_rows!(conn, conductor_cluster_health, clusters)
}
