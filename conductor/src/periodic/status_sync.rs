//! Status polling: asks drivers how clusters in progress are, and writes their status.
//!
//! ```text
//! claim a batch that is due ─▶ read it ─▶ group by driver ─▶ observe, bounded ─▶ write changes, give back
//! ```
//!
//! Guarantees: N conductors share the work, each cluster is polled by one of them at a time; a batch costs a fixed
//! number of queries plus one transaction per cluster that changed; a status is written only if the row still has the
//! status from before the poll, so a deletion accepted meanwhile stays; the operation that waits for a cluster is
//! finished in the same transaction as the cluster's status. A cluster whose driver is not loaded here, fails, or
//! omits it is left unchanged, and polled again after growing pauses.
//!
//! Python conductors that poll the same clusters beside us find the same status, and write it again.
//!
//! Where Magnum differs: every conductor polls every cluster every ten seconds, unbounded, for ever.

mod batch;
mod failed_groups;
mod record;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_db::{Database, DbError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use super::polling::Pace;
use super::polling::{Claim, ClaimedBatch, IsHeld, Poller};
use super::{FailureLog, Rounds};
use crate::objects_rpc::ObjectsRpc;
use crate::operations::Signals;
use crate::operations::notice::NoticeQueue;
use crate::store::polls::{self, Claimed};
use crate::workflows::{DriverRef, DriverSource};

/// Rounds between two sweeps of rows whose cluster is gone.
const SWEEP_EVERY: u32 = 100;

/// Rows of new clusters are added for this many batches in one statement.
const BATCHES_ADDED_AT_ONCE: usize = 10;

/// The status sync of one conductor.
#[derive(Clone)]
pub struct StatusSync {
    poller: Poller,
    /// Starts a round when an operation begins to be observed, and wakes workers when one is finished.
    signals: Arc<Signals>,
    /// Takes the notifications of clusters that left their status in progress.
    pub notices: NoticeQueue,
}

impl Claim for Claimed {
    fn cluster(&self) -> &ClusterUuid {
        &self.cluster
    }
    fn driver(&self) -> Option<&DriverRef> {
        self.driver.as_ref()
    }
    fn operation(&self) -> Option<&OperationId> {
        self.operation.as_ref()
    }
    fn epoch(&self) -> i64 {
        self.epoch
    }
    const IS_HELD: IsHeld = polls::is_held;
    const READS_STATUS: bool = true;
}

impl StatusSync {
    /// A status sync at this pace; `notices` takes the notifications of clusters that left their status in progress.
    pub fn new(
        db: Database,
        me: ConductorId,
        drivers: Arc<dyn DriverSource>,
        signals: Arc<Signals>,
        notices: NoticeQueue,
        pace: Pace,
    ) -> Self {
        Self {
            poller: Poller::new(db, me, drivers, pace),
            signals,
            notices,
        }
    }

    /// The same, whose drivers get the rows of clusters from `objects`.
    #[must_use]
    pub fn with_objects(self, objects: ObjectsRpc) -> Self {
        Self {
            poller: self.poller.with_objects(objects),
            ..self
        }
    }

    /// Polls until `shutdown`; observations that run then are dropped, and their clusters given back.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(self.poller.pace.interval, shutdown.clone());
        let mut failures = FailureLog::of("the status sync");
        let signals = Arc::clone(&self.signals);
        let mut round = 0_u32;
        loop {
            // Registered before the round: an operation that begins to be observed during it starts another.
            let observing = signals.observing.notified();
            failures.record(self.round(&shutdown).await);
            if round.is_multiple_of(SWEEP_EVERY) {
                failures.record(self.poller.db.run(polls::remove_orphans).await);
            }
            round = round.wrapping_add(1);
            if !rounds.next_or(observing).await {
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
            if count < self.poller.pace.batch && !self.add_missing().await? {
                break;
            }
        }
        Ok(polled)
    }

    async fn claim(&self) -> Result<ClaimedBatch<Claimed>, DbError> {
        let (me, pace, drivers) = (
            self.poller.me.clone(),
            self.poller.pace,
            self.poller.drivers.loaded(),
        );
        let limit = i64::try_from(pace.batch).unwrap_or(i64::MAX);
        let sent = Instant::now();
        let claim = move |conn: &mut _| polls::claim(conn, &me, &drivers, pace.lease, limit);
        let claimed = self.poller.db.run(claim).await?;
        Ok(ClaimedBatch::new(claimed, sent, pace.lease, polls::renew))
    }

    /// Adds rows for clusters that were never polled, enough for several batches. `false`: there are none.
    async fn add_missing(&self) -> Result<bool, DbError> {
        let limit = u32::try_from(self.poller.pace.batch * BATCHES_ADDED_AT_ONCE).unwrap_or(u32::MAX);
        self.poller
            .db
            .run(move |conn| polls::add_missing(conn, limit))
            .await
    }

    /// The time until a polled cluster is due again: a little less than the interval, so that the next round claims it.
    fn pause(&self) -> Duration {
        self.poller.pace.interval.mul_f64(0.85)
    }
}
