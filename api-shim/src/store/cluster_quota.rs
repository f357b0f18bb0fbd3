//! The cluster quota of a project: its clusters in the database, and its reservations for pending creates.
//!
//! A conductor makes the row of a new cluster after the client has got its 202. Who only counted rows would let in as
//! many as ask at the same time. So each pending create is reserved first ([`reserve`]), in a transaction that changes the
//! project's row before it counts: rows and reservations together, which is never too few, and one by one where
//! that leaves no room. It holds among all API processes on one database, whatever kind of conductor makes the clusters.
//! Not kept by it: a Python API beside us, which counts rows only.

use std::time::Duration;

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_db::write::cluster_reservations as write;
use magnum_db::{AnyConnection, Database, DbError, read};
use magnum_telemetry::field;

use super::{StoreError, reading};

/// Refuses when the project's quota is used up: by its own limit, else by `default_limit`. Does not count
/// reservations: only [`reserve`] is sure.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn check(database: &Database, project_id: String, default_limit: u32) -> Result<(), StoreError> {
    reading(database, move |connection| {
        let used = read::clusters::count(connection, Some(&project_id))?;
        let limit = limit_of(connection, &project_id, default_limit)?;
        refuse_beyond(limit, used)
    })
    .await
}

/// The project's limit.
fn limit_of(connection: &mut AnyConnection, project_id: &str, default_limit: u32) -> Result<i64, DbError> {
    let quota = read::records::find_quota(connection, project_id, "Cluster")?;
    Ok(quota.map_or_else(|| i64::from(default_limit), |quota| i64::from(quota.hard_limit)))
}

/// Refuses when the limit is reached.
fn refuse_beyond(limit: i64, used: i64) -> Result<(), StoreError> {
    if used < limit {
        return Ok(());
    }
    Err(StoreError::Refused(Fault::new(
        Exception::ResourceLimitExceeded,
        format!(
            "Resource limit exceeded: You have reached the maximum clusters per project, {limit}. You may delete a \
             cluster to make room for a new one."
        ),
    )))
}

/// Reserves a place for a cluster, or refuses as [`check`] does. Unless it is extended by [`keep`], the reservation
/// expires after `lasts`.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn reserve(
    database: &Database,
    project_id: &str,
    cluster: &ClusterUuid,
    default_limit: u32,
    lasts: Duration,
) -> Result<(), StoreError> {
    loop {
        let (project, uuid) = (project_id.to_owned(), cluster.clone());
        let reserved: Result<bool, StoreError> = database
            .transaction(move |connection| {
                if !write::begin(connection, &project)? {
                    return Ok(false);
                }
                // Reservations first: one that turns into a row meanwhile is counted in any case.
                let reserved = read::cluster_reservations::count(connection, &project)?;
                let rows = read::clusters::count(connection, Some(&project))?;
                let limit = limit_of(connection, &project, default_limit)?;
                if rows.saturating_add(reserved) >= limit {
                    refuse_beyond(limit, counted(connection, &project)?)?;
                }
                write::insert(connection, &uuid, &project, lasts)?;
                Ok(true)
            })
            .await;
        if reserved? {
            return Ok(());
        }
        let project = project_id.to_owned();
        let made: Result<(), DbError> = database
            .transaction(move |connection| write::insert_project(connection, &project))
            .await;
        made?;
    }
}

/// The exact number of clusters and reservations of a project: an expired reservation does not count and is removed, and one that is a row already, since its conductor knows nothing of reservations, counts once.
fn counted(connection: &mut AnyConnection, project_id: &str) -> Result<i64, DbError> {
    let reserved = read::cluster_reservations::of_project(connection, project_id)?;
    write::remove(connection, &reserved.past)?;
    let rows = read::clusters::count_besides(connection, project_id, &reserved.open)?;
    Ok(rows.saturating_add(i64::try_from(reserved.open.len()).unwrap_or(i64::MAX)))
}

/// Extends the reservation to as long as the request may wait in the queue: its 202 is about to be sent.
pub async fn keep(database: &Database, cluster: &ClusterUuid, lasts: Duration) {
    let uuid = cluster.clone();
    let kept = database
        .run(move |connection| write::extend(connection, &uuid, lasts))
        .await;
    if let Err(error) = kept {
        tracing::warn!(
            { field::CLUSTER } = %cluster, error = %error,
            "the quota reservation of an accepted cluster could not be extended: its project may exceed its quota"
        );
    }
}

/// Removes the reservation: the request was not accepted.
pub async fn release(database: &Database, cluster: &ClusterUuid) {
    let uuid = cluster.to_string();
    let released = database
        .run(move |connection| write::remove(connection, &[uuid]))
        .await;
    if let Err(error) = released {
        tracing::debug!({ field::CLUSTER } = %cluster, error = %error, "the quota reservation could not be removed; it expires");
    }
}
