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
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::ConductorId;
use magnum_config::ConductorSection;
use magnum_db::Database;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::batch::Batch;
use super::{Rounds, Trouble};
use crate::operations::Signals;
use crate::operations::notice::NoticeQueue;
use crate::store::polls::{self, Claimed};
use crate::workflows::DriverSource;

/// Rounds between two sweeps of rows whose cluster is gone.
const SWEEP_EVERY: u32 = 100;

/// Batches for which rows are added in one statement.
const NEW_AT_ONCE: usize = 10;

/// How clusters are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time between two looks at a cluster.
    pub interval: Duration,
    /// Most clusters claimed at once.
    pub batch: usize,
    /// Most observations at once.
    pub parallelism: usize,
    /// How long a claim lasts without renewal.
    pub lease: Duration,
}

impl Pace {
    /// When a cluster is due again after a look: a little before the next round, not a little after it.
    fn pause(&self) -> Duration {
        self.interval.mul_f64(0.85)
    }
}

impl From<&ConductorSection> for Pace {
    fn from(options: &ConductorSection) -> Self {
        Self {
            interval: options.status_poll_interval,
            batch: options.status_poll_batch,
            parallelism: options.status_poll_parallelism,
            lease: options.operation_lease,
        }
    }
}

/// The status sync of one conductor.
#[derive(Clone)]
pub struct StatusSync {
    /// The database.
    pub db: Database,
    /// This process.
    pub me: ConductorId,
    /// The loaded drivers.
    pub drivers: Arc<dyn DriverSource>,
    /// Tells when an operation begins to wait, and is told when one ends.
    pub signals: Arc<Signals>,
    /// How often and how much.
    pub pace: Pace,
    /// Where it is told that clusters reached their end.
    pub notices: NoticeQueue,
    /// Limits observations of all batches together.
    pub slots: Arc<Semaphore>,
}

impl StatusSync {
    /// A sync at this pace.
    pub fn new(
        db: Database,
        me: ConductorId,
        drivers: Arc<dyn DriverSource>,
        signals: Arc<Signals>,
        pace: Pace,
    ) -> Self {
        let slots = Arc::new(Semaphore::new(pace.parallelism.max(1)));
        Self {
            db,
            me,
            drivers,
            signals,
            pace,
            notices: NoticeQueue::default(),
            slots,
        }
    }

    /// Looks until `shutdown`; observations that run then are dropped, and their clusters given back.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(self.pace.interval, shutdown.clone());
        let mut trouble = Trouble::with("the status sync");
        let signals = Arc::clone(&self.signals);
        let mut round = 0_u32;
        loop {
            // Registered before the round: what begins to wait during it starts another.
            let observing = signals.observing.notified();
            trouble.note(self.round(&shutdown).await);
            if round.is_multiple_of(SWEEP_EVERY) {
                trouble.note(self.db.run(polls::remove_orphans).await);
            }
            round = round.wrapping_add(1);
            if !rounds.next_or(observing).await {
                return;
            }
        }
    }

    /// Looks at everything that is due. Returns how many clusters that were.
    pub async fn round(&self, shutdown: &CancellationToken) -> Result<usize, magnum_db::DbError> {
        let mut looked_at = 0;
        while !shutdown.is_cancelled() {
            let claimed = self.claim().await?;
            let count = claimed.len();
            looked_at += count;
            if count > 0 {
                Batch::new(self, claimed).look(shutdown).await?;
            }
            if count < self.pace.batch && !self.add_missing().await? {
                break;
            }
        }
        Ok(looked_at)
    }

    async fn claim(&self) -> Result<Vec<Claimed>, magnum_db::DbError> {
        let (me, pace, drivers) = (self.me.clone(), self.pace, self.drivers.loaded());
        let limit = i64::try_from(pace.batch).unwrap_or(i64::MAX);
        self.db
            .transaction(move |conn| polls::claim(conn, &me, &drivers, pace.lease, limit))
            .await
    }

    /// Finds clusters that nobody has looked at yet, enough for several batches. `false`: there are none.
    async fn add_missing(&self) -> Result<bool, magnum_db::DbError> {
        let limit = u32::try_from(self.pace.batch * NEW_AT_ONCE).unwrap_or(u32::MAX);
        self.db.run(move |conn| polls::add_missing(conn, limit)).await
    }
}
