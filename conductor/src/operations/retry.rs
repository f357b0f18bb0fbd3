//! What a failed step means for its operation: another attempt, or the end. Pure.
//!
//! Three counters decide, all of them from the journal, so that they survive the process:
//! * `failures`: steps that ended with an error; limited by `operation_retry_max_attempts`;
//! * `panics`: how many of those were panics; limited by [`MAX_PANICS`], since a bug seldom heals;
//! * `lost_claims`: how often a conductor ended while it had the operation; limited by [`lost_limit`], so that a driver which
//!   takes the whole conductor down cannot do so for ever. One that lives, and only could not renew its lease in time, takes
//!   its count back.

use std::time::Duration;

use magnum_common::error::ErrorClass;
use magnum_common::retry::RetryPolicy;
use magnum_driver_api::Reason;

/// Panics of one operation that are tolerated before it is given up.
pub const MAX_PANICS: u32 = 3;

/// A step's error, in the executor's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Retry or give up.
    pub class: FailureClass,
    /// What goes into `status_reason`, and what administrators read.
    pub reason: Reason,
}

/// Why a step failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// The driver said so.
    Driver(ErrorClass),
    /// The driver panicked.
    Panic,
    /// The operation's deadline passed.
    TimedOut,
}

impl FailureClass {
    /// The word in the journal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Driver(ErrorClass::Transient) => "transient",
            Self::Driver(ErrorClass::Permanent) => "permanent",
            Self::Driver(ErrorClass::NotSupported) => "not_supported",
            Self::Panic => "panic",
            Self::TimedOut => "timed_out",
        }
    }
}

/// The limits and the schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Delays between attempts.
    pub policy: RetryPolicy,
    /// Failures after which an operation is given up.
    pub max_attempts: u32,
}

/// The operation's history as the journal has it, the present failure included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct History {
    /// Steps that ended with an error, this one included.
    pub failures: u32,
    /// How many of those were panics.
    pub panics: u32,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Try again after this time.
    RetryAfter(Duration),
    /// End the operation with this reason.
    GiveUp(Reason),
}

/// Decides about a step that failed.
pub fn decide(failure: &Failure, history: History, limits: &Limits) -> Decision {
    let give_up_after = |what: &str, count: u32| {
        Decision::GiveUp(failure.reason.and(&format!(" (given up after {count} {what})")))
    };
    match failure.class {
        FailureClass::Driver(ErrorClass::Permanent | ErrorClass::NotSupported) | FailureClass::TimedOut => {
            Decision::GiveUp(failure.reason.clone())
        }
        FailureClass::Panic if history.panics >= MAX_PANICS => give_up_after("panics", history.panics),
        FailureClass::Panic | FailureClass::Driver(ErrorClass::Transient) => {
            if history.failures >= limits.max_attempts {
                give_up_after("attempts", history.failures)
            } else {
                Decision::RetryAfter(limits.policy.delay_after(history.failures))
            }
        }
    }
}

/// Lost claims that are tolerated: three times the attempts, since ends of conductors are nobody's fault.
pub fn lost_limit(limits: &Limits) -> u32 {
    limits.max_attempts.saturating_mul(3).max(10)
}

/// Whether conductors ended too often while they had the operation. Asked right after a claim.
pub fn lost_too_often(lost_claims: u32, limits: &Limits) -> bool {
    lost_claims > lost_limit(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_attempts: u32) -> Limits {
        Limits {
            policy: RetryPolicy {
                initial: Duration::from_secs(2),
                max_interval: Duration::from_secs(300),
                multiplier: 2.0,
                jitter: 0.0,
            },
            max_attempts,
        }
    }

    fn failure(class: FailureClass) -> Failure {
        Failure {
            class,
            reason: "the cloud said no".into(),
        }
    }

    fn history(failures: u32, panics: u32) -> History {
        History { failures, panics }
    }

    #[test]
    fn a_transient_failure_waits_longer_each_time_and_ends_at_the_limit() {
        let transient = failure(FailureClass::Driver(ErrorClass::Transient));
        assert_eq!(
            decide(&transient, history(1, 0), &limits(3)),
            Decision::RetryAfter(Duration::from_secs(2))
        );
        assert_eq!(
            decide(&transient, history(2, 0), &limits(3)),
            Decision::RetryAfter(Duration::from_secs(4))
        );
        let Decision::GiveUp(reason) = decide(&transient, history(3, 0), &limits(3)) else {
            panic!("three of three attempts are the end");
        };
        assert_eq!(reason.told(), "the cloud said no (given up after 3 attempts)");
    }

    #[test]
    fn permanent_not_supported_and_timed_out_end_at_once_with_the_drivers_own_words() {
        for class in [
            FailureClass::Driver(ErrorClass::Permanent),
            FailureClass::Driver(ErrorClass::NotSupported),
            FailureClass::TimedOut,
        ] {
            assert_eq!(
                decide(&failure(class), history(1, 0), &limits(10)),
                Decision::GiveUp("the cloud said no".into())
            );
        }
    }

    #[test]
    fn panics_have_a_lower_limit() {
        let panic = failure(FailureClass::Panic);
        assert!(matches!(
            decide(&panic, history(2, 2), &limits(10)),
            Decision::RetryAfter(_)
        ));
        assert!(matches!(
            decide(&panic, history(3, 3), &limits(10)),
            Decision::GiveUp(_)
        ));
        assert!(matches!(
            decide(&panic, history(1, 1), &limits(1)),
            Decision::GiveUp(_)
        ));
    }

    #[test]
    fn claims_that_never_came_back_are_limited_too() {
        assert!(!lost_too_often(30, &limits(10)));
        assert!(lost_too_often(31, &limits(10)));
    }
}
