//! The health that a monitor outside reports of a cluster: an auto-healer does once a minute, for each of its clusters.
//!
//! It is written here, without a request to a conductor: no driver is needed for it, and what a conductor does with the
//! cluster meanwhile neither waits for it nor is disturbed. Where all conductors are Magnum's they are asked, as by
//! Magnum's API.

use std::time::Duration;

use magnum_common::error::Fault;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{HealthStatus, StringMap};
use magnum_db::Database;
use magnum_db::read::announced_drivers;
use magnum_db::write::cluster_health;

use super::{StoreError, reading};

/// Writes the health of a cluster. `false`: no conductor of ours has announced itself within `announced_within`, and
/// nothing was written.
///
/// # Errors
/// The cluster is gone, or the database failed.
pub async fn report(
    database: &Database,
    cluster: ClusterUuid,
    status: Option<HealthStatus>,
    reasons: StringMap,
    announced_within: Duration,
) -> Result<bool, StoreError> {
    reading(database, move |connection| {
        if !announced_drivers::any(connection, announced_within)? {
            return Ok(false);
        }
        if !cluster_health::set(connection, &cluster, status, &reasons)? {
            return Err(Fault::cluster_not_found(cluster.as_str()).into());
        }
        Ok(true)
    })
    .await
}
