//! Quota reservations of clusters that have no row yet: `conductor_cluster_reservation`.
//!
//! The API writes one before it asks for a cluster; the conductor removes it in the transaction that makes the
//! cluster's row, or refuses to. So a cluster counts for its project's quota from its reservation on, and never twice.

use std::time::Duration;

use diesel::prelude::*;

use super::unless_exists;
use crate::MOST_BINDS;
use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::now_plus_ms_expr;
use crate::schema::conductor_cluster_reservation as reservation;
use crate::schema::conductor_project;
use magnum_common::ids::ClusterUuid;

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Makes the row by which reservations of a project come one after the other. To be committed before [`begin`]: two
/// transactions that both make it and then change it would end in a deadlock.
///
/// # Errors
/// The database failed.
pub fn insert_project(conn: &mut AnyConnection, project_id: &str) -> Result<(), DbError> {
    unless_exists(conn, |conn| {
        diesel::insert_into(conductor_project::table)
            .values(conductor_project::project_id.eq(project_id))
            .execute(conn)
    })
    .map(drop)
}

/// Begins a reservation: from here to the commit, no other one of the project is counted. `false`: the project has no row yet,
/// see [`insert_project`].
///
/// The row is changed and not only locked: nodes of a cluster that takes writes everywhere do not know each other's locks, but
/// of two transactions that change one row only the first commits. The other one is repeated, as after a deadlock.
///
/// # Errors
/// The database failed.
pub fn begin(conn: &mut AnyConnection, project_id: &str) -> Result<bool, DbError> {
    let row = conductor_project::table.filter(conductor_project::project_id.eq(project_id));
    let changed = diesel::update(row)
        .set(conductor_project::reservations.eq(conductor_project::reservations + 1))
        .execute(conn)?;
    Ok(changed == 1)
}

/// Reserves a cluster for a project's quota. The reservation expires after `lasts`.
///
/// # Errors
/// The database failed.
pub fn insert(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    project_id: &str,
    lasts: Duration,
) -> Result<(), DbError> {
    diesel::insert_into(reservation::table)
        .values((
            reservation::cluster_uuid.eq(cluster.as_str()),
            reservation::project_id.eq(project_id),
            reservation::expires_ms.eq(now_plus_ms_expr(ms(lasts))),
        ))
        .execute(conn)?;
    Ok(())
}

/// Has a reservation that is still there last for so long from now on.
///
/// # Errors
/// The database failed.
pub fn extend(conn: &mut AnyConnection, cluster: &ClusterUuid, lasts: Duration) -> Result<(), DbError> {
    diesel::update(reservation::table.filter(reservation::cluster_uuid.eq(cluster.as_str())))
        .set(reservation::expires_ms.eq(now_plus_ms_expr(ms(lasts))))
        .execute(conn)?;
    Ok(())
}

/// Removes the reservations of these clusters, as far as there are any.
///
/// # Errors
/// The database failed.
pub fn remove(conn: &mut AnyConnection, clusters: &[String]) -> Result<(), DbError> {
    for part in clusters.chunks(MOST_BINDS) {
        diesel::delete(reservation::table.filter(reservation::cluster_uuid.eq_any(part))).execute(conn)?;
    }
    Ok(())
}
