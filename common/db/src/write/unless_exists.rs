//! "Insert, unless a row with this key is there": what a repeated message or a restarted program needs.

use diesel::Connection;
use diesel::result::{DatabaseErrorKind, Error, QueryResult};

use crate::connection::{AnyConnection, Backend};
use crate::error::DbError;

/// Runs one `INSERT`. `Ok(false)`: a row with the same unique key exists already, nothing was written, and a
/// surrounding transaction goes on.
///
/// Not `INSERT IGNORE` on MySQL: that would also swallow values that do not fit. PostgreSQL ends the whole
/// transaction at any error, hence the savepoint there (two more round trips).
///
/// # Errors
/// The database failed.
pub fn unless_exists(
    conn: &mut AnyConnection,
    insert: impl FnOnce(&mut AnyConnection) -> QueryResult<usize>,
) -> Result<bool, DbError> {
    let inserted = match conn.backend() {
        Backend::Postgres => conn.transaction(insert),
        Backend::Mysql | Backend::Sqlite => insert(conn),
    };
    match inserted {
        Ok(rows) => Ok(rows > 0),
        Err(Error::DatabaseError(DatabaseErrorKind::UniqueViolation, _)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
