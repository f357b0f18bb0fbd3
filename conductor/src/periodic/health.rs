//! Polls drivers for the health of clusters, and writes it.
//!
//! ```text
//! every tenth of the interval: claim due clusters ─▶ poll their drivers ─▶ write changes, give back
//!                                                                               └─▶ utilisation (utilisation.rs)
//! ```
//!
//! Guarantees: N conductors share the work, each cluster is polled by one of them at a time and once an interval; the
//! polls are spread over the interval; a batch costs a fixed number of statements plus one for each cluster whose
//! health changed; health is written only if the row still has the health from before the poll, never with a status,
//! never for a deleted cluster. No health is older than [`Timing::unknown_after`] plus an interval: the health of a
//! cluster whose driver fails, omits it, or is loaded nowhere for so long becomes UNKNOWN.
//!
//! Not guaranteed: that every change is seen. A cluster may become unhealthy and healthy again between two polls.
//!
//! Polled are the clusters in [`POLLED`](crate::store::health_polls::POLLED) whose driver has the capability `health` or
//! `monitor`. Health is written for those of a driver with `health`, except clusters whose labels name an auto-healer
//! that writes it. All others keep the health that somebody else wrote. Drivers with `monitor` are polled by
//! [`Utilisation`](super::utilisation::Utilisation), which gets each batch when its health is written.
//!
//! Where Magnum differs: every conductor polls every cluster, each minute whatever the option says, all at once; and a
//! cluster whose poll fails keeps its health for ever.

mod batch;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::clock;
use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_common::model::HealthStatus;
use magnum_db::{Database, DbError};
use rand::RngExt;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use super::polling::Pace;
use super::polling::{Claim, ClaimedBatch, IsHeld, Poller};
use super::utilisation::UtilisationQueue;
use super::{FailureLog, Rounds};
use crate::objects_rpc::ObjectsRpc;
use crate::store::cluster_health;
use crate::store::health_polls::{self, HealthClaim};
use crate::workflows::{DriverRef, DriverSource};

/// Rounds of a conductor in an interval.
const ROUNDS_PER_INTERVAL: u32 = 10;

/// Clusters become due at this many points of an interval, so that those of one point fill a batch.
const DUE_TIMES_PER_INTERVAL: u32 = 20;

/// Intervals between two sweeps of rows whose cluster is gone.
const SWEEP_EVERY: u32 = 100;

/// Shortest time limit of a poll, however short the interval is: drivers ask their cloud.
const MIN_POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// When the stored health of a cluster is no longer trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Health becomes UNKNOWN when the driver has not reported any for this long.
    pub unknown_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            unknown_after: Duration::from_secs(600),
        }
    }
}

/// The health check of one conductor.
#[derive(Clone)]
pub struct HealthCheck {
    poller: Poller,
    timing: Timing,
    utilisation: Option<UtilisationQueue>,
}

impl Claim for HealthClaim {
    fn cluster(&self) -> &ClusterUuid {
        &self.cluster
    }
    fn driver(&self) -> Option<&DriverRef> {
        self.driver.as_ref()
    }
    fn operation(&self) -> Option<&OperationId> {
        None
    }
    fn epoch(&self) -> i64 {
        self.epoch
    }
    const IS_HELD: IsHeld = health_polls::is_held;
    const READS_STATUS: bool = false;
}

impl HealthCheck {
    /// A health check at this pace.
    pub fn new(
        db: Database,
        me: ConductorId,
        drivers: Arc<dyn DriverSource>,
        pace: Pace,
        timing: Timing,
    ) -> Self {
        Self {
            poller: Poller::new(db, me, drivers, pace),
            timing,
            utilisation: None,
        }
    }

    /// The same check, whose drivers get the rows of clusters from `objects`.
    pub fn with_objects(self, objects: ObjectsRpc) -> Self {
        Self {
            poller: self.poller.with_objects(objects),
            ..self
        }
    }

    /// The same check, which also queues each batch for the poll of utilisation.
    pub fn with_utilisation(self, queue: UtilisationQueue) -> Self {
        Self {
            utilisation: Some(queue),
            ..self
        }
    }

    /// Polls until `shutdown`; polls that run then are dropped, and their clusters given back.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(self.poller.pace.interval / ROUNDS_PER_INTERVAL, shutdown.clone());
        let mut failures = FailureLog::of("the health check");
        let mut round = 0_u32;
        loop {
            if round.is_multiple_of(ROUNDS_PER_INTERVAL) {
                failures.record(self.add_missing().await);
            }
            failures.record(self.round(&shutdown).await);
            // Not at the start: clusters that were not polled while no conductor ran are polled first.
            if round > 0 && round.is_multiple_of(ROUNDS_PER_INTERVAL) {
                failures.record(self.expire_health().await);
            }
            if round.is_multiple_of(ROUNDS_PER_INTERVAL * SWEEP_EVERY) {
                failures.record(self.poller.db.run(health_polls::remove_orphans).await);
            }
            round = round.wrapping_add(1);
            if !rounds.next().await {
                return;
            }
        }
    }

    /// Polls all clusters that are due. Returns their number.
    ///
    /// # Errors
    /// The database failed; clusters that are claimed then come free when their lease expires.
    pub async fn round(&self, shutdown: &CancellationToken) -> Result<usize, DbError> {
        let mut polled = 0;
        while !shutdown.is_cancelled() {
            let batch = self.claim().await?;
            let count = batch.len();
            polled += count;
            if count > 0 {
                self.poll(batch, shutdown).await?;
            }
            if count < self.poller.pace.batch {
                break;
            }
        }
        Ok(polled)
    }

    async fn claim(&self) -> Result<ClaimedBatch<HealthClaim>, DbError> {
        let (me, pace) = (self.poller.me.clone(), self.poller.pace);
        let drivers = self.poller.drivers.reporting();
        let limit = i64::try_from(pace.batch).unwrap_or(i64::MAX);
        let sent = Instant::now();
        let claim = move |conn: &mut _| health_polls::claim(conn, &me, &drivers, pace.lease, limit);
        let claimed = self.poller.db.run(claim).await?;
        Ok(ClaimedBatch::new(claimed, sent, pace.lease, health_polls::renew))
    }

    /// Adds rows for new clusters. The first batch is due at once; further ones, as after an upgrade, at random points
    /// of the interval.
    ///
    /// # Errors
    /// The database failed; batches that were added before stay.
    pub async fn add_missing(&self) -> Result<(), DbError> {
        let (batch, interval) = (self.poller.pace.batch, self.poller.pace.interval);
        let limit = u32::try_from(batch).unwrap_or(u32::MAX);
        let mut delay = Duration::ZERO;
        while self
            .poller
            .db
            .run(move |conn| health_polls::add_missing(conn, limit, delay))
            .await?
        {
            delay = interval.mul_f64(rand::rng().random_range(0.0..1.0));
        }
        Ok(())
    }

    /// Makes the health of clusters UNKNOWN that no conductor has polled for too long, since none has loaded their
    /// driver. Returns their number.
    ///
    /// # Errors
    /// The database failed.
    pub async fn expire_health(&self) -> Result<usize, DbError> {
        let (unknown_after, pace) = (self.timing.unknown_after, self.poller.pace);
        let limit = i64::try_from(pace.batch).unwrap_or(i64::MAX);
        let expired = self
            .poller
            .db
            .run(move |conn| {
                let abandoned = health_polls::abandoned(conn, unknown_after, pace.interval, limit)?;
                if abandoned.is_empty() {
                    return Ok(0);
                }
                let reasons = verdict::no_answer(unknown_after, "no conductor has the driver");
                let mut expired = 0;
                for (cluster, before) in cluster_health::stored(conn, &abandoned)? {
                    let unknown = HealthStatus::Unknown;
                    let written = cluster_health::replace(conn, None, &cluster, &before, unknown, &reasons)?;
                    expired += usize::from(written);
                }
                Ok(expired)
            })
            .await?;
        if expired > 0 {
            tracing::warn!(
                clusters = expired,
                "no conductor has the driver of some clusters: their health is unknown"
            );
        }
        Ok(expired)
    }

    /// The time until a cluster that was polled now is due again.
    fn pause(&self) -> Duration {
        pause(
            Duration::from_millis(u64::try_from(clock::utc_now().timestamp_millis()).unwrap_or(0)),
            self.poller.pace.interval,
        )
    }

    /// The time limit of one poll.
    fn poll_timeout(&self) -> Duration {
        self.poller.pace.interval.max(MIN_POLL_TIMEOUT)
    }
}

/// From `now`, a time since any fixed point, to the first due time that is at least four fifths of an interval away.
/// Together with the wait for a conductor's next round that is one interval at most.
fn pause(now: Duration, interval: Duration) -> Duration {
    let step = (interval / DUE_TIMES_PER_INTERVAL).max(Duration::from_millis(1));
    let earliest = now + interval.mul_f64(0.8);
    let past = earliest.as_nanos() % step.as_nanos();
    let wait = u64::try_from((step.as_nanos() - past) % step.as_nanos()).unwrap_or(0);
    earliest + Duration::from_nanos(wait) - now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_polled_within_one_step_become_due_together() {
        let interval = Duration::from_secs(60);
        let due = |now_ms| {
            let now = Duration::from_millis(now_ms);
            now + pause(now, interval)
        };
        assert_eq!(due(1_000_000_100), due(1_000_001_900));
        for now in (0..60_000).step_by(77) {
            let pause = pause(Duration::from_millis(now), interval);
            assert!(
                pause >= interval.mul_f64(0.8) && pause <= interval.mul_f64(0.851),
                "{pause:?}"
            );
        }
        assert!(pause(Duration::from_secs(5), Duration::from_millis(1)) <= Duration::from_millis(2));
    }
}
