//! How many clusters a project may have, and how many it has: those in the database, and those that were promised.
//!
//! A conductor makes the row of a new cluster after the client has got its 202. Who only counted rows would let in as
//! many as ask at the same time. So each promise is written down first ([`reserve`]), in a transaction that holds the
//! project's row locked while it counts: rows and reservations together, which is never too few, and one by one where
//! that leaves no room. It holds among all API processes on one database, whatever kind of conductor makes the clusters.
//! Not kept by it: a Python API beside us, which counts rows only.

use std::time::Duration;

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_db::write::cluster_reservations as write;
use magnum_db::{AnyConnection, Database, DbError, lock, read};
use magnum_telemetry::field;

use super::{Failure, reading};
use crate::faults::ApiFault;

/// Refuses when the project has as many clusters as it may have: by its own limit, else by `default_limit`. Without
/// those that were promised: only [`reserve`] is sure.
pub async fn check(database: &Database, project_id: String, default_limit: u32) -> Result<(), ApiFault> {
    reading(database, move |connection| {
        let used = read::clusters::count(connection, Some(&project_id))?;
        let limit = limit_of(connection, &project_id, default_limit)?;
        refuse_beyond(limit, used)
    })
    .await
}

/// As many clusters as the project may have.
fn limit_of(connection: &mut AnyConnection, project_id: &str, default_limit: u32) -> Result<i64, DbError> {
    let quota = read::records::find_quota(connection, project_id, "Cluster")?;
    Ok(quota.map_or_else(|| i64::from(default_limit), |quota| i64::from(quota.hard_limit)))
}

/// Refuses when there are that many.
fn refuse_beyond(limit: i64, used: i64) -> Result<(), Failure> {
    if used < limit {
        return Ok(());
    }
    Err(Failure::Told(Fault::new(
        Exception::ResourceLimitExceeded,
        format!(
            "Resource limit exceeded: You have reached the maximum clusters per project, {limit}. You may delete a \
             cluster to make room for a new one."
        ),
    )))
}

/// Reserves a place for a cluster, or refuses as [`check`] does. Unless it is kept, the place is free again after
/// `lasts`.
pub async fn reserve(
    database: &Database,
    project_id: &str,
    cluster: &ClusterUuid,
    default_limit: u32,
    lasts: Duration,
) -> Result<(), ApiFault> {
    loop {
        let (project, uuid) = (project_id.to_owned(), cluster.clone());
        let reserved: Result<bool, Failure> = database
            .transaction(move |connection| {
                if !lock::project(connection, &project)? {
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
        database
            .run(move |connection| write::insert_project(connection, &project))
            .await?;
    }
}

/// How many clusters a project has and was promised, to the last one: a reservation whose time is over does not count
/// and is removed, and one that is a row already, since its conductor knows nothing of reservations, counts once.
fn counted(connection: &mut AnyConnection, project_id: &str) -> Result<i64, DbError> {
    let reserved = read::cluster_reservations::of_project(connection, project_id)?;
    write::remove(connection, &reserved.past)?;
    let rows = read::clusters::count_besides(connection, project_id, &reserved.open)?;
    Ok(rows.saturating_add(i64::try_from(reserved.open.len()).unwrap_or(i64::MAX)))
}

/// Keeps the place for as long as the cluster's request may wait in the queue: its 202 is about to be sent.
pub async fn keep(database: &Database, cluster: &ClusterUuid, lasts: Duration) {
    let uuid = cluster.clone();
    let kept = database
        .run(move |connection| write::extend(connection, &uuid, lasts))
        .await;
    if let Err(error) = kept {
        tracing::warn!(
            { field::CLUSTER } = %cluster, error = %error,
            "the place of a cluster that was promised is not kept for long: its project may exceed its quota"
        );
    }
}

/// Gives the place back: the cluster was not promised.
pub async fn release(database: &Database, cluster: &ClusterUuid) {
    let uuid = cluster.to_string();
    let released = database
        .run(move |connection| write::remove(connection, &[uuid]))
        .await;
    if let Err(error) = released {
        tracing::debug!({ field::CLUSTER } = %cluster, error = %error, "a place is free again later");
    }
}
