//! A conductor's way to the database: when its accesses are carried out, how they end, and the death of its process.
//!
//! Crash points are accesses: a process dies before one is begun or when one was carried out, which is before and after every
//! intent, effect, result, commit and reply that the conductor writes.

use std::fmt;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use magnum_db::simulated::{Access, Fate, Seam};
use magnum_db::{AnyConnection, DbError};
use rand::RngExt as _;
use rand::rngs::StdRng;
use tokio::sync::Notify;

use super::database::{EPOCH_MS, Store};
use super::plan::{Ending, Plan, Trouble, Wrong};
use super::trace::Trace;

/// How long work waits for a row that is held: see `magnum_db::session`.
const LOCK_WAIT: Duration = Duration::from_secs(10);
/// The same of brief work.
const BRIEF_LOCK_WAIT: Duration = Duration::from_secs(1);
/// How long a program tries to reach a database that does not answer.
const AWAY: Duration = Duration::from_secs(5);

/// What all parts of a schedule share.
pub struct Stage {
    /// What is to happen.
    pub plan: Plan,
    /// The database.
    pub store: Arc<Store>,
    /// What has happened.
    pub trace: Trace,
    dice: Mutex<StdRng>,
}

impl Stage {
    /// At its begin.
    pub fn new(plan: Plan, store: Arc<Store>, trace: Trace, dice: StdRng) -> Self {
        Self {
            plan,
            store,
            trace,
            dice: Mutex::new(dice),
        }
    }

    /// The schedule's own randomness.
    pub fn roll<T>(&self, roll: impl FnOnce(&mut StdRng) -> T) -> T {
        roll(&mut self.dice.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The database's clock, in milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        EPOCH_MS + i64::try_from(self.trace.elapsed().as_millis()).unwrap_or_default()
    }

    /// Whether all troubles are over.
    pub fn is_quiet(&self) -> bool {
        self.trace.elapsed() >= self.plan.quiet
    }
}

/// The way of one process.
pub struct Line {
    stage: Arc<Stage>,
    /// Of whom, in the trace.
    pub name: String,
    member: usize,
    offset_ms: i64,
    doom: Option<Ending>,
    begun: AtomicU32,
    carried_out: AtomicU32,
    is_dead: AtomicBool,
    is_poisoned: AtomicBool,
    /// Notified when the process has to end at once.
    pub death: Notify,
}

impl Line {
    /// Of a process that ends as `doom` says.
    pub fn new(stage: Arc<Stage>, name: String, member: usize, doom: Option<Ending>) -> Self {
        let offset_ms = stage.plan.members[member].offset_ms;
        Self {
            stage,
            name,
            member,
            offset_ms,
            doom,
            begun: AtomicU32::new(0),
            carried_out: AtomicU32::new(0),
            is_dead: AtomicBool::new(false),
            is_poisoned: AtomicBool::new(false),
            death: Notify::new(),
        }
    }

    /// The process ends now: nothing of it reaches the database any more.
    pub fn die(&self) {
        if !self.is_dead.swap(true, Ordering::Relaxed) {
            self.stage.trace.note(&self.name, format_args!("dies"));
            self.death.notify_one();
        }
    }

    /// The process ends now, by what its driver does.
    pub fn die_of_driver(&self) {
        self.is_poisoned.store(true, Ordering::Relaxed);
        self.die();
    }

    /// Whether its driver has ended it.
    pub fn is_poisoned(&self) -> bool {
        self.is_poisoned.load(Ordering::Relaxed)
    }

    /// Something happens to the process.
    pub fn note(&self, what: fmt::Arguments<'_>) {
        self.stage.trace.note(&self.name, what);
    }

    /// Whether it has ended.
    pub fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// How often the database was asked.
    pub fn accesses(&self) -> u32 {
        self.begun.load(Ordering::Relaxed)
    }

    fn is_doomed(&self, is_now: impl FnOnce(Ending) -> bool) -> bool {
        self.doom.is_some_and(is_now) && !self.stage.is_quiet()
    }

    /// A dead process waits for ever.
    async fn alive(&self) {
        if self.is_dead() {
            pending::<()>().await;
        }
    }

    /// What is wrong at this moment for this access.
    fn wrong(&self) -> Option<Wrong> {
        let mut troubles = self.troubles().filter(|trouble| !trouble.what.is_of_a_host());
        let hit = troubles.find(|trouble| self.stage.roll(|dice| dice.random_range(0..100) < trouble.share));
        hit.map(|trouble| trouble.what)
    }

    /// Whether no driver can be started on this host at this moment.
    pub fn has_no_processes(&self) -> bool {
        self.troubles()
            .any(|trouble| matches!(trouble.what, Wrong::NoProcesses))
    }

    /// What is wrong here at this moment.
    fn troubles(&self) -> impl Iterator<Item = &Trouble> {
        self.stage
            .plan
            .troubles_of(self.member, self.stage.trace.elapsed())
    }

    /// Waits as long as the line stands still, in the direction for which `is_still` says so.
    async fn stands_still(&self, is_still: impl Fn(Wrong) -> bool) {
        loop {
            let still = self.troubles().find(|trouble| is_still(trouble.what));
            let Some(until) = still.map(|trouble| trouble.until) else {
                return;
            };
            tokio::time::sleep(until.saturating_sub(self.stage.trace.elapsed())).await;
        }
    }

    /// The way itself: mostly none at all, sometimes some milliseconds, seldom more.
    async fn travel(&self) {
        let wait = self.stage.roll(|dice| match dice.random_range(0..40) {
            0..4 => dice.random_range(1..8),
            4 => dice.random_range(10..300),
            _ => 0,
        });
        match wait {
            0 => tokio::task::yield_now().await,
            wait => tokio::time::sleep(Duration::from_millis(wait)).await,
        }
    }

    async fn fate(&self, access: Access) -> Fate {
        let is_done = |dice: &mut StdRng| dice.random_range(0..2) == 0;
        let or_lost = |error| match self.stage.roll(is_done) {
            true => Fate::Lost(error),
            false => Fate::Refused(error),
        };
        match self.wrong() {
            None | Some(Wrong::Stalled | Wrong::Silent | Wrong::NoProcesses) => Fate::Done,
            Some(Wrong::Slow(by)) => {
                tokio::time::sleep(by).await;
                Fate::Done
            }
            Some(Wrong::Away) => {
                let wait = self.stage.roll(|dice| dice.random_range(1..=5));
                tokio::time::sleep(AWAY * wait / 5).await;
                or_lost(DbError::Unavailable("the simulated database is away".to_owned()))
            }
            Some(Wrong::Unknown) => or_lost(DbError::Unknown("a simulated proxy has lost it".to_owned())),
            Some(Wrong::Conflict) => Fate::Refused(DbError::Conflict("a simulated deadlock".to_owned())),
            Some(Wrong::Locked) => {
                let wait = match access {
                    Access::BriefTransaction => BRIEF_LOCK_WAIT,
                    Access::Transaction | Access::Statements => LOCK_WAIT,
                };
                tokio::time::sleep(wait).await;
                Fate::Refused(DbError::Locked("a simulated lock".to_owned()))
            }
        }
    }
}

impl Seam for Line {
    fn begin(&self, access: Access) -> Pin<Box<dyn Future<Output = Fate> + Send + '_>> {
        Box::pin(async move {
            self.alive().await;
            let number = self.begun.fetch_add(1, Ordering::Relaxed) + 1;
            if self.is_doomed(|end| matches!(end, Ending::BeforeAccess(doomed) if doomed == number)) {
                self.die();
            }
            self.alive().await;
            self.travel().await;
            self.stands_still(|what| matches!(what, Wrong::Stalled)).await;
            let fate = self.fate(access).await;
            self.alive().await;
            let what = match &fate {
                Fate::Done => "done",
                Fate::Refused(_) => "refused",
                Fate::Lost(_) => "lost",
            };
            self.stage
                .trace
                .note(&self.name, format_args!("access {number} {access:?} {what}"));
            fate
        })
    }

    fn carry_out(&self, work: &mut dyn FnMut(&mut AnyConnection)) {
        self.stage.store.with(self.stage.now_ms() + self.offset_ms, work);
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let number = self.carried_out.fetch_add(1, Ordering::Relaxed) + 1;
            if self.is_doomed(|end| matches!(end, Ending::AfterAccess(doomed) if doomed == number)) {
                self.die();
            }
            self.alive().await;
            self.travel().await;
            self.stands_still(|what| matches!(what, Wrong::Stalled | Wrong::Silent))
                .await;
            self.alive().await;
        })
    }
}

/// The way of whoever only looks: nothing ever goes wrong there.
pub struct Onlooker(pub Arc<Stage>);

impl Seam for Onlooker {
    fn begin(&self, _: Access) -> Pin<Box<dyn Future<Output = Fate> + Send + '_>> {
        Box::pin(async { Fate::Done })
    }

    fn carry_out(&self, work: &mut dyn FnMut(&mut AnyConnection)) {
        self.0.store.with(self.0.now_ms(), work);
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async {})
    }
}
