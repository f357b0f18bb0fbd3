//! Keeps the status of clusters in progress true.
//!
//! ```text
//! claim a batch that is due ─▶ read it ─▶ group by driver ─▶ observe, bounded ─▶ write what is new, give back
//! ```
//!
//! Guarantees: N conductors share the work, each cluster is looked at by one of them at a time; a batch costs a
//! fixed number of queries plus one transaction per cluster that changed; a status is written only over the one
//! that was looked at, so a deletion accepted meanwhile stays; the operation that waits for a cluster ends in the
//! same transaction as the cluster's status. A cluster whose driver is not loaded here, cannot look, or says
//! nothing is left as it is, to be looked at later and later.
//!
//! Python conductors that poll the same clusters beside us only see what is true already, and write it again.
//!
//! Where Magnum differs: every conductor polls every cluster every ten seconds, unbounded, for ever.

mod batch;
mod record;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_db::{Database, DbError};
use tokio_util::sync::CancellationToken;

pub use super::polling::Pace;
use super::polling::{Claim, Poller};
use super::{Rounds, Trouble};
use crate::operations::Signals;
use crate::operations::notice::NoticeQueue;
use crate::store::polls::{self, Claimed};
use crate::workflows::{DriverRef, DriverSource};

/// Rounds between two sweeps of rows whose cluster is gone.
const SWEEP_EVERY: u32 = 100;

/// Batches for which rows are added in one statement.
const NEW_AT_ONCE: usize = 10;

/// The status sync of one conductor.
#[derive(Clone)]
pub struct StatusSync {
    poller: Poller,
    /// Tells when an operation begins to wait, and is told when one ends.
    signals: Arc<Signals>,
    /// Where it is told that clusters reached their end.
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
}

impl StatusSync {
    /// A sync at this pace; `notices` are told of clusters that reached their end.
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

    /// Looks until `shutdown`; observations that run then are dropped, and their clusters given back.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(self.poller.pace.interval, shutdown.clone());
        let mut trouble = Trouble::with("the status sync");
        let signals = Arc::clone(&self.signals);
        let mut round = 0_u32;
        loop {
            // Registered before the round: what begins to wait during it starts another.
            let observing = signals.observing.notified();
            trouble.note(self.round(&shutdown).await);
            if round.is_multiple_of(SWEEP_EVERY) {
                trouble.note(self.poller.db.run(polls::remove_orphans).await);
            }
            round = round.wrapping_add(1);
            if !rounds.next_or(observing).await {
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
            let claimed = self.claim().await?;
            let count = claimed.len();
            looked_at += count;
            if count > 0 {
                self.look(claimed, shutdown).await?;
            }
            if count < self.poller.pace.batch && !self.add_missing().await? {
                break;
            }
        }
        Ok(looked_at)
    }

    async fn claim(&self) -> Result<Vec<Claimed>, DbError> {
        let (me, pace, drivers) = (
            self.poller.me.clone(),
            self.poller.pace,
            self.poller.drivers.loaded(),
        );
        let limit = i64::try_from(pace.batch).unwrap_or(i64::MAX);
        self.poller
            .db
            .run(move |conn| polls::claim(conn, &me, &drivers, pace.lease, limit))
            .await
    }

    /// Finds clusters that nobody has looked at yet, enough for several batches. `false`: there are none.
    async fn add_missing(&self) -> Result<bool, DbError> {
        let limit = u32::try_from(self.poller.pace.batch * NEW_AT_ONCE).unwrap_or(u32::MAX);
        self.poller
            .db
            .run(move |conn| polls::add_missing(conn, limit))
            .await
    }

    /// When a cluster is due again after a look: a little before the next round, not a little after it.
    fn pause(&self) -> Duration {
        self.poller.pace.interval.mul_f64(0.85)
    }
}
