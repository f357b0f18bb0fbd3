//! Reading what conductors announce.

use std::time::Duration;

use diesel::prelude::*;

use crate::db::clock::now_plus_ms_expr;
use crate::db::connection::AnyConnection;
use crate::db::error::DbError;
use crate::db::schema::conductor_driver::dsl as d;
use crate::drivers::Announcement;

/// The drivers that conductors announced within `max_age` of the database's time, those that failed to load left
/// out. A driver that several conductors have is there once for each of them.
pub fn announced(conn: &mut AnyConnection, max_age: Duration) -> Result<Vec<Announcement>, DbError> {
    let age = i64::try_from(max_age.as_millis()).unwrap_or(i64::MAX);
    let rows: Vec<(String, String, bool, String, String, String)> = d::conductor_driver
        .filter(
            d::error
                .is_null()
                .and(d::announced_ms.ge(now_plus_ms_expr(age.saturating_neg()))),
        )
        .order((d::name, d::version, d::id))
        .select((
            d::name,
            d::version,
            d::beta,
            d::cluster_types,
            d::capabilities,
            d::master_size_rule,
        ))
        .load(conn)?;
    let announcement = |(name, version, beta, cluster_types, capabilities, master_size_rule)| Announcement {
        name,
        version,
        beta,
        cluster_types,
        capabilities,
        master_size_rule,
    };
    Ok(rows.into_iter().map(announcement).collect())
}
