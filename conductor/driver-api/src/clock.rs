//! Wall clock and random source of an engine. Tests replace both, so that what an engine makes of them can be foretold.
//!
//! Deadlines are not read from this clock: they compare `tokio::time::Instant`, which tests can pause.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use magnum_common::clock;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use uuid::Uuid;

/// A wall clock: for what peers and people read, such as the start of a certificate.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Clock {
    /// A clock that shows what `read` returns.
    pub fn of(read: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// Now, in UTC.
    pub fn utc_now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}

impl Default for Clock {
    /// The machine's.
    fn default() -> Self {
        Self::of(clock::utc_now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.utc_now())
    }
}

/// Random numbers for names. Keys and secrets are not made from it.
#[derive(Debug, Clone)]
pub struct RandomSource(Arc<Mutex<StdRng>>);

impl RandomSource {
    /// One that gives the same numbers for the same `seed`.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    /// A random uuid (version 4), for a name that nobody else has.
    pub fn uuid(&self) -> Uuid {
        // A panic between two draws leaves a generator that still draws.
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner).random();
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// So many random digits of base 16, at most twelve, for part of a name.
    pub fn digits(&self, count: usize) -> String {
        // The first twelve of a uuid are random in version 4.
        self.uuid()
            .simple()
            .to_string()
            .chars()
            .take(count.min(12))
            .collect()
    }
}

impl Default for RandomSource {
    /// Seeded by the operating system.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(StdRng::from_rng(&mut rand::rng()))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_what_it_reads() {
        let clock = Clock::of(|| DateTime::UNIX_EPOCH);
        assert_eq!(clock.utc_now(), DateTime::UNIX_EPOCH);
        assert!(Clock::default().utc_now() > DateTime::UNIX_EPOCH);
    }

    #[test]
    fn a_seed_repeats_and_the_operating_system_does_not() {
        assert_eq!(RandomSource::seeded(7).uuid(), RandomSource::seeded(7).uuid());
        let source = RandomSource::default();
        assert_ne!(source.uuid(), RandomSource::default().uuid());
        assert_eq!(source.uuid().get_version_num(), 4);
    }
}
