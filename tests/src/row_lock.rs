//! A row that somebody holds: a session of its own with an open transaction, as that of an administrator, or of a host that
//! is paused in the middle of one. MariaDB and PostgreSQL have such locks, SQLite does not.
//!
//! It is read committed: MariaDB's default isolation would hold the gaps beside the rows as well, and with them new rows whose
//! keys happen to fall there.

use anyhow::{Context as _, Result, bail};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, MysqlConnection, PgConnection};

use crate::{Backend, TestDatabase};

/// The rows are held until this is dropped, and free when that has returned.
pub struct RowLock {
    session: Session,
}

enum Session {
    Mariadb(MysqlConnection),
    Postgres(PgConnection),
}

impl RowLock {
    /// Holds the rows of `table` for which `condition` is true.
    ///
    /// # Errors
    /// The database has no locks of rows, or does not give them.
    pub async fn take(database: &TestDatabase, table: &str, condition: &str) -> Result<Self> {
        let (backend, url) = (database.backend, database.plain_url());
        let lock = format!("SELECT * FROM {table} WHERE {condition} FOR UPDATE");
        tokio::task::spawn_blocking(move || {
            let session = match backend {
                Backend::Sqlite => bail!("SQLite locks no rows"),
                Backend::Mariadb => {
                    let mut session = MysqlConnection::establish(&url)?;
                    session
                        .batch_execute(&format!(
                            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION; {lock}"
                        ))
                        .with_context(|| lock.clone())?;
                    Session::Mariadb(session)
                }
                Backend::Postgres => {
                    let mut session = PgConnection::establish(&url)?;
                    session
                        .batch_execute(&format!("BEGIN; {lock}"))
                        .with_context(|| lock.clone())?;
                    Session::Postgres(session)
                }
            };
            Ok(Self { session })
        })
        .await?
    }
}

/// A session that just ends is noticed by the server a moment later.
impl Drop for RowLock {
    fn drop(&mut self) {
        // With a server that is gone, its locks are.
        let _ended = match &mut self.session {
            Session::Mariadb(session) => session.batch_execute("ROLLBACK"),
            Session::Postgres(session) => session.batch_execute("ROLLBACK"),
        };
    }
}
