//! From a seed to a schedule of faults. Pure.
//!
//! Several are at work at once, on lanes of their own. Kinds come as cards of a shuffled deck, so that each has come once before
//! one comes twice. No two faults want the same thing of the same place at the same time, and there is always a conductor that
//! no fault of its own keeps from working. Everything has been undone before the span is over.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};

use super::kind::{Kind, Place, Resource};
use crate::Backend;

/// At work at once, at most.
const LANES: usize = 4;
/// The shortest time between two faults of one lane, and the longest.
const PAUSE_MS: std::ops::RangeInclusive<u64> = 300..=2500;
/// Between two faults that want the same thing, so that what was undone is seen to work.
const GAP_MS: u64 = 1500;
/// The same for a server without which nothing goes on, and which takes its time to start.
const SERVERS_GAP_MS: u64 = 12_000;

/// For what a plan is made.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// On this database.
    pub backend: Backend,
    /// With so many conductors.
    pub conductors: usize,
    /// And so many APIs.
    pub apis: usize,
}

/// One fault of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Planned {
    /// What.
    pub kind: Kind,
    /// Where.
    pub place: Place,
    /// When, from the begin, in milliseconds.
    pub at_ms: u64,
    /// How long, in milliseconds.
    pub lasts_ms: u64,
    /// Whatever else is left to chance: how far a clock steps, how slow a line is.
    pub dice: u64,
}

impl Planned {
    fn end_ms(&self) -> u64 {
        self.at_ms + self.lasts_ms
    }

    /// How long there is nothing of the kind before and after it.
    fn gap_ms(&self) -> u64 {
        match self.kind.resource() {
            Resource::Database | Resource::Broker => SERVERS_GAP_MS,
            _ => GAP_MS,
        }
    }

    fn overlaps(&self, other: &Self, gap: u64) -> bool {
        self.at_ms < other.end_ms() + gap && other.at_ms < self.end_ms() + gap
    }
}

/// The faults of a seed, in the order in which they begin.
pub fn plan(seed: u64, shape: Shape, span: Duration) -> Vec<Planned> {
    let mut rng = StdRng::seed_from_u64(seed);
    let span = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let mut deck = Deck::new(shape);
    let mut planned: Vec<Planned> = Vec::new();
    let mut free_at = [0; LANES];
    while let Some(lane) = (0..LANES)
        .min_by_key(|lane| free_at[*lane])
        .filter(|lane| free_at[*lane] < span)
    {
        let at = free_at[lane] + rng.random_range(PAUSE_MS);
        free_at[lane] = match deck.draw(&mut rng, &planned, at, span) {
            Some(fault) => {
                planned.push(fault);
                fault.end_ms()
            }
            None => at,
        };
    }
    planned.sort_by_key(|fault| fault.at_ms);
    planned
}

/// Kinds that have not come yet, in a random order.
struct Deck {
    shape: Shape,
    cards: Vec<Kind>,
}

impl Deck {
    fn new(shape: Shape) -> Self {
        let cards = Vec::new();
        Self { shape, cards }
    }

    /// The first card that fits here.
    fn draw(&mut self, rng: &mut StdRng, planned: &[Planned], at_ms: u64, span: u64) -> Option<Planned> {
        if self.cards.is_empty() {
            self.cards = Kind::ALL
                .into_iter()
                .filter(|kind| kind.exists_with(self.shape.backend))
                .collect();
            self.cards.shuffle(rng);
        }
        for index in 0..self.cards.len() {
            let kind = self.cards[index];
            let mut places = kind.places(self.shape.conductors, self.shape.apis);
            places.shuffle(rng);
            let lasts_ms = rng.random_range(kind.lasts());
            let dice = rng.random();
            let candidate = |place| Planned {
                kind,
                place,
                at_ms,
                lasts_ms,
                dice,
            };
            let mut candidates = places.into_iter().map(candidate);
            if let Some(fault) =
                candidates.find(|fault| fault.end_ms() <= span && fits(fault, planned, self.shape))
            {
                self.cards.remove(index);
                return Some(fault);
            }
        }
        None
    }
}

fn fits(fault: &Planned, planned: &[Planned], shape: Shape) -> bool {
    let wants_the_same = |other: &&Planned| {
        other.place == fault.place
            && other.kind.resource() == fault.kind.resource()
            && fault.overlaps(other, fault.gap_ms())
    };
    if planned.iter().any(|other| wants_the_same(&other)) {
        return false;
    }
    let disabled = |one: &Planned| match one.place {
        Place::Conductor(number) if one.kind.disables() => Some(number),
        _ => None,
    };
    let Some(number) = disabled(fault) else {
        return true;
    };
    let at_the_time = planned.iter().filter(|other| fault.overlaps(other, GAP_MS));
    let mut down: Vec<usize> = at_the_time.filter_map(disabled).chain([number]).collect();
    down.sort_unstable();
    down.dedup();
    down.len() < shape.conductors
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(600);

    fn shapes() -> impl Iterator<Item = Shape> {
        Backend::ALL.into_iter().map(|backend| Shape {
            backend,
            conductors: 3,
            apis: 1,
        })
    }

    #[test]
    fn a_seed_is_one_plan() {
        for shape in shapes() {
            assert_eq!(plan(7, shape, SPAN), plan(7, shape, SPAN));
            assert_ne!(plan(7, shape, SPAN), plan(8, shape, SPAN));
        }
    }

    #[test]
    fn every_kind_comes_and_several_are_at_work_at_once() {
        for shape in shapes() {
            let plan = plan(1, shape, SPAN);
            for kind in Kind::ALL {
                let comes = plan.iter().any(|fault| fault.kind == kind);
                assert_eq!(
                    comes,
                    kind.exists_with(shape.backend),
                    "{kind:?} with {:?}",
                    shape.backend
                );
            }
            let most = plan
                .iter()
                .map(|fault| plan.iter().filter(|other| other.overlaps(fault, 0)).count())
                .max();
            assert!(most > Some(2), "{most:?}");
        }
    }

    #[test]
    fn everything_is_undone_in_time_and_nobody_wants_what_another_has() {
        for shape in shapes() {
            for seed in 0..50 {
                let plan = plan(seed, shape, SPAN);
                for (number, fault) in plan.iter().enumerate() {
                    assert!(u128::from(fault.end_ms()) <= SPAN.as_millis());
                    for other in &plan[..number] {
                        let is_same =
                            other.place == fault.place && other.kind.resource() == fault.kind.resource();
                        assert!(
                            !is_same || !fault.overlaps(other, fault.gap_ms()),
                            "{fault:?} {other:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn one_conductor_is_always_spared() {
        for shape in shapes() {
            for seed in 0..50 {
                let plan = plan(seed, shape, SPAN);
                for moment in (0..u64::try_from(SPAN.as_millis()).unwrap()).step_by(100) {
                    let down: std::collections::BTreeSet<Place> = plan
                        .iter()
                        .filter(|fault| fault.at_ms <= moment && moment < fault.end_ms())
                        .filter(|fault| fault.kind.disables() && matches!(fault.place, Place::Conductor(_)))
                        .map(|fault| fault.place)
                        .collect();
                    assert!(
                        down.len() < shape.conductors,
                        "seed {seed} at {moment} ms: {down:?}"
                    );
                }
            }
        }
    }
}
