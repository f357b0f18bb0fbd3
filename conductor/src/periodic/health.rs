//! Keeps the health of clusters true.
//!
//! ```text
//! every tenth of the interval: claim what is due ─▶ ask its drivers ─▶ write what changed, give back
//!                                                                           └─▶ what they use (utilisation.rs)
//! ```
//!
//! Guarantees: N conductors share the work, each cluster is asked about by one of them at a time and once an interval;
//! the looks are spread over the interval; a batch costs a fixed number of statements plus one for each cluster whose
//! health changed; health is written only over the health that was there before the driver was asked, never with a
//! status, never for a cluster that is gone. No health is older than [`Timing::silence`] plus an interval: a driver
//! that says nothing for so long, fails, or is loaded nowhere, makes UNKNOWN.
//!
//! It does not guarantee that a change is seen: a cluster may be ill and well again between two looks.
//!
//! Polled are the clusters in [`POLLED`](crate::store::health_polls::POLLED) whose driver has the capability `health` or
//! `monitor`. Asked about their health are those of a driver with `health`, without those whose labels say that an
//! auto-healer in the cluster writes their health. All others keep the health that somebody else wrote. What a driver
//! with `monitor` says is the business of [`Utilisation`](super::utilisation::Utilisation), which gets each batch when
//! its health is written.
//!
//! Where Magnum differs: every conductor asks about every cluster, each minute whatever the option says, all at once;
//! and a cluster that cannot be looked at keeps its health for ever.

mod batch;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::clock;
use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_common::model::HealthStatus;
use magnum_db::{Database, DbError};
use rand::RngExt;
use tokio_util::sync::CancellationToken;

pub use super::polling::Pace;
use super::polling::{Claim, Poller};
use super::utilisation::UtilisationQueue;
use super::{Rounds, Trouble};
use crate::store::cluster_health;
use crate::store::health_polls::{self, HealthClaim};
use crate::workflows::{DriverRef, DriverSource};

/// Looks of a conductor at what is due, in an interval.
const LOOKS: u32 = 10;

/// Clusters become due at so many moments of an interval, so that those of one moment fill a batch.
const MOMENTS: u32 = 20;

/// Intervals between two sweeps of rows whose cluster is gone.
const SWEEP_EVERY: u32 = 100;

/// Fewer seconds are not enough for a driver that asks a cloud.
const SHORTEST_LOOK: Duration = Duration::from_secs(10);

/// When health is believed no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How long a driver may say nothing.
    pub silence: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(600),
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
}

impl HealthCheck {
    /// A check at this pace.
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

    /// The same check, which hands over what it has looked at to whoever asks what clusters use.
    pub fn with_utilisation(self, queue: UtilisationQueue) -> Self {
        Self {
            utilisation: Some(queue),
            ..self
        }
    }

    /// Looks until `shutdown`; what drivers are being asked then is dropped, and their clusters given back.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(self.poller.pace.interval / LOOKS, shutdown.clone());
        let mut trouble = Trouble::with("the health check");
        let mut round = 0_u32;
        loop {
            if round.is_multiple_of(LOOKS) {
                trouble.note(self.add_missing().await);
            }
            trouble.note(self.round(&shutdown).await);
            // Not at the start: what was not asked about while no conductor ran is asked about now.
            if round > 0 && round.is_multiple_of(LOOKS) {
                trouble.note(self.give_up().await);
            }
            if round.is_multiple_of(LOOKS * SWEEP_EVERY) {
                trouble.note(self.poller.db.run(health_polls::remove_orphans).await);
            }
            round = round.wrapping_add(1);
            if !rounds.next().await {
                return;
            }
        }
    }

    /// Looks at everything that is due. Returns how many clusters that were.
    ///
    /// # Errors
    /// The database failed.
    pub async fn round(&self, shutdown: &CancellationToken) -> Result<usize, DbError> {
        let mut looked_at = 0;
        while !shutdown.is_cancelled() {
            let claims = self.claim().await?;
            let count = claims.len();
            looked_at += count;
            if count > 0 {
                self.look(claims, shutdown).await?;
            }
            if count < self.poller.pace.batch {
                break;
            }
        }
        Ok(looked_at)
    }

    async fn claim(&self) -> Result<Vec<HealthClaim>, DbError> {
        let (me, pace) = (self.poller.me.clone(), self.poller.pace);
        let drivers = self.poller.drivers.reporting();
        let limit = i64::try_from(pace.batch).unwrap_or(i64::MAX);
        self.poller
            .db
            .run(move |conn| health_polls::claim(conn, &me, &drivers, pace.lease, limit))
            .await
    }

    /// Takes up clusters that are new. The first are due at once; when there are many, as after an upgrade, each further
    /// batch is due at a moment of its own.
    ///
    /// # Errors
    /// The database failed.
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

    /// Makes the health of clusters unknown that no conductor has asked about for long: none has their driver. Returns
    /// how many that were.
    ///
    /// # Errors
    /// The database failed.
    pub async fn give_up(&self) -> Result<usize, DbError> {
        let (silence, pace) = (self.timing.silence, self.poller.pace);
        let limit = i64::try_from(pace.batch).unwrap_or(i64::MAX);
        let given_up = self
            .poller
            .db
            .run(move |conn| {
                let abandoned = health_polls::abandoned(conn, silence, pace.interval, limit)?;
                if abandoned.is_empty() {
                    return Ok(0);
                }
                let reasons = verdict::no_answer(silence, "no conductor has the driver");
                let mut given_up = 0;
                for (cluster, before) in cluster_health::stored(conn, &abandoned)? {
                    let unknown = HealthStatus::Unknown;
                    let written = cluster_health::replace(conn, None, &cluster, &before, unknown, &reasons)?;
                    given_up += usize::from(written);
                }
                Ok(given_up)
            })
            .await?;
        if given_up > 0 {
            tracing::warn!(
                clusters = given_up,
                "no conductor has the driver of some clusters: their health is unknown"
            );
        }
        Ok(given_up)
    }

    /// How long after now a cluster is due again.
    fn pause(&self) -> Duration {
        pause(
            Duration::from_millis(u64::try_from(clock::utc_now().timestamp_millis()).unwrap_or(0)),
            self.poller.pace.interval,
        )
    }

    /// How long drivers may take for an answer.
    fn longest_look(&self) -> Duration {
        self.poller.pace.interval.max(SHORTEST_LOOK)
    }
}

/// From `now`, a time since any fixed moment, to the first of an interval's moments that is at least four fifths of an
/// interval away: with a conductor's next look after that, it is an interval at most.
fn pause(now: Duration, interval: Duration) -> Duration {
    let moment = (interval / MOMENTS).max(Duration::from_millis(1));
    let earliest = now + interval.mul_f64(0.8);
    let past = earliest.as_nanos() % moment.as_nanos();
    let wait = u64::try_from((moment.as_nanos() - past) % moment.as_nanos()).unwrap_or(0);
    earliest + Duration::from_nanos(wait) - now
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_of_a_moment_become_due_together() {
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
