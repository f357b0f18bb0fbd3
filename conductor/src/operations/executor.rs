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
use rand::RngExt;
use rand::seq::SliceRandom;
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::breakers::Claimable;
use super::crash_point::{self, CrashPoint};
use super::journal::candidates::{self, Candidate, Look, Place};
use super::journal::{JournalError, OperationRow};
use super::lease::{self, Lease};
use super::run::{self, Stops};
use super::services::OperationServices;
use super::slots::{Room, Slots};
use super::suspects::{SUSPECT_AFTER, Suspects};
use super::turns::LEEWAY;
use crate::workflows::choose_driver::Whereabouts;

/// How many candidates beyond the free slots are looked at, for one free slot and at most: conductors that wake together then
/// pick different ones more often, and whose turn it is waits for few others.
const SPARE_CANDIDATES: (usize, usize) = (4, 32);

/// How long stopped operations may take to end their drivers and to give their leases back.
pub const GIVE_BACK_WITHIN: Duration = Duration::from_secs(30);

/// Runs operations until it is told to stop.
pub struct Executor {
    services: OperationServices,
    running: JoinSet<()>,
    slots: Slots<task::Id>,
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
    /// There is nothing to do up to this place in the queue, or in all of it, as of this moment of the database's clock.
    Nothing { at_ms: i64, up_to: Option<Place> },
}

impl Executor {
    /// An executor that has not begun.
    pub fn new(services: OperationServices) -> Self {
        let (poll, workers) = (services.timing.poll, services.timing.workers);
        Self {
            services,
            running: JoinSet::new(),
            slots: Slots::new(workers),
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
                () = signals.stops.notified() => self.services.keeper.renew_now(),
                () = tokio::time::sleep(pause) => {}
                Some(ended) = self.running.join_next_with_id() => self.free(&ended),
                () = shutdown.cancelled() => {}
            }
        }
        self.drain().await;
    }

    /// Claims until all slots are taken or nothing is left. Returns how long to wait for something new.
    async fn fill(&mut self) -> Duration {
        while let Some(ended) = self.running.try_join_next_with_id() {
            self.free(&ended);
        }
        let mut place = Place::START;
        loop {
            if let Some(alone) = self.suspects.is_alone_for(self.running.len(), Instant::now()) {
                return alone;
            }
            let room = self.slots.room(self.services.drivers.loaded().len());
            if room.free == 0 {
                // A slot that comes free wakes the loop.
                return self.services.timing.poll;
            }
            match self.claim_some(room, place).await {
                Ok(claims) => {
                    self.trouble.reset();
                    match claims {
                        Claims::Some => self.taken.reset(),
                        Claims::Taken => return self.taken.next_delay(),
                        Claims::Nothing {
                            up_to: Some(next), ..
                        } => place = next,
                        Claims::Nothing { at_ms, up_to: None } => {
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
    }

    fn free(&mut self, ended: &Result<(task::Id, ()), JoinError>) {
        let task = match ended {
            Ok((task, ())) => *task,
            Err(error) => error.id(),
        };
        self.slots.free(&task);
    }

    async fn claim_some(&mut self, mut room: Room, place: Place) -> Result<Claims, JournalError> {
        let asked_at = Instant::now();
        let claimable = self.claimable(asked_at);
        let watches = self.services.lease_watch.is_due(asked_at);
        let on_trial = claimable.on_trial.clone();
        let (least, most) = SPARE_CANDIDATES;
        let limit = i64::try_from(room.free + room.free.clamp(least, most)).unwrap_or(i64::MAX);
        let asked = room.clone();
        let look = move |conn: &mut AnyConnection| {
            let leases = watches.then(|| candidates::leases(conn)).transpose()?;
            let look = candidates::candidates(conn, &claimable, &asked, place, limit)?;
            Ok::<_, JournalError>((leases, look))
        };
        let (leases, look) = self.services.db.transaction(look).await?;
        if let Some(leases) = leases {
            self.services.lease_watch.saw(leases, Instant::now());
        }
        let Look {
            at_ms,
            mut due,
            queued,
            next,
        } = look;
        // Renewed since it was seen: a clock is ahead.
        due.retain(|candidate| {
            let lease = candidate.lease();
            lease.is_none_or(|lease| self.services.lease_watch.is_over(lease, asked_at))
        });
        if due.is_empty() && queued.is_empty() {
            return Ok(Claims::Nothing { at_ms, up_to: next });
        }
        let mut claims = Claims::Taken;
        let mut tried = Vec::new();
        let drivers = self.services.drivers.loaded().len();
        for candidate in in_order(due, queued) {
            if !room.fits(&candidate) || !self.has_driver_of(&candidate, at_ms) {
                continue;
            }
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
            if let Some((lease, row)) = self.claim(candidate.clone()).await? {
                claims = Claims::Some;
                self.suspects.claimed(lost_claims, Instant::now());
                if let Some(driver) = trial {
                    self.services.breakers.tried(&driver, Instant::now());
                    tried.push(driver);
                }
                crash_point::reach(&row.kind, "claim", CrashPoint::AfterCommit).await;
                let work = run::operation(self.services.clone(), self.stops.clone(), lease, row);
                self.slots.take(self.running.spawn(work).id(), candidate);
                room = self.slots.room(drivers);
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

    fn claimable(&self, now: Instant) -> Claimable {
        let loaded = self.services.drivers.loaded();
        Claimable {
            over: self.services.lease_watch.over(now),
            ..self.services.breakers.claimable(loaded, now)
        }
    }

    /// Whether the driver's version is here. One that nobody has is no reason to leave an operation that has yet to choose its
    /// driver. What is left is not looked at again for a while.
    fn has_driver_of(&self, candidate: &Candidate, now_ms: i64) -> bool {
        let driver = candidate.driver_version();
        let Some(driver) = driver.filter(|_| !candidate.needs_no_driver(now_ms)) else {
            return true;
        };
        self.services.drivers.whereabouts(&driver) == Whereabouts::Here
            || (self.services.lacks(&driver) == Whereabouts::Nowhere && candidate.chooses_driver())
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
        let now = Instant::now();
        let claimable = self.claimable(now);
        let watched = self.services.lease_watch.next_in(now).unwrap_or(poll);
        let due = move |conn: &mut AnyConnection| candidates::next_due_in_ms(conn, &claimable, after_ms);
        match self.services.db.transaction(due).await {
            Ok(due) => {
                let due = due.map_or(poll, |due| Duration::from_millis(due.unsigned_abs()));
                due.min(watched).clamp(Duration::from_millis(20), poll)
            }
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

/// What is due by turns with what is queued, so that neither waits for all of the other. Other conductors do the same at the same
/// time: with some chance in it, they seldom try to claim the same operation.
fn in_order(mut due: Vec<Candidate>, queued: Vec<Candidate>) -> impl Iterator<Item = Candidate> {
    let mut random = rand::rng();
    due.shuffle(&mut random);
    let mut queued: Vec<(i64, u32, Candidate)> = queued
        .into_iter()
        .map(|one| {
            let turn = one.turn().saturating_add(random.random_range(0..=LEEWAY));
            (turn, random.random(), one)
        })
        .collect();
    queued.sort_by_key(|(turn, chance, _)| (*turn, *chance));
    let due = due.into_iter().enumerate().map(|(place, one)| (2 * place, one));
    let queued = queued.into_iter().enumerate();
    let queued = queued.map(|(place, (_, _, one))| (2 * place + 1, one));
    let mut all: Vec<(usize, Candidate)> = due.chain(queued).collect();
    all.sort_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, one)| one)
}
