//! What can happen, and what must hold.

use magnum_conductor::operations::State;
use magnum_conductor::operations::state::Event;
use stateright::{Model, Property};

use super::world::{
    Answer, CHANGE, CONDUCTORS, Conductor, DELETE, MARGIN, OPERATIONS, Request, Row, TERM, What, Worker,
    World,
};

/// When a lease that nobody has given back may be taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takeover {
    /// When it was the same for a term of the conductor's own clock; whatever the clock of the database says.
    Watched,
    /// When it has expired by the clock of the conductor's database.
    DatabaseClock,
    /// Never.
    Never,
}

/// The rules, and the accidents that may happen.
#[derive(Debug, Clone)]
pub struct LeaseModel {
    pub takeover: Takeover,
    /// By how many ticks the clock of each conductor's database is ahead.
    pub ahead: [u8; CONDUCTORS],
    /// Most ticks in which conductors stand still, clock included.
    pub pauses: u8,
    pub crashes: u8,
    /// The deadlines of both operations may pass, at any time.
    pub may_be_overdue: bool,
    /// Each write of a worker compares the epoch.
    pub is_fenced: bool,
    /// A conductor counts its lease from before a statement was sent, and not from its answer.
    pub counts_from_sending: bool,
}

impl LeaseModel {
    /// The rules as they are, with one death and pauses that the margin covers.
    pub fn as_built() -> Self {
        Self {
            takeover: Takeover::Watched,
            ahead: [0; CONDUCTORS],
            pauses: MARGIN,
            crashes: 1,
            may_be_overdue: true,
            is_fenced: true,
            counts_from_sending: true,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Tick,
    AcceptDelete,
    /// The status sync sees the cloud's work end.
    Observe(usize, Event),
    /// The database carries a conductor's statement out.
    Commit(usize),
    By(usize, Step),
}

/// What a conductor does that does not stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Look,
    Ask(What),
    /// Its statement never arrives, or the answer does not.
    Lose,
    Receive,
    Begin(usize),
    Return(usize, Event),
    Release(usize),
    Sweep(usize),
    Pause,
    /// The one thing that one does which stands still.
    Resume,
    Die,
}

impl Model for LeaseModel {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut rows = [Row::default(); OPERATIONS];
        rows[CHANGE].state = Some(State::Queued);
        vec![World {
            rows,
            conductors: self.ahead.map(|ahead| Conductor {
                ahead,
                ..Conductor::default()
            }),
            pauses: self.pauses,
            crashes: self.crashes,
            was_written_by_a_stranger: false,
            was_forbidden: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend([Action::Tick, Action::AcceptDelete]);
        for operation in 0..OPERATIONS {
            actions.extend([Event::Succeeded, Event::Failed].map(|event| Action::Observe(operation, event)));
        }
        for conductor in 0..CONDUCTORS {
            actions.push(Action::Commit(conductor));
            let mut by = |step| actions.push(Action::By(conductor, step));
            if world.conductors[conductor].is_paused {
                by(Step::Resume);
                continue;
            }
            for step in [
                Step::Look,
                Step::Ask(What::Renew),
                Step::Lose,
                Step::Receive,
                Step::Pause,
                Step::Die,
            ] {
                by(step);
            }
            for operation in 0..OPERATIONS {
                by(Step::Ask(What::Claim(operation)));
                by(Step::Begin(operation));
                for event in [
                    Event::Succeeded,
                    Event::Failed,
                    Event::FailedTransiently,
                    Event::DriverWorks,
                ] {
                    by(Step::Return(operation, event));
                }
                by(Step::Release(operation));
                by(Step::Sweep(operation));
            }
        }
    }

    fn next_state(&self, before: &World, action: Action) -> Option<World> {
        let mut world = before.clone();
        match action {
            Action::Tick => {
                let paused = world.conductors.iter().filter(|one| one.is_paused).count();
                (paused <= usize::from(world.pauses)).then_some(())?;
                world.tick();
            }
            Action::AcceptDelete => accept_delete(&mut world)?,
            Action::Observe(operation, event) => {
                (world.rows[operation].state? == State::Observing).then_some(())?;
                world.moved(operation, event);
            }
            Action::Commit(conductor) => self.commit(&mut world, conductor)?,
            Action::By(conductor, step) => self.step(&mut world, conductor, step)?,
        }
        if self.takeover != Takeover::DatabaseClock {
            // Nobody asks that clock.
            world.rows.iter_mut().for_each(|row| row.left = 0);
        }
        if self.is_fenced {
            world = world.reduced();
        }
        // It does not matter which of them is which.
        world.conductors.sort_unstable();
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(ONE_DRIVER, |_, world: &World| world.driving() <= 1),
            Property::always(FENCED, |_, world: &World| !world.was_written_by_a_stranger),
            Property::always(ALLOWED, |_, world: &World| !world.was_forbidden),
            Property::always(NOT_STUCK, |model: &Self, world: &World| {
                world.is_over() || !model.next_states(world).is_empty()
            }),
            Property::sometimes(TAKEN_OVER, |_, world: &World| {
                let is_driven = world.driving() == 1;
                is_driven && world.crashes == 0 && world.rows[CHANGE].state == Some(State::Running)
            }),
            Property::sometimes(DELETED, |_, world: &World| {
                world.rows[DELETE].state == Some(State::Succeeded)
            }),
        ]
    }
}

pub const ONE_DRIVER: &str = "one driver at a time works on the cluster";
pub const FENCED: &str = "nobody writes for an operation that somebody else has";
pub const ALLOWED: &str = "every move is one of the state machine";
pub const NOT_STUCK: &str = "where nothing can happen any more, every operation has ended";
pub const TAKEN_OVER: &str = "a driver works after a conductor has died";
pub const DELETED: &str = "the cluster is deleted";

impl LeaseModel {
    /// Whether the lease of a running operation may be taken by this conductor.
    fn is_over(&self, world: &World, conductor: usize, operation: usize) -> bool {
        let (row, conductor) = (&world.rows[operation], &world.conductors[conductor]);
        if !row.is_held {
            return true;
        }
        match self.takeover {
            Takeover::Watched => conductor.watched[operation].is_some_and(|ticks| ticks >= TERM),
            Takeover::DatabaseClock => row.left <= conductor.ahead,
            Takeover::Never => false,
        }
    }

    fn is_claimable(&self, world: &World, conductor: usize, operation: usize) -> bool {
        match world.rows[operation].state {
            Some(State::Queued) => world.has_its_turn(operation),
            Some(State::Retrying) => true,
            Some(State::Running) => self.is_over(world, conductor, operation),
            _ => false,
        }
    }

    fn commit(&self, world: &mut World, conductor: usize) -> Option<()> {
        let request = world.conductors[conductor].request?;
        if request.answer.is_some() {
            return None;
        }
        let answer = match request.what {
            What::Claim(operation) => {
                if self.is_claimable(world, conductor, operation) {
                    world.moved(operation, Event::Claimed);
                    Answer::Claimed { is_current: true }
                } else {
                    Answer::Nothing
                }
            }
            What::Renew => {
                let ours = world.conductors[conductor]
                    .workers
                    .map(|worker| worker.is_some_and(|worker| worker.is_current));
                for (operation, _) in ours.iter().enumerate().filter(|(_, is_ours)| **is_ours) {
                    world.rows[operation].left = TERM;
                    world.is_not_as_seen(operation);
                }
                Answer::Renewed(ours)
            }
        };
        world.conductors[conductor].request = Some(Request {
            answer: Some(answer),
            ..request
        });
        Some(())
    }

    fn step(&self, world: &mut World, number: usize, step: Step) -> Option<()> {
        let conductor = &mut world.conductors[number];
        match step {
            Step::Look => {
                (self.takeover == Takeover::Watched).then_some(())?;
                for (row, watched) in world.rows.iter().zip(&mut conductor.watched) {
                    if row.state == Some(State::Running) && row.is_held {
                        watched.get_or_insert(0);
                    }
                }
            }
            Step::Ask(what) => {
                let is_sensible = match what {
                    What::Renew => conductor.workers.iter().any(Option::is_some),
                    What::Claim(operation) => {
                        conductor.workers[operation].is_none() && self.is_claimable(world, number, operation)
                    }
                };
                let conductor = &mut world.conductors[number];
                (is_sensible && conductor.request.is_none()).then_some(())?;
                conductor.request = Some(Request {
                    what,
                    age: 0,
                    answer: None,
                });
            }
            Step::Lose => conductor.request = None,
            Step::Receive => self.receive(conductor)?,
            Step::Begin(operation) => {
                let worker = conductor.workers[operation]
                    .as_mut()
                    .filter(|one| !one.is_driving)?;
                worker.is_driving = true;
                if self.is_fenced && !worker.is_current {
                    conductor.workers[operation] = None;
                } else if world.rows[operation].stop_requested {
                    self.write(world, number, operation, Event::Cancelled);
                }
            }
            Step::Return(operation, event) => {
                conductor.workers[operation].filter(|worker| worker.is_driving)?;
                let is_to_stop = world.rows[operation].stop_requested;
                let event = if is_to_stop { Event::Cancelled } else { event };
                self.write(world, number, operation, event);
            }
            Step::Release(operation) => {
                let worker = conductor.workers[operation].take()?;
                if worker.is_current {
                    world.rows[operation].is_held = false;
                    world.rows[operation].left = 0;
                    world.changed_hands(operation);
                }
            }
            Step::Sweep(operation) => {
                self.may_be_overdue.then_some(())?;
                match world.rows[operation].state? {
                    State::Queued | State::Retrying | State::Observing => {}
                    State::Running if self.is_over(world, number, operation) => {}
                    _ => return None,
                }
                world.moved(operation, Event::Failed);
            }
            Step::Pause => {
                (world.pauses > 0).then_some(())?;
                conductor.is_paused = true;
            }
            Step::Resume => conductor.is_paused = false,
            Step::Die => {
                world.crashes = world.crashes.checked_sub(1)?;
                // Whoever starts in its place knows nothing.
                *conductor = Conductor {
                    ahead: conductor.ahead,
                    ..Conductor::default()
                };
            }
        }
        Some(())
    }

    fn receive(&self, conductor: &mut Conductor) -> Option<()> {
        let request = conductor.request?;
        let answer = request.answer?;
        conductor.request = None;
        let age = if self.counts_from_sending { request.age } else { 0 };
        let left = (TERM - MARGIN).saturating_sub(age);
        match (request.what, answer) {
            (What::Claim(operation), Answer::Claimed { is_current }) => {
                let worker = Worker {
                    left,
                    is_driving: false,
                    is_current,
                };
                conductor.workers[operation] = worker.unless_over();
            }
            (What::Renew, Answer::Renewed(ours)) => {
                for (worker, is_ours) in conductor.workers.iter_mut().zip(ours) {
                    let renewed = worker.map(|worker| Worker { left, ..worker });
                    *worker = renewed.filter(|_| is_ours).and_then(Worker::unless_over);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// A worker ends with a write, if the operation is still its own.
    fn write(&self, world: &mut World, conductor: usize, operation: usize, event: Event) {
        let Some(worker) = world.conductors[conductor].workers[operation].take() else {
            return;
        };
        if worker.is_current {
            world.moved(operation, event);
        } else if !self.is_fenced {
            world.was_written_by_a_stranger = true;
        }
    }
}

/// As the handler of a delete plans it.
fn accept_delete(world: &mut World) -> Option<()> {
    world.rows[DELETE].state.is_none().then_some(())?;
    world.rows[DELETE].state = Some(State::Queued);
    match world.rows[CHANGE].state? {
        State::Running => world.rows[CHANGE].stop_requested = true,
        state if state.is_open() => world.moved(CHANGE, Event::Cancelled),
        _ => {}
    }
    Some(())
}
