//! Reading the small tables: services, quotas. They have no tenant filter: policy decides who may ask.

use diesel::prelude::*;

use super::Page;
use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::rows::{MagnumServiceRow, QuotaRow};
use crate::schema::{magnum_service, quotas};
use magnum_common::model::{MagnumService, Quota};

/// All services, by number.
///
/// # Errors
/// The database failed.
pub fn services(conn: &mut AnyConnection) -> Result<Vec<MagnumService>, DbError> {
    let rows: Vec<MagnumServiceRow> = magnum_service::table
        .select(MagnumServiceRow::as_select())
        .order(magnum_service::id)
        .load(conn)?;
    Ok(rows.into_iter().map(MagnumService::from).collect())
}

/// One page of services.
///
/// # Errors
/// The database failed.
pub fn services_page(conn: &mut AnyConnection, page: &Page) -> Result<Vec<MagnumService>, DbError> {
    let mut query = magnum_service::table.into_boxed();
    if let Some(start) = page.start("magnum_service") {
        query = query.filter(start);
    }
    if let Some(limit) = page.limit {
        query = query.limit(i64::from(limit));
    }
    let rows: Vec<MagnumServiceRow> = query
        .select(MagnumServiceRow::as_select())
        .order(page.order("magnum_service"))
        .load(conn)?;
    Ok(rows.into_iter().map(MagnumService::from).collect())
}

/// The service of a host.
///
/// # Errors
/// The database failed.
pub fn find_service(
    conn: &mut AnyConnection,
    host: &str,
    binary: &str,
) -> Result<Option<MagnumService>, DbError> {
    let of_host = magnum_service::table
        .filter(magnum_service::host.eq(host))
        .filter(magnum_service::binary.eq(binary));
    Ok(of_host
        .select(MagnumServiceRow::as_select())
        .first::<MagnumServiceRow>(conn)
        .optional()?
        .map(MagnumService::from))
}

/// The service with this row number.
///
/// # Errors
/// The database failed.
pub fn find_service_by_id(conn: &mut AnyConnection, id: i32) -> Result<Option<MagnumService>, DbError> {
    Ok(magnum_service::table
        .filter(magnum_service::id.eq(id))
        .select(MagnumServiceRow::as_select())
        .first::<MagnumServiceRow>(conn)
        .optional()?
        .map(MagnumService::from))
}

/// The quota with this row number.
///
/// # Errors
/// The database failed.
pub fn find_quota_by_id(conn: &mut AnyConnection, id: i32) -> Result<Option<Quota>, DbError> {
    Ok(quotas::table
        .filter(quotas::id.eq(id))
        .select(QuotaRow::as_select())
        .first::<QuotaRow>(conn)
        .optional()?
        .map(Quota::from))
}

/// A project's limit of one resource, if one was set.
///
/// # Errors
/// The database failed.
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
///
/// # Errors
/// The database failed.
pub fn quotas(
    conn: &mut AnyConnection,
    project_id: Option<&str>,
    page: &Page,
) -> Result<Vec<Quota>, DbError> {
    let filter = QuotaFilter {
        project_id: project_id.map(|project| Some(project.to_owned())),
        resource: None,
    };
    quotas_filtered(conn, &filter, page)
}

/// Which quotas a list holds. The outer `None` does not filter, the inner one wants NULL.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct QuotaFilter {
    pub project_id: Option<Option<String>>,
    pub resource: Option<Option<String>>,
}

/// One page of these quotas.
///
/// # Errors
/// The database failed.
pub fn quotas_filtered(
    conn: &mut AnyConnection,
    filter: &QuotaFilter,
    page: &Page,
) -> Result<Vec<Quota>, DbError> {
    let mut query = quotas::table.into_boxed();
    match filter.project_id.clone() {
        None => {}
        Some(None) => query = query.filter(quotas::project_id.is_null()),
        Some(Some(project)) => query = query.filter(quotas::project_id.eq(project)),
    }
    match filter.resource.clone() {
        None => {}
        Some(None) => query = query.filter(quotas::resource.is_null()),
        Some(Some(resource)) => query = query.filter(quotas::resource.eq(resource)),
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
