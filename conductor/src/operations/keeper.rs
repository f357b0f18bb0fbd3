//! Keeps the leases of this conductor, and says in time when one cannot be kept.
//!
//! All of them are renewed together, in one transaction on a connection of its own: what it costs does not grow with their
//! number, and nothing else of this process is waited for. While nothing runs, nothing is asked.
//!
//! The moment until which nobody else can own an operation is counted from before the claim or renewal was *sent*, on the
//! monotonic clock; a little before it the lease's [`KeptLease::over`] is cancelled, whatever the reason: database away,
//! renewal slow, lease taken. The worker then stops its driver and writes nothing. [`KeptLease::was_slow`] tells whether the
//! operation was still ours as far as we knew.
//!
//! A renewal also brings whether a delete, or an operator, wants the operation to stop ([`KeptLease::stop_asked`]). Its lease is
//! kept until the worker has stopped.
//!
//! A renewal is due every third of the term, and at the latest after five seconds. That bounds for how long a machine that was
//! paused, and whose clock stood still meanwhile, goes on beside whoever took over: until its next renewal is answered.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use magnum_common::ids::ConductorId;
use magnum_db::Database;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::journal::JournalError;
use super::lease::{self, Lease, Renewals};

/// The longest time between two renewals.
const RENEW_EVERY: Duration = Duration::from_secs(5);

/// How long before the end of the lease work stops: time to stop a driver's processes.
fn margin(term: Duration) -> Duration {
    term / 6
}

/// How often a lease of this term is renewed.
fn period(term: Duration) -> Duration {
    (term / 3).min(RENEW_EVERY)
}

/// Renews the leases of one conductor. Cheap to clone.
#[derive(Clone)]
pub struct LeaseKeeper {
    shared: Arc<Shared>,
}

struct Shared {
    db: Database,
    me: ConductorId,
    term: Duration,
    kept: Mutex<Kept>,
    /// There is a lease more, or one less.
    changed: Notify,
}

#[derive(Default)]
struct Kept {
    leases: BTreeMap<u64, Entry>,
    last: u64,
    /// Whether a task renews.
    is_renewed: bool,
}

struct Entry {
    lease: Arc<Lease>,
    over: CancellationToken,
    was_slow: CancellationToken,
    stop_asked: CancellationToken,
    span: Span,
    due: Instant,
    stop_at: Instant,
}

/// A lease that is renewed until this is dropped.
#[derive(Debug)]
pub struct KeptLease {
    shared: Arc<Shared>,
    key: u64,
    over: CancellationToken,
    was_slow: CancellationToken,
    stop_asked: CancellationToken,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}

impl LeaseKeeper {
    /// For leases of `me` with this `term`. Opens nothing yet.
    pub fn new(db: &Database, me: ConductorId, term: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                db: db.apart(1),
                me,
                term,
                kept: Mutex::default(),
                changed: Notify::new(),
            }),
        }
    }

    /// The conductor whose leases these are.
    pub fn me(&self) -> &ConductorId {
        &self.shared.me
    }

    /// The term of each of them.
    pub fn term(&self) -> Duration {
        self.shared.term
    }

    /// Renews `lease` from now on. Inside of a runtime.
    pub fn keep(&self, lease: Arc<Lease>) -> KeptLease {
        let (over, was_slow) = (CancellationToken::new(), CancellationToken::new());
        let stop_asked = CancellationToken::new();
        let term = self.shared.term;
        let sent = lease.safe_until() - term;
        let mut kept = self.shared.lock();
        kept.last += 1;
        let key = kept.last;
        let entry = Entry {
            // Both from before the claim was sent, as every later one from before the renewal before it: a slow database
            // takes its time out of the term each time.
            due: sent + period(term),
            stop_at: sent + term - margin(term),
            lease,
            over: over.clone(),
            was_slow: was_slow.clone(),
            stop_asked: stop_asked.clone(),
            span: Span::current(),
        };
        kept.leases.insert(key, entry);
        if kept.is_renewed {
            self.shared.changed.notify_one();
        } else {
            kept.is_renewed = true;
            tokio::spawn(renew(Arc::clone(&self.shared)));
        }
        drop(kept);
        KeptLease {
            shared: Arc::clone(&self.shared),
            key,
            over,
            was_slow,
            stop_asked,
        }
    }

    /// Makes the next renewal due at once: it may bring a wish to stop.
    pub fn renew_now(&self) {
        let now = Instant::now();
        for entry in self.shared.lock().leases.values_mut() {
            entry.due = entry.due.min(now);
        }
        self.shared.changed.notify_one();
    }
}

impl KeptLease {
    /// Cancelled when the lease must not be relied on any more.
    pub const fn over(&self) -> &CancellationToken {
        &self.over
    }

    /// Cancelled when a delete, or an operator, wants the operation to stop. The lease holds on.
    pub const fn stop_asked(&self) -> &CancellationToken {
        &self.stop_asked
    }

    /// Whether it is over by now: told, or not told yet, as right after this process stood still.
    pub fn is_over(&self) -> bool {
        self.shared.give_up(Instant::now());
        self.over.is_cancelled()
    }

    /// Whether it is over because it could not be renewed in time, and not because another conductor has it.
    pub fn was_slow(&self) -> bool {
        self.was_slow.is_cancelled()
    }
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        self.shared.lock().leases.remove(&self.key);
        self.shared.changed.notify_one();
    }
}

/// Renews until there is nothing left to renew.
async fn renew(shared: Arc<Shared>) {
    let mut round = JoinSet::new();
    round.spawn(open(Arc::clone(&shared)));
    loop {
        let changed = shared.changed.notified();
        shared.give_up(Instant::now());
        let (due, stop_at) = {
            let mut kept = shared.lock();
            let Some(next) = next(&kept) else {
                kept.is_renewed = false;
                return;
            };
            next
        };
        let idle = round.is_empty();
        tokio::select! {
            () = changed => {}
            () = sleep_until(stop_at) => {}
            () = sleep_until(due), if idle => {
                round.spawn(renew_all(Arc::clone(&shared)));
            }
            Some(_) = round.join_next(), if !idle => {}
        }
    }
}

/// Opens the connection, which may have been idle for long, before the first renewal needs it.
async fn open(shared: Arc<Shared>) {
    let nothing = shared.db.brief_transaction::<_, JournalError, _>(|_| Ok(()));
    if let Err(error) = nothing.await {
        tracing::debug!(%error, "no connection to renew leases on; trying again");
    }
}

/// When the next renewal is due, and when the next lease is given up.
fn next(kept: &Kept) -> Option<(Instant, Instant)> {
    let due = kept.leases.values().map(|entry| entry.due).min()?;
    let stop_at = kept.leases.values().map(|entry| entry.stop_at).min()?;
    Some((due, stop_at))
}

async fn renew_all(shared: Arc<Shared>) {
    let leases: Vec<_> = {
        let kept = shared.lock();
        kept.leases
            .iter()
            .map(|(key, entry)| (*key, entry.lease.row(), entry.lease.epoch()))
            .collect()
    };
    let rows: Vec<_> = leases.iter().map(|(_, row, epoch)| (*row, *epoch)).collect();
    let (me, term) = (shared.me.clone(), shared.term);
    let sent = Instant::now();
    let renewed = shared
        .db
        .brief_transaction::<_, JournalError, _>(move |conn| lease::renew(conn, &me, &rows, term))
        .await;
    let renewals = renewed.unwrap_or_else(|error| {
        tracing::debug!(%error, "renewal of leases failed; trying again");
        Renewals::default()
    });
    let mut kept = shared.lock();
    for (key, row, epoch) in leases {
        // One that is not there any more ended meanwhile.
        let Some(entry) = kept.leases.get_mut(&key) else {
            continue;
        };
        if renewals.renewed.contains(&(row, epoch)) {
            entry.due = sent + period(term);
            entry.stop_at = sent + term - margin(term);
            if renewals.stopping.contains(&(row, epoch)) {
                entry.stop_asked.cancel();
            }
        } else if renewals.lost.contains(&(row, epoch)) {
            // Taken over, or ended: both mean that its worker has nothing more to write.
            entry.over.cancel();
            kept.leases.remove(&key);
        } else {
            entry.due = Instant::now() + period(term) / 4;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Each entry is put in, changed and taken out as a whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what was not renewed in time.
    fn give_up(&self, now: Instant) {
        self.lock().leases.retain(|_, entry| {
            if now < entry.stop_at {
                return true;
            }
            entry.span.in_scope(|| {
                tracing::warn!(
                    "the lease could not be renewed in time; stopping before another conductor can take over"
                );
            });
            entry.was_slow.cancel();
            entry.over.cancel();
            false
        });
    }
}
