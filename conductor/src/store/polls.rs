//! Who polls which cluster, so that conductors share the work instead of repeating it.
//!
//! Every cluster in `*_IN_PROGRESS` gets a row in `conductor_cluster_poll`. A conductor claims rows that are due in
//! batches, holds them by a lease while it asks the drivers, and gives each back with the time of the next look.
//! Writes compare owner and epoch, so a conductor that was away too long changes nothing. Clusters on which an
//! operation of ours is at work, or about to be, are left out: its driver call will tell.
//!
//! A batch costs a fixed number of queries, however large it is. The leases are those of `poll_leases.rs`.

use std::time::Duration;

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Text};
use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_common::model::ClusterStatus;
use magnum_db::write::unless_exists;
use magnum_db::{self as db, AnyConnection, DbError, KeepPrepared as _, lock, schema};

use crate::workflows::{DriverRef, format};

use super::poll_leases::{millis, poll_leases, texts};
use schema::conductor_cluster_driver::dsl as driver;
use schema::conductor_operation::dsl as op;

poll_leases!(conductor_cluster_poll);

/// A cluster that this conductor may look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Which.
    pub cluster: ClusterUuid,
    /// The claim's number.
    pub epoch: i64,
    /// Looks that failed one after the other.
    pub failures: i32,
    /// The driver that built it, by name and version, when that is known.
    pub driver: Option<DriverRef>,
    /// The operation that waits for the outcome.
    pub operation: Option<OperationId>,
}

/// No operation is at work on the cluster, or will be soon. One that observes waits for this very poll, and what is queued
/// behind it waits for its end: only a delete does not. One that this release does not know is settled by who knows it.
fn no_operation() -> String {
    format!(
        "NOT EXISTS (SELECT 1 FROM conductor_operation o \
         WHERE o.cluster_uuid = conductor_cluster_poll.cluster_uuid \
         AND (o.state IN ('running', 'retrying') OR (o.state = 'observing' AND o.format > {}) \
         OR (o.state = 'queued' AND (o.kind = 'cluster_delete' OR NOT EXISTS (SELECT 1 FROM conductor_operation b \
         WHERE b.cluster_uuid = o.cluster_uuid AND b.state = 'observing')))))",
        format::KNOWN
    )
}

/// The cluster is not one that a Python conductor has taken and not yet given to its driver. Until that one returns,
/// and a stack is written, there may be nothing to see, which a driver that looks would take for a failure. The
/// clusters of our own operations are known to the journal.
const BEGUN: &str = "(c.status <> 'CREATE_IN_PROGRESS' OR c.stack_id IS NOT NULL \
     OR EXISTS (SELECT 1 FROM conductor_operation o WHERE o.cluster_uuid = c.uuid))";

fn in_progress() -> Vec<&'static str> {
    ClusterStatus::IN_PROGRESS
        .iter()
        .map(|status| status.as_str())
        .collect()
}

/// A cluster that is in progress and has no row.
#[derive(QueryableByName)]
struct Missing {
    #[diesel(sql_type = Text, column_name = uuid)]
    _uuid: String,
}

/// Gives rows to clusters that are in progress and have none: a Python conductor's driver began with them, or they
/// are new. `false`: there were none, or another conductor added the same.
///
/// # Errors
/// The database failed.
pub fn add_missing(conn: &mut AnyConnection, limit: u32) -> Result<bool, DbError> {
    let statuses: Vec<String> = in_progress().iter().map(|status| format!("'{status}'")).collect();
    let missing = format!(
        "FROM cluster c \
         WHERE c.status IN ({}) AND c.uuid IS NOT NULL AND {BEGUN} \
         AND NOT EXISTS (SELECT 1 FROM conductor_cluster_poll p WHERE p.cluster_uuid = c.uuid)",
        statuses.join(", ")
    );
    // Mostly there is none, and MySQL would lock what such an insertion reads.
    let first = diesel::sql_query(format!("SELECT c.uuid {missing} LIMIT 1")).keep_prepared();
    if first.load::<Missing>(conn)?.is_empty() {
        return Ok(false);
    }
    let insert = format!(
        "INSERT INTO conductor_cluster_poll (cluster_uuid, lease_epoch, next_poll_ms, failures) \
         SELECT c.uuid, 0, 0, 0 {missing} ORDER BY c.id LIMIT {limit}"
    );
    // When another conductor is faster with one of them, what it leaves is found again the next time.
    unless_exists(conn, |conn| diesel::sql_query(insert).execute(conn))
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
) -> Result<Vec<Claimed>, DbError> {
    use schema::cluster::dsl as c;
    let now = db::now_ms_expr(conn);
    let due: Vec<String> = poll::conductor_cluster_poll
        .inner_join(c::cluster.on(c::uuid.eq(poll::cluster_uuid.nullable())))
        .left_join(driver::conductor_cluster_driver.on(driver::cluster_uuid.eq(poll::cluster_uuid)))
        .filter(
            driver::driver
                .nullable()
                .is_null()
                .or(driver::driver.nullable().eq_any(drivers).assume_not_null()),
        )
        .filter(c::status.eq_any(in_progress()))
        .filter(poll::next_poll_ms.le(now))
        .filter(free!(conn))
        .filter(sql::<Bool>(&no_operation()))
        .order(poll::next_poll_ms)
        .limit(limit)
        .select(poll::cluster_uuid)
        .keep_prepared()
        .load(conn)?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    // One that somebody holds would keep this conductor from all of them.
    let due = lock::free_polls(conn, &due)?;
    hold(conn, me, &due, term)?;
    let rows: Vec<ClaimedRow> = poll::conductor_cluster_poll
        .left_join(driver::conductor_cluster_driver.on(driver::cluster_uuid.eq(poll::cluster_uuid)))
        .left_join(op::conductor_operation.on(op::running_key.eq(poll::cluster_uuid.nullable())))
        .filter(poll::cluster_uuid.eq_any(&due))
        .filter(poll::owner.eq(me.as_str()))
        .select((
            poll::cluster_uuid,
            poll::lease_epoch,
            poll::failures,
            driver::driver.nullable(),
            driver::version.nullable(),
            op::uuid.nullable(),
        ))
        .load(conn)?;
    Ok(rows.into_iter().map(Claimed::from).collect())
}

type ClaimedRow = (String, i64, i32, Option<String>, Option<String>, Option<String>);

impl From<ClaimedRow> for Claimed {
    fn from((cluster, epoch, failures, name, version, operation): ClaimedRow) -> Self {
        Self {
            cluster: cluster.into(),
            epoch,
            failures,
            driver: name
                .zip(version)
                .map(|(name, version)| DriverRef { name, version }),
            operation: operation.map(OperationId::new),
        }
    }
}

/// Gives one cluster back, to be looked at again after `pause`. First statement of a transaction that writes
/// what was seen: `false` means that the lease is lost, and nothing may be written.
///
/// # Errors
/// The database failed.
pub fn give_back(
    conn: &mut AnyConnection,
    me: &ConductorId,
    claimed: &Claimed,
    pause: Duration,
    failures: i32,
) -> Result<bool, DbError> {
    let given = diesel::update(
        poll::conductor_cluster_poll
            .filter(poll::cluster_uuid.eq(claimed.cluster.as_str()))
            .filter(poll::owner.eq(me.as_str()))
            .filter(poll::lease_epoch.eq(claimed.epoch)),
    )
    .set((
        poll::owner.eq(None::<String>),
        poll::lease_expires_ms.eq(None::<i64>),
        poll::next_poll_ms.eq(db::now_plus_ms_expr(millis(pause))),
        poll::failures.eq(failures),
    ))
    .execute(conn)?;
    Ok(given == 1)
}

/// Gives clusters back about which there is nothing to write, all in one statement.
///
/// # Errors
/// The database failed.
pub fn give_back_many(
    conn: &mut AnyConnection,
    me: &ConductorId,
    clusters: &[ClusterUuid],
    pause: Duration,
    failures: i32,
) -> Result<usize, DbError> {
    Ok(diesel::update(
        poll::conductor_cluster_poll
            .filter(poll::cluster_uuid.eq_any(texts(clusters)))
            .filter(poll::owner.eq(me.as_str())),
    )
    .set((
        poll::owner.eq(None::<String>),
        poll::lease_expires_ms.eq(None::<i64>),
        poll::next_poll_ms.eq(db::now_plus_ms_expr(millis(pause))),
        poll::failures.eq(failures),
    ))
    .execute(conn)?)
}
