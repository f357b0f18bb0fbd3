//! A cluster's health, written only over the one that was looked at.
//!
//! An auto-healer, a Python conductor or a user's PATCH may write it at any time: who was faster stays. The status is
//! not touched, and a cluster that is gone stays gone.

use std::collections::HashMap;

use diesel::dsl::{exists, sql};
use diesel::prelude::*;
use diesel::sql_types::Text;
use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::{HealthStatus, StringMap};
use magnum_db::rows::RowTime;
use magnum_db::rows::json::to_text;
use magnum_db::schema::cluster::dsl as c;
use magnum_db::schema::conductor_cluster_health::dsl as poll;
use magnum_db::{AnyConnection, DbError};

use super::health_polls::HealthClaim;
use super::poll_leases::texts;

/// Health as the row has it, text by text; empty where it has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredHealth {
    status: String,
    reasons: String,
}

impl StoredHealth {
    /// Whether the row says this already.
    pub fn says(&self, status: Option<HealthStatus>, reasons: &StringMap) -> bool {
        let stored: Option<StringMap> = serde_json::from_str(&self.reasons).unwrap_or_default();
        self.status == status.map_or("", HealthStatus::as_str) && stored.unwrap_or_default() == *reasons
    }
}

/// The health of some clusters; those that are gone are left out.
///
/// # Errors
/// The database failed.
pub fn stored(
    conn: &mut AnyConnection,
    clusters: &[ClusterUuid],
) -> Result<HashMap<ClusterUuid, StoredHealth>, DbError> {
    let rows: Vec<(Option<String>, Option<String>, Option<String>)> = c::cluster
        .filter(c::uuid.eq_any(texts(clusters)))
        .select((c::uuid, c::health_status, c::health_status_reason))
        .load(conn)?;
    Ok(rows
        .into_iter()
        .filter_map(|(uuid, status, reasons)| {
            let stored = StoredHealth {
                status: status.unwrap_or_default(),
                reasons: reasons.unwrap_or_default(),
            };
            Some((uuid?.into(), stored))
        })
        .collect())
}

/// Writes `status` and `reasons` over `before`. With a claim, only while `me` holds it. `false`: the row says something
/// else by now, is gone, or the claim is lost.
///
/// # Errors
/// The database failed.
pub fn replace(
    conn: &mut AnyConnection,
    claim: Option<(&ConductorId, &HealthClaim)>,
    cluster: &ClusterUuid,
    before: &StoredHealth,
    status: HealthStatus,
    reasons: &StringMap,
) -> Result<bool, DbError> {
    let row = c::cluster
        .filter(c::uuid.eq(cluster.as_str()))
        .filter(sql::<Text>("COALESCE(health_status, '')").eq(&before.status))
        .filter(sql::<Text>("COALESCE(health_status_reason, '')").eq(&before.reasons));
    let new = (
        c::health_status.eq(Some(status.as_str())),
        c::health_status_reason.eq(Some(to_text(reasons))),
        c::updated_at.eq(Some(RowTime::now())),
    );
    let written = match claim {
        None => diesel::update(row).set(new).execute(conn)?,
        Some((me, claim)) => {
            let held = poll::conductor_cluster_health
                .filter(poll::cluster_uuid.eq(cluster.as_str()))
                .filter(poll::owner.eq(me.as_str()))
                .filter(poll::lease_epoch.eq(claim.epoch));
            diesel::update(row.filter(exists(held))).set(new).execute(conn)?
        }
    };
    Ok(written == 1)
}
