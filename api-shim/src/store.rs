//! Reads and writes of the database, in the words of the handlers.
//!
//! Each function is one piece of work on one connection, with a number of queries that does not depend on how
//! many rows it returns. What is not found is Magnum's fault for it.

pub mod acceptance;
pub mod cluster_health;
pub mod cluster_quota;
pub mod cluster_templates;
pub mod clusters;
mod error;
pub mod federations;
pub mod node_groups;
pub mod operation_search;
pub mod operations;
pub mod overview;
pub mod quotas;

use std::time::Duration;

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::MagnumService;
use magnum_db::read::{self, Page, SortDir, SortKey, cluster_drivers};
use magnum_db::{AnyConnection, Database, now_ms};
use magnum_drivers::Announcement;

pub use error::StoreError;

use crate::validation::query::{Direction, Paging, bad_sort_key};

/// Runs work that reads.
async fn reading<T: Send + 'static>(
    database: &Database,
    work: impl FnOnce(&mut AnyConnection) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    // A fault to tell is a value as far as the pool is concerned.
    let done = database
        .run(move |connection| match work(connection) {
            Ok(value) => Ok(Ok(value)),
            Err(StoreError::Refused(fault)) => Ok(Err(fault)),
            Err(StoreError::Database(error)) => Err(error),
        })
        .await?;
    Ok(done?)
}

/// A uuid or a name, as Magnum tells them apart: what reads as a uuid is one. Uuids are looked up in their usual
/// form, so that case and dashes do not matter.
enum Ident {
    Uuid(String),
    Name(String),
}

impl Ident {
    fn of(text: &str) -> Self {
        match uuid::Uuid::try_parse(text) {
            Ok(uuid) => Self::Uuid(uuid.to_string()),
            Err(_) => Self::Name(text.to_owned()),
        }
    }
}

/// The only one of at most two, or the fault for none or several.
fn only<T>(found: Vec<T>, none: impl FnOnce() -> Fault, several: &str) -> Result<T, Fault> {
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(none()),
        (Some(_), Some(_)) => Err(Fault::new(Exception::Conflict, several)),
    }
}

/// The page that the query asks for.
fn page_of(paging: &Paging, sort_key: Option<SortKey>, after: Option<i32>) -> Result<Page, Fault> {
    Ok(Page {
        limit: Some(paging.limit),
        after,
        sort_key: Some(sort_key.ok_or_else(|| bad_sort_key(&paging.sort_key))?),
        sort_dir: match paging.direction {
            Direction::Ascending => SortDir::Asc,
            Direction::Descending => SortDir::Desc,
        },
    })
}

/// How many clusters and nodes there are, masters included, in one project or in all.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn stats(database: &Database, project: Option<String>) -> Result<(i64, i64), StoreError> {
    if project.as_deref().is_some_and(|project| project.contains('\0')) {
        // PostgreSQL cannot be asked for it, and no project is called so.
        return Ok((0, 0));
    }
    reading(database, move |connection| {
        let project = project.as_deref();
        let clusters = read::clusters::count(connection, project)?;
        Ok((clusters, read::clusters::count_nodes(connection, project)?))
    })
    .await
}

/// All services.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn services(database: &Database) -> Result<Vec<MagnumService>, StoreError> {
    Ok(database.run(read::records::services).await?)
}

/// The drivers of the conductors that announced them within `max_age`.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn announced_drivers(
    database: &Database,
    max_age: Duration,
) -> Result<Vec<Announcement>, StoreError> {
    let announced = database
        .run(move |connection| read::announced_drivers::list(connection, max_age))
        .await?;
    let loaded = announced.into_iter().filter(|driver| driver.error.is_none());
    Ok(loaded.map(|driver| driver.announcement).collect())
}

/// The driver that built a cluster, where a conductor of ours has recorded it.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn built_by(
    database: &Database,
    cluster: &ClusterUuid,
) -> Result<Option<cluster_drivers::BuiltBy>, StoreError> {
    let cluster = cluster.clone();
    Ok(database
        .run(move |conn| cluster_drivers::of_cluster(conn, cluster.as_str()))
        .await?)
}

/// Whether the database answers.
pub async fn is_reachable(database: &Database) -> bool {
    database.run(now_ms).await.is_ok()
}
