//! The life of an operation as a pure state machine.
//!
//! ```text
//!                 ┌────────────────────────── Claimed ─────────────────────────┐
//!                 │                                                            │
//!  Queued ─Claimed─▶ Running ─Failed transiently─▶ Retrying ───────────────────┘
//!    │               │  │  ▲ │
//!    │               │  │  └─┴─ Claimed again, when the lease has expired or was released
//!    │               │  └─DriverWorks─▶ Observing ─┬─▶ Succeeded
//!    │               │                             └─▶ Failed
//!    │               ├─▶ Succeeded
//!    │               ├─▶ Failed ─Retried by an operator─▶ Queued
//!    └───────────────┴─▶ Cancelled (also from Retrying, Observing and, by an operator, Failed)
//!
//!  Refused: written in one go, when the request could not be accepted.
//! ```
//!
//! This module only says which moves exist. Who may make a move is the lease's business ([`super::lease`]):
//! everything out of `Running` needs it; everything else compares the state in its `WHERE`.

use std::fmt;
use std::str::FromStr;

use magnum_common::model::status::UnknownText;

/// Where an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Accepted; waits for a conductor or for its turn at the cluster.
    Queued,
    /// A conductor works on it, or did until its lease expired.
    Running,
    /// Failed transiently; waits for its next attempt.
    Retrying,
    /// The driver call returned, the cloud still works; the status sync settles it.
    Observing,
    /// Done.
    Succeeded,
    /// Given up, with the reason.
    Failed,
    /// Never started: the request was not allowed, with the reason.
    Refused,
    /// Stopped or never started because something else went ahead, with the reason.
    Cancelled,
}

/// What can happen to an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A conductor took the lease.
    Claimed,
    /// A step failed and is to be tried again.
    FailedTransiently,
    /// The driver call returned and the cloud goes on working.
    DriverWorks,
    /// All done.
    Succeeded,
    /// Given up: permanent, exhausted, or out of time.
    Failed,
    /// Superseded by a delete, or discarded by an operator.
    Cancelled,
    /// An operator wants another try.
    Retried,
}

/// A move that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation that is {from} cannot take the event {event:?}")]
pub struct Forbidden {
    /// The state it is in.
    pub from: State,
    /// What was tried.
    pub event: Event,
}

impl State {
    /// Every state.
    pub const ALL: &[Self] = &[
        Self::Queued,
        Self::Running,
        Self::Retrying,
        Self::Observing,
        Self::Succeeded,
        Self::Failed,
        Self::Refused,
        Self::Cancelled,
    ];

    /// The states in which there is still something to do.
    pub const OPEN: &[Self] = &[Self::Queued, Self::Running, Self::Retrying, Self::Observing];

    /// The states in which nothing more happens, unless an operator wants it.
    pub const ENDED: &[Self] = &[Self::Succeeded, Self::Failed, Self::Refused, Self::Cancelled];

    /// The text in the journal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Observing => "observing",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether there is still something to do.
    pub fn is_open(self) -> bool {
        Self::OPEN.contains(&self)
    }

    /// Whether an operation in this state is *the* one at work on its cluster (holds the unique running key).
    pub const fn holds_cluster(self) -> bool {
        matches!(self, Self::Running | Self::Retrying | Self::Observing)
    }

    /// Whether an operation in this state may end in that one.
    pub fn may_end_as(self, end: Self) -> bool {
        let event = match end {
            Self::Succeeded => Event::Succeeded,
            Self::Failed => Event::Failed,
            Self::Cancelled => Event::Cancelled,
            Self::Queued | Self::Running | Self::Retrying | Self::Observing | Self::Refused => return false,
        };
        self.after(event).is_ok()
    }

    /// The state after `event`.
    ///
    /// # Errors
    /// See [`Forbidden`].
    pub fn after(self, event: Event) -> Result<Self, Forbidden> {
        use Event as E;
        match (self, event) {
            (Self::Queued | Self::Retrying | Self::Running, E::Claimed) => Ok(Self::Running),
            (Self::Running, E::FailedTransiently) => Ok(Self::Retrying),
            (Self::Running, E::DriverWorks) => Ok(Self::Observing),
            (Self::Running | Self::Observing, E::Succeeded) => Ok(Self::Succeeded),
            (Self::Queued | Self::Running | Self::Retrying | Self::Observing, E::Failed) => Ok(Self::Failed),
            (
                Self::Queued | Self::Running | Self::Retrying | Self::Observing | Self::Failed,
                E::Cancelled,
            ) => Ok(Self::Cancelled),
            (Self::Failed, E::Retried) => Ok(Self::Queued),
            (from, event) => Err(Forbidden { from, event }),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = UnknownText;

    fn from_str(text: &str) -> Result<Self, UnknownText> {
        Self::ALL
            .iter()
            .find(|state| state.as_str() == text)
            .copied()
            .ok_or_else(|| UnknownText {
                kind: "State",
                text: text.to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: &[Event] = &[
        Event::Claimed,
        Event::FailedTransiently,
        Event::DriverWorks,
        Event::Succeeded,
        Event::Failed,
        Event::Cancelled,
        Event::Retried,
    ];

    #[test]
    fn every_state_reads_back_and_fits_its_column() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(*state));
            assert!(state.as_str().len() <= 16);
        }
    }

    #[test]
    fn every_state_is_either_open_or_ended() {
        for state in State::ALL {
            assert_ne!(state.is_open(), State::ENDED.contains(state), "{state}");
        }
    }

    #[test]
    fn an_ended_operation_moves_only_by_an_operators_hand() {
        for state in State::ALL.iter().filter(|state| !state.is_open()) {
            for event in EVENTS {
                let moved = state.after(*event);
                let by_operator =
                    *state == State::Failed && matches!(event, Event::Retried | Event::Cancelled);
                assert_eq!(moved.is_ok(), by_operator, "{state} {event:?}");
            }
        }
    }

    #[test]
    fn every_open_operation_can_fail_and_can_be_cancelled() {
        for state in State::OPEN {
            assert_eq!(state.after(Event::Failed), Ok(State::Failed));
            assert_eq!(state.after(Event::Cancelled), Ok(State::Cancelled));
        }
    }

    #[test]
    fn only_work_under_a_lease_can_reach_observing_or_retrying() {
        for state in State::ALL {
            for event in [Event::DriverWorks, Event::FailedTransiently] {
                assert_eq!(
                    state.after(event).is_ok(),
                    *state == State::Running,
                    "{state} {event:?}"
                );
            }
        }
    }

    #[test]
    fn an_observed_operation_is_never_claimed() {
        assert!(State::Observing.after(Event::Claimed).is_err());
    }

    #[test]
    fn every_open_state_can_be_left_and_every_state_but_refused_reached() {
        for state in State::ALL.iter().filter(|state| **state != State::Refused) {
            let reached = *state == State::Queued
                || State::ALL
                    .iter()
                    .any(|from| EVENTS.iter().any(|event| from.after(*event) == Ok(*state)));
            assert!(reached, "{state}");
        }
        for state in State::OPEN {
            assert!(
                EVENTS
                    .iter()
                    .any(|event| state.after(*event).is_ok_and(|next| next != *state))
            );
        }
    }
}
