//! The health of a cluster as a monitor outside of us reports it.
//!
//! It stands in columns that no operation writes, so it is written in any status, whoever has the cluster's lease, and
//! the last report counts.

use diesel::prelude::*;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{HealthStatus, StringMap};

use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::rows::RowTime;
use crate::rows::json::to_text;
use crate::schema::cluster::dsl as c;

/// Writes the health of a cluster. `false`: there is no such cluster.
///
/// # Errors
/// The database failed.
pub fn set(
    conn: &mut AnyConnection,
    uuid: &ClusterUuid,
    health: Option<HealthStatus>,
    reasons: &StringMap,
) -> Result<bool, DbError> {
    let written = diesel::update(c::cluster.filter(c::uuid.eq(uuid.as_str())))
        .set((
            c::health_status.eq(health.map(HealthStatus::as_str)),
            c::health_status_reason.eq(Some(to_text(reasons))),
            c::updated_at.eq(Some(RowTime::now())),
        ))
        .execute(conn)?;
    Ok(written > 0)
}
