//! Which drivers this conductor leaves to others for a while, because it cannot run them itself: it has no process,
//! descriptor, memory or disk left, a program is missing here, or the version that built a cluster is.
//!
//! ```text
//! closed ─it cannot─▶ open, for a second, then two … a minute ─over─▶ on trial: one operation
//!    ▲                   ▲                                               │ │
//!    │                   └──────────────── it cannot ────────────────────┘ │
//!    └──────────────── nothing of the kind for five seconds ───────────────┘
//! ```
//!
//! A conductor that fails in milliseconds always has free slots, and would attract the work of all. Kept in memory: what a
//! process cannot do ends with the process at the latest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use magnum_common::retry::RetryPolicy;
use tokio::time::Instant;

use crate::workflows::DriverRef;

/// What this conductor cannot do shows at once: an operation on trial that went on for so long has its processes.
const TRIAL: Duration = Duration::from_secs(5);
/// A version that is not here may be installed; until then its operations are left alone.
const MISSING: Duration = Duration::from_secs(60);

/// What this conductor may claim at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimable {
    /// Names of drivers.
    pub drivers: Vec<String>,
    /// Those of them of which one operation may be claimed, to see whether it works again.
    pub on_trial: Vec<String>,
    /// Row numbers of operations that run and whose lease is over, as this conductor has
    /// [watched](super::lease_watch::LeaseWatch) it.
    pub over: Vec<i64>,
    /// Versions that built clusters and are not loaded here, nor one that can take over.
    pub without: Vec<MissingVersion>,
}

/// A version that is not loaded here, nor one that can take over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingVersion {
    /// Of which driver.
    pub driver: DriverRef,
    /// Whether no other conductor has it either. Then an operation that has yet to choose its driver is anybody's: it was
    /// foreseen for a version that has gone.
    pub is_nowhere: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breaker {
    Open { until: Instant, failures: u32 },
    OnTrial { until: Instant, failures: u32 },
}

#[derive(Debug, Default)]
struct Held {
    breakers: HashMap<String, Breaker>,
    missing: HashMap<DriverRef, (bool, Instant)>,
}

/// The breakers of all drivers of this process.
#[derive(Debug, Clone, Default)]
pub struct Breakers(Arc<Mutex<Held>>);

impl Breakers {
    /// What may be claimed of the loaded drivers.
    pub fn claimable(&self, loaded: Vec<String>, now: Instant) -> Claimable {
        let mut held = self.held();
        held.missing.retain(|_, (_, until)| *until > now);
        held.breakers
            .retain(|_, breaker| !matches!(breaker, Breaker::OnTrial { until, .. } if *until <= now));
        let mut claimable = Claimable {
            without: held
                .missing
                .iter()
                .map(|(driver, (is_nowhere, _))| MissingVersion {
                    driver: driver.clone(),
                    is_nowhere: *is_nowhere,
                })
                .collect(),
            ..Claimable::default()
        };
        for driver in loaded {
            match held.breakers.get(&driver) {
                None => claimable.drivers.push(driver),
                Some(Breaker::Open { until, .. }) if *until <= now => {
                    claimable.on_trial.push(driver.clone());
                    claimable.drivers.push(driver);
                }
                Some(_) => {}
            }
        }
        claimable
    }

    /// An operation of the driver was claimed while it may have one on trial.
    pub fn tried(&self, driver: &str, now: Instant) {
        if let Some(breaker) = self.held().breakers.get_mut(driver)
            && let Breaker::Open { failures, .. } = *breaker
        {
            *breaker = Breaker::OnTrial {
                until: now + TRIAL,
                failures,
            };
        }
    }

    /// This conductor cannot run the driver now. Returns how long it leaves its operations to others, and whether that is
    /// new.
    pub fn trip(&self, driver: &str, now: Instant) -> (Duration, bool) {
        let mut held = self.held();
        let before = held.breakers.get(driver).copied();
        let failures = match before {
            Some(Breaker::OnTrial { failures, .. }) => failures.saturating_add(1),
            // Operations that ran beside the first one.
            Some(Breaker::Open { failures, .. }) => failures,
            None => 1,
        };
        let pause = policy().delay_after(failures);
        let until = now + pause;
        held.breakers
            .insert(driver.to_owned(), Breaker::Open { until, failures });
        (pause, before.is_none())
    }

    /// This version is not loaded here, nor one that can take over.
    pub fn lacks(&self, missing: MissingVersion, now: Instant) {
        self.held()
            .missing
            .insert(missing.driver, (missing.is_nowhere, now + MISSING));
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // Each change is made as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const fn policy() -> RetryPolicy {
    RetryPolicy {
        initial: Duration::from_secs(1),
        max_interval: Duration::from_secs(60),
        multiplier: 2.0,
        jitter: 0.2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded() -> Vec<String> {
        vec!["a".to_owned(), "b".to_owned()]
    }

    #[test]
    fn a_driver_that_cannot_be_run_is_left_to_others_and_tried_with_one_operation() {
        let (breakers, start) = (Breakers::default(), Instant::now());
        assert_eq!(breakers.claimable(loaded(), start).drivers, loaded());
        let (pause, is_new) = breakers.trip("a", start);
        assert!(is_new && pause <= Duration::from_secs(2));
        assert_eq!(breakers.claimable(loaded(), start).drivers, ["b"]);
        let later = start + pause;
        let trial = breakers.claimable(loaded(), later);
        assert_eq!((trial.drivers, trial.on_trial), (loaded(), vec!["a".to_owned()]));
        breakers.tried("a", later);
        assert_eq!(
            breakers.claimable(loaded(), later).drivers,
            ["b"],
            "one at a time"
        );
        let (longer, is_new) = breakers.trip("a", later);
        assert!(!is_new && longer > pause, "{longer:?} {pause:?}");
        let later = later + longer;
        breakers.tried("a", later);
        let well = breakers.claimable(loaded(), later + TRIAL);
        assert_eq!((well.drivers, well.on_trial.len()), (loaded(), 0));
    }

    #[test]
    fn operations_that_fail_together_count_once() {
        let (breakers, start) = (Breakers::default(), Instant::now());
        for _ in 0..50 {
            breakers.trip("a", start);
        }
        let (pause, _) = breakers.trip("a", start);
        assert!(pause <= Duration::from_secs(2), "{pause:?}");
    }

    #[test]
    fn a_missing_version_is_left_alone_for_a_minute() {
        let (breakers, start) = (Breakers::default(), Instant::now());
        let missing = MissingVersion {
            driver: DriverRef {
                name: "a".to_owned(),
                version: "1.2.0".to_owned(),
            },
            is_nowhere: false,
        };
        breakers.lacks(missing.clone(), start);
        assert_eq!(breakers.claimable(loaded(), start).without, [missing]);
        assert!(breakers.claimable(loaded(), start + MISSING).without.is_empty());
    }
}
