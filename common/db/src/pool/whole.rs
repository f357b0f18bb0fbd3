//! Begins and commits transactions, so that each is whole.
//!
//! A node of Galera's rolls a transaction back when it is in the way of one that another node has committed, and the next
//! statement is told so (1213). Not always: when a statement is being prepared at that moment, which diesel does all the time,
//! MariaDB (10.11) answers as if nothing had happened, and what follows runs in no transaction. So on such a server a
//! transaction begins with a savepoint, which goes with a rollback, and is committed only if that is still there; else it
//! counts as a conflict, and is repeated. And its session does not commit statements by themselves, so that those after the
//! loss are rolled back.
//!
//! Costs an exchange at the end of a transaction, on Galera only. Not kept whole by it: what does not come by
//! [`Database::transaction`](super::Database::transaction), such as migrations.

use std::sync::atomic::Ordering;

#[cfg(feature = "mysql")]
use diesel::connection::SimpleConnection as _;
use diesel::connection::{Connection, TransactionManager};
use diesel::result::QueryResult;
#[cfg(feature = "mysql")]
use diesel::result::{DatabaseErrorKind, Error};

use super::manager::Pooled;
use crate::connection::AnyConnection;

pub(super) type Manage = <AnyConnection as Connection>::TransactionManager;

impl Pooled {
    /// Begins a transaction.
    pub(super) fn begin(&mut self) -> QueryResult<()> {
        self.commit_each(!self.is_galera)?;
        match &mut self.conn {
            #[cfg(feature = "mysql")]
            AnyConnection::Mysql(mysql) if self.is_galera => {
                diesel::connection::AnsiTransactionManager::begin_transaction_sql(
                    mysql,
                    "BEGIN; SAVEPOINT whole",
                )
            }
            conn => begin(conn),
        }
    }

    /// Commits it. With an error that is a conflict, it was rolled back.
    pub(super) fn commit(&mut self) -> QueryResult<()> {
        if let Err(error) = self.is_whole() {
            self.roll_back();
            return Err(error);
        }
        Manage::commit_transaction(&mut self.conn)
    }

    /// Rolls it back. A connection on which that fails is not used again.
    pub(super) fn roll_back(&mut self) {
        if Manage::rollback_transaction(&mut self.conn).is_err() {
            self.trouble.broken.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the transaction that was begun still is what statements run in. A conflict, if not.
    pub(super) fn is_whole(&mut self) -> QueryResult<()> {
        #[cfg(feature = "mysql")]
        if self.is_galera
            && let AnyConnection::Mysql(mysql) = &mut self.conn
        {
            // As text: word of a rollback is not lost then.
            mysql
                .batch_execute("RELEASE SAVEPOINT whole")
                .map_err(missing_savepoint_as_conflict)?;
        }
        Ok(())
    }

    /// Has each statement outside of a transaction commit by itself, or none, if that is not so already.
    pub(super) fn commit_each(&mut self, wanted: bool) -> QueryResult<()> {
        if self.commits_each == wanted {
            return Ok(());
        }
        #[cfg(feature = "mysql")]
        if let AnyConnection::Mysql(mysql) = &mut self.conn {
            mysql.batch_execute(&format!("SET autocommit = {}", u8::from(wanted)))?;
        }
        self.commits_each = wanted;
        Ok(())
    }
}

/// A savepoint that is gone went with its transaction.
#[cfg(feature = "mysql")]
fn missing_savepoint_as_conflict(error: Error) -> Error {
    match error {
        Error::DatabaseError(_, info) if info.message().contains("does not exist") => {
            let text = "the node has rolled the transaction back without a word".to_owned();
            Error::DatabaseError(DatabaseErrorKind::SerializationFailure, Box::new(text))
        }
        other => other,
    }
}

/// Begins a transaction on a server that says so when it ends one.
///
/// SQLite has to take the write lock now: a transaction that reads first and writes later can fail with "locked" at the write,
/// whatever the busy timeout.
pub(super) fn begin(conn: &mut AnyConnection) -> QueryResult<()> {
    match conn {
        #[cfg(feature = "sqlite")]
        AnyConnection::Sqlite(sqlite) => {
            diesel::connection::AnsiTransactionManager::begin_transaction_sql(sqlite, "BEGIN IMMEDIATE")
        }
        #[cfg(any(feature = "mysql", feature = "postgres"))]
        other => Manage::begin_transaction(other),
    }
}
