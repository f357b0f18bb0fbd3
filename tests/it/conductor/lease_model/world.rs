//! What the model is made of: the rows of two operations of one cluster, and three conductors with their clocks.

use magnum_conductor::operations::State;
use magnum_conductor::operations::state::Event;

pub const CONDUCTORS: usize = 3;
/// A change of a cluster, and the deletion of the cluster.
pub const OPERATIONS: usize = 2;
pub const CHANGE: usize = 0;
pub const DELETE: usize = 1;

/// The term of a lease, in ticks.
pub const TERM: u8 = 3;
/// How long before its end a conductor stops its driver.
pub const MARGIN: u8 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    pub rows: [Row; OPERATIONS],
    pub conductors: [Conductor; CONDUCTORS],
    /// Ticks for which conductors may still be paused, and conductors that may still die.
    pub pauses: u8,
    pub crashes: u8,
    /// Somebody wrote for an operation that was not theirs.
    pub was_written_by_a_stranger: bool,
    /// Somebody made a move that [`State::after`] does not have.
    pub was_forbidden: bool,
}

/// An operation in the journal; without a state it is not accepted yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Row {
    pub state: Option<State>,
    /// Nobody has given the lease back.
    pub is_held: bool,
    /// Ticks until it expires by a clock of the database that is right.
    pub left: u8,
    pub stop_requested: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conductor {
    /// By how much the clock of its database is ahead, in ticks.
    pub ahead: u8,
    /// It stands still, and so does its monotonic clock.
    pub is_paused: bool,
    pub request: Option<Request>,
    /// For how many ticks of its clock the row of each running operation was the same.
    pub watched: [Option<u8>; OPERATIONS],
    pub workers: [Option<Worker>; OPERATIONS],
}

/// A statement on its way to the database, or back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    pub what: What,
    /// Ticks of its conductor's clock since it was sent.
    pub age: u8,
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum What {
    Claim(usize),
    /// Of all leases that it has.
    Renew,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Answer {
    /// Somebody else was faster.
    Nothing,
    /// It has the lease, or had it when it was answered.
    Claimed { is_current: bool },
    /// For each operation whether it was still its own.
    Renewed([bool; OPERATIONS]),
}

/// What a conductor that has claimed an operation does about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Worker {
    /// Ticks of its clock until it stops.
    pub left: u8,
    pub is_driving: bool,
    /// The row has its epoch.
    pub is_current: bool,
}

impl World {
    /// How many drivers do something for the cluster at this moment.
    pub fn driving(&self) -> usize {
        let awake = self.conductors.iter().filter(|conductor| !conductor.is_paused);
        let workers = awake.flat_map(|conductor| conductor.workers.iter().flatten());
        workers.filter(|worker| worker.is_driving).count()
    }

    pub fn is_open(&self, operation: usize) -> bool {
        self.rows[operation].state.is_some_and(State::is_open)
    }

    pub fn is_over(&self) -> bool {
        self.rows[DELETE].state.is_some() && !self.is_open(CHANGE) && !self.is_open(DELETE)
    }

    /// Whether a queued operation is the next of its cluster.
    pub fn has_its_turn(&self, operation: usize) -> bool {
        let is_free = self
            .rows
            .iter()
            .all(|row| !row.state.is_some_and(State::holds_cluster));
        is_free && (operation == CHANGE || self.rows[CHANGE].state != Some(State::Queued))
    }

    /// Moves an operation on; what was known of its lease is worth nothing any more.
    pub fn moved(&mut self, operation: usize, event: Event) {
        let row = &mut self.rows[operation];
        let Some(Ok(next)) = row.state.map(|state| state.after(event)) else {
            self.was_forbidden = true;
            return;
        };
        row.state = Some(next);
        row.is_held = event == Event::Claimed;
        row.left = if row.is_held { TERM } else { 0 };
        self.changed_hands(operation);
    }

    /// Nobody owns the operation as before.
    pub fn changed_hands(&mut self, operation: usize) {
        for conductor in &mut self.conductors {
            if let Some(worker) = &mut conductor.workers[operation] {
                worker.is_current = false;
            }
            if let Some(request) = &mut conductor.request
                && request.what == What::Claim(operation)
                && let Some(Answer::Claimed { is_current }) = &mut request.answer
            {
                *is_current = false;
            }
        }
        self.is_not_as_seen(operation);
    }

    /// The row's epoch or expiry has changed.
    pub fn is_not_as_seen(&mut self, operation: usize) {
        for conductor in &mut self.conductors {
            conductor.watched[operation] = None;
        }
    }

    /// One state for all from which the same can happen, as far as anybody but its owner could tell. Only where each write
    /// compares the epoch: there whoever is not the owner any more has no more to do than to end.
    pub fn reduced(mut self) -> Self {
        for row in &mut self.rows {
            // How it ended changes nothing of what follows.
            if row.state.is_some_and(|state| !state.is_open()) {
                *row = Row {
                    state: Some(State::Succeeded),
                    ..Row::default()
                };
            }
        }
        for conductor in &mut self.conductors {
            for worker in &mut conductor.workers {
                // It ends with the first thing that it does.
                *worker = worker.filter(|one| one.is_current || one.is_driving);
            }
            let workers = conductor.workers;
            conductor.request = conductor
                .request
                .filter(|request| match (request.what, request.answer) {
                    (What::Claim(_), None | Some(Answer::Claimed { is_current: true })) => true,
                    (What::Renew, None) => workers.iter().flatten().any(|worker| worker.is_current),
                    (What::Renew, Some(Answer::Renewed(ours))) => workers
                        .iter()
                        .zip(ours)
                        .any(|(worker, is_ours)| worker.is_some() && is_ours),
                    _ => false,
                });
        }
        self
    }

    /// A tick passes for everything that does not stand still.
    pub fn tick(&mut self) {
        for row in &mut self.rows {
            row.left = row.left.saturating_sub(1);
        }
        for conductor in &mut self.conductors {
            if conductor.is_paused {
                self.pauses = self.pauses.saturating_sub(1);
                continue;
            }
            if let Some(request) = &mut conductor.request {
                request.age = (request.age + 1).min(TERM - MARGIN);
            }
            for ticks in conductor.watched.iter_mut().flatten() {
                *ticks = (*ticks + 1).min(TERM);
            }
            for worker in &mut conductor.workers {
                // The driver is stopped in time, also where the conductor itself hangs.
                *worker = worker.and_then(|worker| {
                    Worker {
                        left: worker.left.saturating_sub(1),
                        ..worker
                    }
                    .unless_over()
                });
            }
        }
    }
}

impl Worker {
    pub fn unless_over(self) -> Option<Self> {
        (self.left > 0).then_some(self)
    }
}
