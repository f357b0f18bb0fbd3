//! Writing quotas: one row per project and resource.

use diesel::prelude::*;

use super::unless_exists;
use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::rows::QuotaRow;
use crate::schema::quotas;
use magnum_common::model::Quota;

/// Inserts a quota. `Ok(false)`: the project has one for the resource, and nothing was written.
///
/// # Errors
/// The database failed.
pub fn insert(conn: &mut AnyConnection, quota: &Quota) -> Result<bool, DbError> {
    let row = QuotaRow::from(quota);
    unless_exists(conn, |conn| {
        diesel::insert_into(quotas::table).values(&row).execute(conn)
    })
}

/// Writes what differs from `before`, by the number of its row. `Ok(false)`: the row is gone.
///
/// # Errors
/// The database failed.
pub fn update(conn: &mut AnyConnection, before: &Quota, after: &Quota) -> Result<bool, DbError> {
    let changes = QuotaRow::from(after).changes_since(&QuotaRow::from(before));
    if changes.is_empty() {
        return Ok(true);
    }
    let row = quotas::table.filter(quotas::id.eq(before.id.unwrap_or_default()));
    Ok(diesel::update(row).set(&changes).execute(conn)? > 0)
}

/// Deletes a quota. `Ok(false)`: there is none.
///
/// # Errors
/// The database failed.
pub fn delete(conn: &mut AnyConnection, project_id: &str, resource: &str) -> Result<bool, DbError> {
    let row = quotas::table.filter(
        quotas::project_id
            .eq(project_id)
            .and(quotas::resource.eq(resource)),
    );
    Ok(diesel::delete(row).execute(conn)? > 0)
}
