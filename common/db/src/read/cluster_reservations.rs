//! Reading quota reservations of clusters; see `db::write::cluster_reservations` for what they are.

use diesel::prelude::*;

use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::now_ms_expr;
use crate::schema::conductor_cluster_reservation as reservation;

/// The clusters that are reserved for a project.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Reserved {
    /// Valid reservations.
    pub open: Vec<String>,
    /// Their time is over.
    pub past: Vec<String>,
}

/// How many reservations a project has, those whose time is over included.
///
/// # Errors
/// The database failed.
pub fn count(conn: &mut AnyConnection, project_id: &str) -> Result<i64, DbError> {
    let of_project = reservation::table.filter(reservation::project_id.eq(project_id));
    Ok(of_project.count().get_result(conn)?)
}

/// The reservations of a project.
///
/// # Errors
/// The database failed.
pub fn of_project(conn: &mut AnyConnection, project_id: &str) -> Result<Reserved, DbError> {
    let rows: Vec<(String, i64, i64)> = reservation::table
        .filter(reservation::project_id.eq(project_id))
        .select((
            reservation::cluster_uuid,
            reservation::expires_ms,
            now_ms_expr(conn),
        ))
        .load(conn)?;
    let mut reserved = Reserved::default();
    for (cluster, expires, now) in rows {
        if expires > now {
            reserved.open.push(cluster);
        } else {
            reserved.past.push(cluster);
        }
    }
    Ok(reserved)
}
