//! Quotas. Policy decides who may ask; there is no tenant filter but the one that is asked for.

use magnum_common::clock;
use magnum_common::error::{Exception, Fault};
use magnum_common::model::Quota;
use magnum_db::read::SortKey;
use magnum_db::read::records as read;
use magnum_db::write::quotas as write;
use magnum_db::{AnyConnection, Database};

use super::{StoreError, page_of, reading};
use crate::validation::query::Paging;

fn not_found(what: &str) -> Fault {
    Fault::new(
        Exception::QuotaNotFound,
        format!("Quota could not be found: {what}"),
    )
}

fn missing(project: &str, resource: &str) -> Fault {
    not_found(&format!("project_id {project} resource {resource}."))
}

/// One page, of one project or of all. The marker is a row's number.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn page(
    database: &Database,
    project: Option<String>,
    paging: Paging,
) -> Result<Vec<Quota>, StoreError> {
    reading(database, move |connection| {
        let after = match &paging.marker {
            None => None,
            Some(marker) => {
                let found = match marker.parse() {
                    Ok(number) => read::find_quota_by_id(connection, number)?,
                    Err(_) => None,
                };
                found
                    .ok_or_else(|| not_found(&format!("quota id {marker} .")))?
                    .id
            }
        };
        let page = page_of(&paging, SortKey::of_quota(&paging.sort_key), after)?;
        Ok(read::quotas(connection, project.as_deref(), &page)?)
    })
    .await
}

/// A project's own limit of a resource, if one was set.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn find(
    database: &Database,
    project: String,
    resource: String,
) -> Result<Option<Quota>, StoreError> {
    // PostgreSQL cannot be asked for a text with a NUL character, and no row has one.
    if project.contains('\0') || resource.contains('\0') {
        return Ok(None);
    }
    reading(database, move |connection| {
        Ok(read::find_quota(connection, &project, &resource)?)
    })
    .await
}

/// Inserts a quota and returns it as its row is.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn insert(
    database: &Database,
    project: String,
    resource: String,
    hard_limit: i32,
) -> Result<Quota, StoreError> {
    database
        .transaction(move |connection| {
            let quota = Quota {
                id: None,
                project_id: Some(project.clone()),
                resource: Some(resource.clone()),
                hard_limit,
                created_at: Some(clock::row_now()),
                updated_at: None,
            };
            if !write::insert(connection, &quota)? {
                return Err(StoreError::Refused(Fault::new(
                    Exception::QuotaAlreadyExists,
                    format!("Quota for project {project} already exists for resource {resource}."),
                )));
            }
            row_of(connection, &project, &resource)
        })
        .await
}

/// Sets another limit and returns the quota as its row is.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn update(
    database: &Database,
    project: String,
    resource: String,
    hard_limit: i32,
) -> Result<Quota, StoreError> {
    if project.contains('\0') || resource.contains('\0') {
        return Err(missing(&project, &resource).into());
    }
    database
        .transaction(move |connection| {
            let before = row_of(connection, &project, &resource)?;
            let after = Quota {
                hard_limit,
                ..before.clone()
            };
            if !write::update(connection, &before, &after)? {
                return Err(missing(&project, &resource).into());
            }
            row_of(connection, &project, &resource)
        })
        .await
}

/// Takes a quota away: from then on the default holds.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn delete(database: &Database, project: String, resource: String) -> Result<(), StoreError> {
    if project.contains('\0') || resource.contains('\0') {
        return Err(missing(&project, &resource).into());
    }
    database
        .transaction(move |connection| {
            if write::delete(connection, &project, &resource)? {
                Ok(())
            } else {
                Err(missing(&project, &resource).into())
            }
        })
        .await
}

fn row_of(connection: &mut AnyConnection, project: &str, resource: &str) -> Result<Quota, StoreError> {
    let found = read::find_quota(connection, project, resource)?;
    Ok(found.ok_or_else(|| missing(project, resource))?)
}
