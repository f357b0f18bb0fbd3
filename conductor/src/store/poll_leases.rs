//! Leases on clusters that are polled: the same columns in two tables, and the same statements.
//!
//! ```text
//! due ─▶ hold (owner, epoch + 1, expiry) ─▶ renew … ─▶ given back with the time of the next look
//! ```
//!
//! A macro, because a table is a type of its own for diesel. Each statement compares what it relies on, so none needs
//! a transaction.

use std::time::Duration;

use magnum_common::ids::ClusterUuid;

/// Nobody holds the row.
pub(super) const FREE: &str = "(lease_expires_ms IS NULL OR owner IS NULL)";

/// Makes `free`, `hold`, `renew`, `is_held` and `remove_orphans` for a table.
macro_rules! poll_leases {
    ($table:ident) => {
        use magnum_db::schema::$table::dsl as poll;

        /// Nobody holds the row, or not any more.
        macro_rules! free {
            ($conn:expr) => {
                diesel::dsl::sql::<diesel::sql_types::Bool>(crate::store::poll_leases::FREE).or(
                    poll::lease_expires_ms
                        .le(magnum_db::now_ms_expr($conn).nullable())
                        .assume_not_null(),
                )
            };
        }

        /// Takes those of `due` that are still due and free.
        fn hold(
            conn: &mut AnyConnection,
            me: &ConductorId,
            due: &[String],
            term: Duration,
        ) -> Result<(), DbError> {
            let still_due = poll::next_poll_ms.le(magnum_db::now_ms_expr(conn));
            diesel::update(
                poll::$table
                    .filter(poll::cluster_uuid.eq_any(due))
                    .filter(still_due)
                    .filter(free!(conn)),
            )
            .set((
                poll::owner.eq(me.as_str()),
                poll::lease_epoch.eq(poll::lease_epoch + 1_i64),
                poll::lease_expires_ms.eq(magnum_db::now_plus_ms_expr(millis(term)).nullable()),
            ))
            .execute(conn)?;
            Ok(())
        }

        /// Prolongs what this conductor still holds of `clusters`. Returns how many.
        ///
        /// # Errors
        /// The database failed.
        pub fn renew(
            conn: &mut AnyConnection,
            me: &ConductorId,
            clusters: &[ClusterUuid],
            term: Duration,
        ) -> Result<usize, DbError> {
            Ok(diesel::update(
                poll::$table
                    .filter(poll::cluster_uuid.eq_any(texts(clusters)))
                    .filter(poll::owner.eq(me.as_str())),
            )
            .set(poll::lease_expires_ms.eq(magnum_db::now_plus_ms_expr(millis(term)).nullable()))
            .execute(conn)?)
        }

        /// Whether this conductor still has the claim with this number. If so the row is locked until the transaction
        /// ends, so that nobody else can have it before.
        ///
        /// # Errors
        /// The database failed.
        pub fn is_held(
            conn: &mut AnyConnection,
            me: &ConductorId,
            cluster: &ClusterUuid,
            epoch: i64,
        ) -> Result<bool, DbError> {
            let now = magnum_db::now_ms_expr(conn);
            let held = diesel::update(
                poll::$table
                    .filter(poll::cluster_uuid.eq(cluster.as_str()))
                    .filter(poll::owner.eq(me.as_str()))
                    .filter(poll::lease_epoch.eq(epoch))
                    .filter(poll::lease_expires_ms.gt(now.nullable()).assume_not_null()),
            )
            .set(poll::lease_epoch.eq(epoch))
            .execute(conn)?;
            Ok(held == 1)
        }

        /// Removes rows of clusters that are gone.
        ///
        /// # Errors
        /// The database failed.
        pub fn remove_orphans(conn: &mut AnyConnection) -> Result<usize, DbError> {
            let gone = concat!(
                "NOT EXISTS (SELECT 1 FROM cluster c WHERE c.uuid = ",
                stringify!($table),
                ".cluster_uuid)"
            );
            let gone = diesel::dsl::sql::<diesel::sql_types::Bool>(gone);
            Ok(diesel::delete(poll::$table.filter(gone)).execute(conn)?)
        }
    };
}

pub(super) use poll_leases;

pub(super) fn texts(clusters: &[ClusterUuid]) -> Vec<&str> {
    clusters.iter().map(ClusterUuid::as_str).collect()
}

/// As leases are stored.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
