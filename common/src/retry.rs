//! Delay policy: how long to wait before the next attempt.
//!
//! The only file that names the back-off crate. It computes delays and nothing else: the schedule of an
//! operation lives in the journal (`next_attempt_ms`), so that it survives a restart; reconnect loops ask
//! [`Delays`] for the next pause and sleep themselves.

use std::time::Duration;

use backoff::ExponentialBackoffBuilder;
use backoff::backoff::Backoff;

/// Exponential delays with jitter and a cap.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Delay after the first failure.
    pub initial: Duration,
    /// No delay is longer than this (before jitter).
    pub max_interval: Duration,
    /// Each delay is the one before times this.
    pub multiplier: f64,
    /// Share of the delay that is random, 0.0 to 1.0.
    pub jitter: f64,
}

impl RetryPolicy {
    /// The delay before attempt `failures + 1`, where `failures` counts from 1.
    ///
    /// Stateless on purpose: an operation's failures are counted in the journal, not in a process.
    pub fn delay_after(&self, failures: u32) -> Duration {
        let mut delays = self.delays();
        let mut delay = self.initial;
        // Beyond 64 doublings every policy sits at its cap.
        for _ in 0..failures.clamp(1, 64) {
            delay = delays.next_delay();
        }
        delay
    }

    /// A fresh series of delays, for a loop that holds it.
    pub fn delays(&self) -> Delays {
        Delays(
            ExponentialBackoffBuilder::new()
                .with_initial_interval(self.initial)
                .with_max_interval(self.max_interval)
                .with_multiplier(self.multiplier)
                .with_randomization_factor(self.jitter)
                .with_max_elapsed_time(None)
                .build(),
        )
    }
}

/// A running series of delays. Never ends.
#[derive(Debug)]
pub struct Delays(backoff::ExponentialBackoff);

impl Delays {
    /// The next pause.
    pub fn next_delay(&mut self) -> Duration {
        self.0.next_backoff().unwrap_or(self.0.max_interval)
    }

    /// Starts over: call after a success.
    pub fn reset(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(jitter: f64) -> RetryPolicy {
        RetryPolicy {
            initial: Duration::from_secs(2),
            max_interval: Duration::from_secs(60),
            multiplier: 2.0,
            jitter,
        }
    }

    #[test]
    fn delays_double_up_to_the_cap() {
        let seconds: Vec<u64> = (1..=7).map(|n| policy(0.0).delay_after(n).as_secs()).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn jitter_stays_within_its_share() {
        for _ in 0..100 {
            let delay = policy(0.5).delay_after(1).as_secs_f64();
            assert!((1.0..=3.0).contains(&delay), "{delay}");
        }
    }

    #[test]
    fn a_huge_count_of_failures_is_the_cap_and_not_an_overflow() {
        assert_eq!(policy(0.0).delay_after(u32::MAX), Duration::from_secs(60));
    }
}
