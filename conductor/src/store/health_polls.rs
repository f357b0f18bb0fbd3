//! Who asks for which cluster's health, so that conductors share the work instead of repeating it.
//!
//! Every cluster in one of [`POLLED`] gets a row in `conductor_cluster_health`: the leases are those of `poll_leases.rs`, and
//! `answered_ms` is when the driver answered last, or was first asked in vain. It is empty as long as nobody was asked:
//! such a cluster keeps the health that somebody else wrote.

use std::collections::HashMap;
use std::time::Duration;

use diesel::prelude::*;
use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::{ClusterStatus, HealthStatus};
use magnum_db::rows::RowTime;
use magnum_db::write::unless_exists;
use magnum_db::{self as db, AnyConnection, DbError, KeepPrepared as _, lock, schema};

use super::poll_leases::{millis, poll_leases, texts};
use crate::workflows::DriverRef;

use schema::conductor_cluster_driver::dsl as driver;

poll_leases!(conductor_cluster_health);

/// Clusters in these statuses are asked about: Magnum's list (conductor.py's periodic task, contract conductor.md 9.2).
pub const POLLED: &[ClusterStatus] = &[
    ClusterStatus::CreateInProgress,
    ClusterStatus::CreateFailed,
    ClusterStatus::CreateComplete,
    ClusterStatus::UpdateInProgress,
    ClusterStatus::UpdateComplete,
    ClusterStatus::UpdateFailed,
    ClusterStatus::DeleteInProgress,
    ClusterStatus::DeleteFailed,
    ClusterStatus::RollbackInProgress,
];

/// A cluster about whose health this conductor may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthClaim {
    /// Which.
    pub cluster: ClusterUuid,
    /// The claim's number.
    pub epoch: i64,
    /// Looks without an answer, one after the other.
    pub failures: i32,
    /// The driver that built it, by name and version, when that is known.
    pub driver: Option<DriverRef>,
    /// Time since the driver answered last, or was first asked in vain.
    pub unanswered: Option<Duration>,
}

/// What came of a look, for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The driver answered.
    Given,
    /// It did not, so many times in a row.
    Missing {
        /// How many.
        failures: i32,
    },
    /// Nobody was asked: another writes this cluster's health, or nobody does.
    NotAsked,
}

fn polled() -> Vec<&'static str> {
    POLLED.iter().map(|status| status.as_str()).collect()
}

/// Gives rows to clusters that have none, first due after `delay`. Returns whether as many as `limit` were added.
///
/// # Errors
/// The database failed.
pub fn add_missing(conn: &mut AnyConnection, limit: u32, delay: Duration) -> Result<bool, DbError> {
    let statuses: Vec<String> = polled().iter().map(|status| format!("'{status}'")).collect();
    let due = db::now_ms(conn)?.saturating_add(millis(delay));
    let insert = format!(
        "INSERT INTO conductor_cluster_health (cluster_uuid, lease_epoch, next_poll_ms, failures) \
         SELECT c.uuid, 0, {due}, 0 FROM cluster c \
         WHERE c.status IN ({}) AND c.uuid IS NOT NULL \
         AND NOT EXISTS (SELECT 1 FROM conductor_cluster_health p WHERE p.cluster_uuid = c.uuid) \
         ORDER BY c.id LIMIT {limit}",
        statuses.join(", ")
    );
    let mut added = 0;
    // When another conductor is faster with one of them, what it leaves is found again the next time.
    unless_exists(conn, |conn| {
        added = diesel::sql_query(insert).execute(conn)?;
        Ok(added)
    })?;
    Ok(u32::try_from(added).is_ok_and(|added| added >= limit))
}

/// Claims clusters that are due and whose driver, when it is known, is one of `drivers`.
///
/// # Errors
/// The database failed.
pub fn claim(
    conn: &mut AnyConnection,
    me: &ConductorId,
    drivers: &[String],
    term: Duration,
    limit: i64,
) -> Result<Vec<HealthClaim>, DbError> {
    use schema::cluster::dsl as c;
    let now = db::now_ms_expr(conn);
    let due: Vec<String> = poll::conductor_cluster_health
        .inner_join(c::cluster.on(c::uuid.eq(poll::cluster_uuid.nullable())))
        .left_join(driver::conductor_cluster_driver.on(driver::cluster_uuid.eq(poll::cluster_uuid)))
        .filter(
            driver::driver
                .nullable()
                .is_null()
                .or(driver::driver.nullable().eq_any(drivers).assume_not_null()),
        )
        .filter(c::status.eq_any(polled()))
        .filter(poll::next_poll_ms.le(now))
        .filter(free!(conn))
        .order(poll::next_poll_ms)
        .limit(limit)
        .select(poll::cluster_uuid)
        .keep_prepared()
        .load(conn)?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    // One that somebody holds would keep this conductor from all of them.
    let due = lock::free_health_polls(conn, &due)?;
    hold(conn, me, &due, term)?;
    let rows: Vec<ClaimRow> = poll::conductor_cluster_health
        .left_join(driver::conductor_cluster_driver.on(driver::cluster_uuid.eq(poll::cluster_uuid)))
        .filter(poll::cluster_uuid.eq_any(&due))
        .filter(poll::owner.eq(me.as_str()))
        .select((
            poll::cluster_uuid,
            poll::lease_epoch,
            poll::failures,
            poll::answered_ms,
            driver::driver.nullable(),
            driver::version.nullable(),
            now,
        ))
        .load(conn)?;
    Ok(rows.into_iter().map(HealthClaim::from).collect())
}

type ClaimRow = (String, i64, i32, Option<i64>, Option<String>, Option<String>, i64);

impl From<ClaimRow> for HealthClaim {
    fn from((cluster, epoch, failures, answered, name, version, now): ClaimRow) -> Self {
        Self {
            cluster: cluster.into(),
            epoch,
            failures,
            driver: name
                .zip(version)
                .map(|(name, version)| DriverRef { name, version }),
            unanswered: answered
                .map(|answered| Duration::from_millis(u64::try_from(now - answered).unwrap_or(0))),
        }
    }
}

/// Gives clusters back, to be looked at again after `pause`: one statement for all of which the same came.
///
/// # Errors
/// The database failed.
pub fn give_back(
    conn: &mut AnyConnection,
    me: &ConductorId,
    clusters: &[ClusterUuid],
    pause: Duration,
    answer: Answer,
) -> Result<usize, DbError> {
    let now = db::now_ms_expr(conn);
    let ours = poll::conductor_cluster_health
        .filter(poll::cluster_uuid.eq_any(texts(clusters)))
        .filter(poll::owner.eq(me.as_str()));
    let free = (
        poll::owner.eq(None::<String>),
        poll::lease_expires_ms.eq(None::<i64>),
        poll::next_poll_ms.eq(db::now_plus_ms_expr(millis(pause))),
    );
    let given = match answer {
        Answer::Given => diesel::update(ours)
            .set((free, poll::failures.eq(0), poll::answered_ms.eq(now.nullable())))
            .execute(conn)?,
        Answer::NotAsked => diesel::update(ours)
            .set((free, poll::failures.eq(0), poll::answered_ms.eq(None::<i64>)))
            .execute(conn)?,
        Answer::Missing { failures } => {
            let since = diesel::dsl::case_when(poll::answered_ms.is_null(), now.nullable())
                .otherwise(poll::answered_ms);
            diesel::update(ours)
                .set((free, poll::failures.eq(failures), poll::answered_ms.eq(since)))
                .execute(conn)?
        }
    };
    Ok(given)
}

/// Gives clusters back about which nobody was asked, because this conductor stops: another may ask at once.
///
/// # Errors
/// The database failed.
pub fn hand_over(
    conn: &mut AnyConnection,
    me: &ConductorId,
    clusters: &[ClusterUuid],
) -> Result<usize, DbError> {
    Ok(diesel::update(
        poll::conductor_cluster_health
            .filter(poll::cluster_uuid.eq_any(texts(clusters)))
            .filter(poll::owner.eq(me.as_str())),
    )
    .set((
        poll::owner.eq(None::<String>),
        poll::lease_expires_ms.eq(None::<i64>),
    ))
    .execute(conn)?)
}

/// Of these clusters, given with a claim of `me`, those that are still there, and whether that claim is the latest one:
/// then nobody else has looked at them since. What `me` holds right now counts, whatever its claim.
///
/// # Errors
/// The database failed.
pub fn latest_is_ours(
    conn: &mut AnyConnection,
    me: &ConductorId,
    claims: &[(ClusterUuid, i64)],
) -> Result<HashMap<ClusterUuid, bool>, DbError> {
    use schema::cluster::dsl as c;
    let claimed: HashMap<&str, i64> = claims
        .iter()
        .map(|(cluster, epoch)| (cluster.as_str(), *epoch))
        .collect();
    let rows: Vec<(String, i64, Option<String>)> = poll::conductor_cluster_health
        .inner_join(c::cluster.on(c::uuid.eq(poll::cluster_uuid.nullable())))
        .filter(poll::cluster_uuid.eq_any(claimed.keys()))
        .select((poll::cluster_uuid, poll::lease_epoch, poll::owner))
        .load(conn)?;
    Ok(rows
        .into_iter()
        .map(|(cluster, epoch, owner)| {
            let ours = claimed.get(cluster.as_str()) == Some(&epoch) || owner.as_deref() == Some(me.as_str());
            (cluster.into(), ours)
        })
        .collect())
}

/// Time since a row was written; none when its writer's clock is ahead.
fn since(time: RowTime) -> Duration {
    (RowTime::now().0 - time.0).to_std().unwrap_or_default()
}

/// Clusters whose driver has not answered for `silence`, and that no conductor has asked about for `overdue` after
/// they were due: none has the driver. Left out are those that are UNKNOWN already, and those whose row was written
/// meanwhile: another service may look after their health, or they were in a status that is not polled until a moment ago.
///
/// # Errors
/// The database failed.
pub fn abandoned(
    conn: &mut AnyConnection,
    silence: Duration,
    overdue: Duration,
    limit: i64,
) -> Result<Vec<ClusterUuid>, DbError> {
    use schema::cluster::dsl as c;
    let unknown = HealthStatus::Unknown.as_str();
    let found: Vec<(String, Option<RowTime>)> = poll::conductor_cluster_health
        .inner_join(c::cluster.on(c::uuid.eq(poll::cluster_uuid.nullable())))
        .filter(c::status.eq_any(polled()))
        .filter(
            c::health_status
                .is_null()
                .or(c::health_status.ne(unknown).assume_not_null()),
        )
        .filter(
            poll::answered_ms
                .le(db::now_plus_ms_expr(-millis(silence)).nullable())
                .assume_not_null(),
        )
        .filter(poll::next_poll_ms.le(db::now_plus_ms_expr(-millis(overdue))))
        .filter(free!(conn))
        .order(poll::next_poll_ms)
        .limit(limit)
        .select((poll::cluster_uuid, c::updated_at))
        .load(conn)?;
    let untouched = |written: Option<RowTime>| written.is_none_or(|time| since(time) >= silence);
    Ok(found
        .into_iter()
        .filter(|(_, written)| untouched(*written))
        .map(|(uuid, _)| uuid.into())
        .collect())
}
