//! Claims operations and runs them, a bounded number at once.
//!
//! The loop registers for the wake-up before it looks for work, and looks anyway after a while: a lost wake-up,
//! an operation accepted by a conductor that then died, and a lease that expired are all found by the same
//! query. There is no recovery mode; starting is claiming.
//!
//! Shutdown: claiming stops at once; running steps get [`super::OperationTiming::shutdown`] to reach a step boundary, where
//! they give their lease back; then the rest is stopped, and gives its lease back too.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use magnum_common::retry::{Delays, RetryPolicy};
use magnum_db::AnyConnection;
use rand::seq::SliceRandom;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::breakers::Claimable;
use super::crash_point::{self, CrashPoint};
use super::journal::{JournalError, OperationRow};
use super::lease::{self, Candidate, Lease, Look};
use super::run::{self, Stops};
use super::services::OperationServices;
use super::suspects::{SUSPECT_AFTER, Suspects};

/// How many candidates beyond the free slots are looked at: conductors that wake together then pick different
/// ones more often.
const SPARE_CANDIDATES: usize = 32;

/// How long stopped operations may take to end their drivers and to give their leases back.
pub const GIVE_BACK_WITHIN: Duration = Duration::from_secs(30);

/// Runs operations until it is told to stop.
pub struct Executor {
    services: OperationServices,
    running: JoinSet<()>,
    stops: Stops,
    trouble: Delays,
    /// Between looks whose candidates others have taken.
    taken: Delays,
    suspects: Suspects,
}

/// What came of one look for operations.
enum Claims {
    /// So many run.
    Some,
    /// There were candidates, and others were faster.
    Taken,
    /// There is nothing to do, as of this moment of the database's clock.
    Nothing { at_ms: i64 },
}

impl Executor {
    /// An executor that has not begun.
    pub fn new(services: OperationServices) -> Self {
        let poll = services.timing.poll;
        Self {
            services,
            running: JoinSet::new(),
            stops: Stops::default(),
            trouble: RetryPolicy {
                initial: Duration::from_millis(200),
                max_interval: Duration::from_secs(10),
                multiplier: 2.0,
                jitter: 0.25,
            }
            .delays(),
            taken: RetryPolicy {
                initial: Duration::from_millis(20),
                max_interval: poll,
                multiplier: 2.0,
                jitter: 0.25,
            }
            .delays(),
            suspects: Suspects::default(),
        }
    }

    /// Claims and runs until `shutdown`, then drains.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let signals = Arc::clone(&self.services.signals);
        while !shutdown.is_cancelled() {
            let woken = signals.work.notified();
            let pause = self.fill().await;
            signals.running.store(self.running.len(), Ordering::Relaxed);
            tokio::select! {
                () = woken => {}
                () = tokio::time::sleep(pause) => {}
                Some(_ended) = self.running.join_next() => {}
                () = shutdown.cancelled() => {}
            }
        }
        self.drain().await;
    }

    /// Claims until all slots are taken or nothing is left. Returns how long to wait for something new.
    async fn fill(&mut self) -> Duration {
        while self.running.try_join_next().is_some() {}
        while self.running.len() < self.services.timing.workers {
            if let Some(alone) = self.suspects.is_alone_for(self.running.len(), Instant::now()) {
                return alone;
            }
            match self.claim_some().await {
                Ok(claims) => {
                    self.trouble.reset();
                    match claims {
                        Claims::Some => self.taken.reset(),
                        Claims::Taken => return self.taken.next_delay(),
                        Claims::Nothing { at_ms } => {
                            self.taken.reset();
                            return self.until_due(at_ms).await;
                        }
                    }
                }
                Err(error) => {
                    let pause = self.trouble.next_delay();
                    tracing::warn!(%error, ?pause, "cannot look for operations; trying again");
                    return pause;
                }
            }
        }
        // Full: a slot that comes free wakes the loop.
        self.services.timing.poll
    }

    async fn claim_some(&mut self) -> Result<Claims, JournalError> {
        let free = self.services.timing.workers.saturating_sub(self.running.len());
        let claimable = self.claimable();
        let on_trial = claimable.on_trial.clone();
        let limit = i64::try_from(free + SPARE_CANDIDATES).unwrap_or(i64::MAX);
        let Look {
            at_ms,
            mut candidates,
        } = self
            .services
            .db
            .transaction(move |conn| lease::candidates(conn, &claimable, limit))
            .await?;
        if candidates.is_empty() {
            return Ok(Claims::Nothing { at_ms });
        }
        if candidates.len() > free {
            candidates.shuffle(&mut rand::rng());
        }
        let mut claims = Claims::Taken;
        let mut tried = Vec::new();
        for candidate in candidates.into_iter().take(free) {
            let lost_claims = candidate.lost_claims();
            if !self
                .suspects
                .may_claim(lost_claims, self.running.len(), Instant::now())
            {
                continue;
            }
            let trial = candidate
                .driver()
                .filter(|driver| on_trial.contains(driver))
                .cloned();
            if trial.as_ref().is_some_and(|driver| tried.contains(driver)) {
                continue;
            }
            if let Some((lease, row)) = self.claim(candidate).await? {
                claims = Claims::Some;
                self.suspects.claimed(lost_claims, Instant::now());
                if let Some(driver) = trial {
                    self.services.breakers.tried(&driver, Instant::now());
                    tried.push(driver);
                }
                crash_point::reach(&row.kind, "claim", CrashPoint::AfterCommit).await;
                self.running.spawn(run::operation(
                    self.services.clone(),
                    self.stops.clone(),
                    lease,
                    row,
                ));
                if lost_claims >= SUSPECT_AFTER {
                    tracing::warn!(
                        lost_claims,
                        "conductors ended while they worked on an operation; it runs alone for a while"
                    );
                    break;
                }
            }
        }
        Ok(claims)
    }

    fn claimable(&self) -> Claimable {
        let loaded = self.services.drivers.loaded();
        self.services.breakers.claimable(loaded, Instant::now())
    }

    async fn claim(&self, candidate: Candidate) -> Result<Option<(Lease, OperationRow)>, JournalError> {
        let (me, term) = (self.services.me.clone(), self.services.timing.lease);
        let sent = Instant::now();
        let claimed = self
            .services
            .db
            .brief_transaction(move |conn| lease::claim(conn, &candidate, &me, term, sent))
            .await;
        match claimed {
            Err(error) if lease::is_collision(&error) => Ok(None),
            // What stands beside the row, such as an index, is held as well.
            Err(JournalError::Db(error)) if error.is_locked() => Ok(None),
            other => other,
        }
    }

    async fn until_due(&self, after_ms: i64) -> Duration {
        let poll = self.services.timing.poll;
        let claimable = self.claimable();
        let due = move |conn: &mut AnyConnection| lease::next_due_in_ms(conn, &claimable, after_ms);
        match self.services.db.transaction(due).await {
            Ok(Some(due)) => Duration::from_millis(due.unsigned_abs()).clamp(Duration::from_millis(20), poll),
            Ok(None) => poll,
            Err(error) => {
                tracing::debug!(%error, "cannot read when the next operation is due");
                poll
            }
        }
    }

    async fn drain(mut self) {
        if self.running.is_empty() {
            return;
        }
        tracing::info!(
            running = self.running.len(),
            "waiting for running operations to reach a step boundary"
        );
        self.stops.at_step_boundary.cancel();
        let all = async { while self.running.join_next().await.is_some() {} };
        if timeout(self.services.timing.shutdown, all).await.is_ok() {
            return;
        }
        tracing::warn!(
            running = self.running.len(),
            "stopping operations that did not reach a step boundary in time; another conductor goes on with them"
        );
        self.stops.now.cancel();
        // Stopping a driver and giving the lease back takes little; what does not end is left to lease expiry.
        let all = async { while self.running.join_next().await.is_some() {} };
        if timeout(GIVE_BACK_WITHIN, all).await.is_err() {
            self.running.abort_all();
        }
    }
}
