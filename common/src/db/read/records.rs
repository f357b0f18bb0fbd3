//! Reading the small tables: services, quotas. They have no tenant filter: policy decides who may ask.

use diesel::prelude::*;

use super::Page;
use crate::db::connection::AnyConnection;
use crate::db::error::DbError;
use crate::db::rows::{MagnumServiceRow, QuotaRow};
use crate::db::schema::{magnum_service, quotas};
use crate::model::{MagnumService, Quota};

/// All services, by number.
pub fn services(conn: &mut AnyConnection) -> Result<Vec<MagnumService>, DbError> {
    let rows: Vec<MagnumServiceRow> = magnum_service::table
        .select(MagnumServiceRow::as_select())
        .order(magnum_service::id)
        .load(conn)?;
    Ok(rows.into_iter().map(MagnumService::from).collect())
}

/// A project's limit of one resource, if one was set.
pub fn find_quota(
    conn: &mut AnyConnection,
    project_id: &str,
    resource: &str,
) -> Result<Option<Quota>, DbError> {
    Ok(quotas::table
        .filter(
            quotas::project_id
                .eq(project_id)
                .and(quotas::resource.eq(resource)),
        )
        .select(QuotaRow::as_select())
        .first::<QuotaRow>(conn)
        .optional()?
        .map(Quota::from))
}

/// One page of quotas, of one project or of all.
pub fn quotas(
    conn: &mut AnyConnection,
    project_id: Option<&str>,
    page: &Page,
) -> Result<Vec<Quota>, DbError> {
    let mut query = quotas::table.into_boxed();
    if let Some(project) = project_id {
        query = query.filter(quotas::project_id.eq(project.to_owned()));
    }
    if let Some(start) = page.start("quotas") {
        query = query.filter(start);
    }
    if let Some(limit) = page.limit {
        query = query.limit(i64::from(limit));
    }
    let rows: Vec<QuotaRow> = query
        .select(QuotaRow::as_select())
        .order(page.order("quotas"))
        .load(conn)?;
    Ok(rows.into_iter().map(Quota::from).collect())
}
