//! Row locks, which diesel's common subset does not have.
//!
//! Inside a transaction these make the others wait: `SELECT … FOR UPDATE` on MySQL and PostgreSQL. On SQLite
//! there is nothing to do: [`super::Database::transaction`] holds the write lock from its start. Magnum's own
//! updates lock the same rows the same way, so a check made after the lock stays true against Python services
//! too. Lock order, to avoid deadlocks: the cluster first, then anything of it.

use diesel::prelude::*;

use super::connection::AnyConnection;
use super::error::DbError;
use super::schema::{cluster, cluster_template, conductor_operation, conductor_project};
use magnum_common::ids::{ClusterUuid, OperationId, TemplateUuid};

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

/// Locks a project's row until the transaction ends: requests of one project that have to come one after the other.
/// `false`: it has none yet, see [`super::write::cluster_reservations::insert_project`].
///
/// # Errors
/// The database failed.
pub fn project(conn: &mut AnyConnection, project_id: &str) -> Result<bool, DbError> {
    let row = conductor_project::table
        .filter(conductor_project::project_id.eq(project_id))
        .select(conductor_project::project_id);
    let found = match conn {
        #[cfg(feature = "postgres")]
        AnyConnection::Postgres(conn) => !row.for_update().load::<String>(conn)?.is_empty(),
        #[cfg(feature = "mysql")]
        AnyConnection::Mysql(conn) => !row.for_update().load::<String>(conn)?.is_empty(),
        #[cfg(feature = "sqlite")]
        AnyConnection::Sqlite(conn) => !row.load::<String>(conn)?.is_empty(),
    };
    Ok(found)
}
