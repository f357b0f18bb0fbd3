//! Writes to Magnum's tables that only the conductor makes.
//!
//! These functions know rows and nothing of operations: the transaction they run in began with a fence, or with
//! a compare-and-set on the journal, and that is what makes them safe. A status is only ever changed by
//! comparing the one it changes from; everything else is what a driver or a caller told, written column by
//! column as Magnum does, since other services write other columns of the same rows.

/// Rows of a statement that stays prepared: a full batch of requests is some of these, which the server need not
/// parse again.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) const ROWS_AT_ONCE: usize = 32;

/// A slice of rows, many in one `INSERT`. diesel's common subset of the three databases has none, so it is said per
/// database (SQLite takes them one by one, inside the same transaction).
macro_rules! insert_many {
    ($conn:expr, $table:expr, $rows:expr) => {
        match $conn {
            #[cfg(feature = "postgres")]
            magnum_db::AnyConnection::Postgres(conn) => {
                $crate::store::insert_in_parts!(conn, $table, $rows)
            }
            #[cfg(feature = "mysql")]
            magnum_db::AnyConnection::Mysql(conn) => {
                $crate::store::insert_in_parts!(conn, $table, $rows)
            }
            #[cfg(feature = "sqlite")]
            magnum_db::AnyConnection::Sqlite(conn) => {
                diesel::insert_into($table).values($rows).execute(conn).map(drop)
            }
        }
    };
}
pub(crate) use insert_many;

/// Statements of a fixed size as far as they go, and one for the rest.
#[cfg(any(feature = "mysql", feature = "postgres"))]
macro_rules! insert_in_parts {
    ($conn:expr, $table:expr, $rows:expr) => {{
        let (parts, rest) = $rows.as_chunks::<{ $crate::store::ROWS_AT_ONCE }>();
        let inserted = parts
            .iter()
            .try_for_each(|part| diesel::insert_into($table).values(part).execute($conn).map(drop));
        match inserted {
            Ok(()) if !rest.is_empty() => diesel::insert_into($table).values(rest).execute($conn).map(drop),
            inserted => inserted,
        }
    }};
}
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use insert_in_parts;

pub mod announcements;
pub mod certificate_removals;
pub mod cluster_driver;
pub mod cluster_health;
pub mod cluster_trusts;
pub mod clusters;
pub mod former_trusts;
pub mod health_polls;
pub mod journal_stats;
pub mod key_pairs;
pub mod key_pool;
pub mod node_groups;
pub mod object_answers;
pub mod objects;
mod poll_leases;
pub mod polls;
pub mod resealing;
pub mod sealing;
pub mod start;
pub mod upgrade_facts;
