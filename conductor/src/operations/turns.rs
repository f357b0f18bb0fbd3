//! In which order queued operations are begun: projects take turns.
//!
//! One project's 5,000 requests do not hold up the others. Each accepted operation gets a turn, a number, and the lowest ones
//! are claimed first (self-clocked fair queueing): the turn that the fleet is at, or the one behind the last of the same
//! project, whichever is later. So who has nothing waiting comes next, and who has much waiting gets one turn after the other.
//! The deletions of a project take turns of their own.
//!
//! Where the fleet is: the middle one of the turns at work. Neither one call of an hour, nor an operation that ran early
//! because its driver had nothing else to do, moves it far.
//!
//! Not given: strict turns. Each conductor knows the last turns of what it has accepted itself, until it restarts: with three
//! conductors a project may get three operations into one turn; and an operation may be begun up to [`LEEWAY`] turns later than
//! its own. Within a cluster the order of acceptance stays
//! ([`super::journal::candidates`]).
//!
//! Pure, but for what it remembers.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How many turns conductors may differ by in what they claim first: they then seldom try to claim the same operation.
pub const LEEWAY: i64 = 2;

/// The turn of what was recorded as ended: it waits for nothing, and is soon forgotten ([`super::journal::purge`]).
pub const NO_TURN: i64 = -1;

/// Projects that are remembered before those that have had their turn are forgotten.
const MOST_REMEMBERED: usize = 1000;

/// Whose operations follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Flow {
    /// Who asks.
    pub project: Option<String>,
    /// Whether clusters are to be deleted.
    pub is_delete: bool,
}

/// The last turn of each flow. One for each conductor.
#[derive(Debug, Default)]
pub struct Turns(Mutex<HashMap<Flow, i64>>);

impl Turns {
    /// The turn of one more operation of `flow`, while the fleet is at `now`.
    pub fn next(&self, flow: Flow, now: i64) -> i64 {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= MOST_REMEMBERED {
            last.retain(|_, turn| *turn >= now);
        }
        let turn = last
            .get(&flow)
            .map_or(now, |last| now.max(last.saturating_add(1)));
        last.insert(flow, turn);
        turn
    }
}

/// Where the fleet is, by the turns at work, or else by the lowest one that waits.
pub fn present(mut at_work: Vec<i64>, lowest_queued: Option<i64>) -> i64 {
    at_work.sort_unstable();
    at_work
        .get(at_work.len() / 2)
        .copied()
        .or(lowest_queued)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(project: &str) -> Flow {
        Flow {
            project: Some(project.to_owned()),
            is_delete: false,
        }
    }

    #[test]
    fn a_project_gets_one_turn_after_the_other_and_a_new_one_comes_next() {
        let turns = Turns::default();
        let many: Vec<i64> = (0..5).map(|_| turns.next(flow("many"), 0)).collect();
        assert_eq!(many, [0, 1, 2, 3, 4]);
        assert_eq!(turns.next(flow("other"), 1), 1);
        assert_eq!(turns.next(flow("other"), 1), 2);
        assert_eq!(turns.next(flow("many"), 1), 5);
        assert_eq!(turns.next(flow("many"), 100), 100, "what is past is past");
        let delete = Flow {
            is_delete: true,
            ..flow("many")
        };
        assert_eq!(turns.next(delete, 50), 50, "deletions wait for no other request");
    }

    #[test]
    fn the_fleet_is_at_the_middle_of_what_is_at_work() {
        assert_eq!(present(vec![], None), 0);
        assert_eq!(present(vec![], Some(7)), 7);
        assert_eq!(present(vec![9, 1, 8, 9, 5000], Some(3)), 9);
    }

    #[test]
    fn what_is_past_is_forgotten_when_there_is_much() {
        let turns = Turns::default();
        for project in 0..MOST_REMEMBERED {
            turns.next(flow(&project.to_string()), 0);
        }
        turns.next(flow("0"), 0);
        assert_eq!(turns.next(flow("new"), 1), 1);
        let remembered = turns.0.lock().unwrap().len();
        assert_eq!(remembered, 2, "the one that is ahead, and the new one");
    }
}
