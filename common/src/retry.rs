//! Retries: how long to wait before the next attempt, and a loop for work that lives as long as its caller.
//!
//! The only file that names the back-off crate. The schedule of an operation lives in the journal
//! (`next_attempt_ms`), so that it survives a restart; it asks [`RetryPolicy::delay_after`]. Work within a process
//! uses [`RetryPolicy::retry_while`] and [`RetryPolicy::retry_until`]; a loop with more to do between attempts takes
//! [`Delays`] and sleeps itself.

use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use backoff::ExponentialBackoffBuilder;
use backoff::backoff::Backoff;
use tokio::time::{Instant, sleep_until};

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

    /// Repeats `attempt`, with this policy's delays between attempts, while `is_retryable` accepts its error.
    ///
    /// `is_retryable` decides about kinds of errors, limits and deadlines, and is the place to log a failed attempt.
    /// Dropping the future ends the retries, also during a delay.
    ///
    /// # Errors
    /// The error of the last attempt, which `is_retryable` did not accept.
    pub async fn retry_while<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        attempt: impl FnMut() -> F,
        is_retryable: impl FnMut(&E, Retry) -> bool,
    ) -> Result<T, E> {
        self.retry_until(pending(), attempt, is_retryable).await
    }

    /// The same until `stopped`, which ends a delay and never an attempt: one that has begun is waited for, since its
    /// outcome may be the one that counts.
    ///
    /// # Errors
    /// The error of the last attempt.
    pub async fn retry_until<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        stopped: impl Future<Output = ()>,
        mut attempt: impl FnMut() -> F,
        mut is_retryable: impl FnMut(&E, Retry) -> bool,
    ) -> Result<T, E> {
        let mut stopped = pin!(stopped);
        let mut delays = self.delays();
        let mut failures = 0;
        loop {
            let error = match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            failures += 1;
            let at = Instant::now() + delays.next_delay();
            if !is_retryable(&error, Retry { failures, at }) {
                return Err(error);
            }
            tokio::select! {
                () = sleep_until(at) => {}
                () = &mut stopped => return Err(error),
            }
        }
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

/// The retry that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    /// Number of failed attempts, at least 1.
    pub failures: u64,
    /// When the next attempt begins.
    pub at: Instant,
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

    /// Delays of 2, 4, 8, … ms.
    fn quick() -> RetryPolicy {
        RetryPolicy {
            initial: Duration::from_millis(2),
            ..policy(0.0)
        }
    }

    #[tokio::test]
    async fn attempts_are_repeated_after_each_delay_until_one_succeeds() {
        let began = Instant::now();
        let mut attempts = 0;
        let attempt = || {
            attempts += 1;
            std::future::ready(if attempts < 4 { Err(attempts) } else { Ok("done") })
        };
        let is_retryable = |error: &u64, retry: Retry| {
            assert_eq!(*error, retry.failures);
            true
        };
        assert_eq!(quick().retry_while(attempt, is_retryable).await, Ok("done"));
        assert!(began.elapsed() >= Duration::from_millis(2 + 4 + 8));
    }

    #[tokio::test]
    async fn permanent_error_is_not_retried() {
        let mut attempts = 0;
        let attempt = || {
            attempts += 1;
            std::future::ready(Err::<(), _>("permanent"))
        };
        let outcome = quick().retry_while(attempt, |_, _| false).await;
        assert_eq!((outcome, attempts), (Err("permanent"), 1));
    }

    #[tokio::test]
    async fn stopped_retries_end_with_the_last_error_without_another_attempt() {
        let slow = RetryPolicy {
            initial: Duration::from_secs(60),
            ..quick()
        };
        let mut attempts = 0;
        let attempt = || {
            attempts += 1;
            std::future::ready(Err::<(), _>("transient"))
        };
        let outcome = slow
            .retry_until(std::future::ready(()), attempt, |_, _| true)
            .await;
        assert_eq!((outcome, attempts), (Err("transient"), 1));
    }

    #[tokio::test]
    async fn no_attempt_begins_after_the_deadline() {
        let deadline = Instant::now() + Duration::from_millis(20);
        let mut planned = Vec::new();
        let attempt = || std::future::ready(Err::<(), _>(()));
        let is_retryable = |(): &(), retry: Retry| {
            planned.push(retry.at);
            retry.at < deadline
        };
        assert_eq!(quick().retry_while(attempt, is_retryable).await, Err(()));
        let refused = planned.pop().unwrap();
        assert!(refused >= deadline && planned.iter().all(|at| *at < deadline));
    }

    #[test]
    fn huge_failure_count_yields_the_cap_without_overflow() {
        assert_eq!(policy(0.0).delay_after(u32::MAX), Duration::from_secs(60));
    }
}
