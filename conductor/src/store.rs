//! Writes to Magnum's tables that only the conductor makes.
//!
//! These functions know rows and nothing of operations: the transaction they run in began with a fence, or with
//! a compare-and-set on the journal, and that is what makes them safe. A status is only ever changed by
//! comparing the one it changes from; everything else is what a driver or a caller told, written column by
//! column as Magnum does, since other services write other columns of the same rows.

/// Many rows in one `INSERT`. diesel's common subset of the three databases has none, so it is said per database
/// (SQLite takes them one by one, inside the same transaction).
macro_rules! insert_many {
    ($conn:expr, $table:expr, $rows:expr) => {
        match $conn {
            #[cfg(feature = "postgres")]
            magnum_common::db::AnyConnection::Postgres(conn) => {
                diesel::insert_into($table).values($rows).execute(conn)
            }
            #[cfg(feature = "mysql")]
            magnum_common::db::AnyConnection::Mysql(conn) => {
                diesel::insert_into($table).values($rows).execute(conn)
            }
            #[cfg(feature = "sqlite")]
            magnum_common::db::AnyConnection::Sqlite(conn) => {
                diesel::insert_into($table).values($rows).execute(conn)
            }
        }
    };
}
pub(crate) use insert_many;

pub mod announcements;
pub mod cluster_driver;
pub mod clusters;
pub mod journal_stats;
pub mod node_groups;
pub mod polls;
