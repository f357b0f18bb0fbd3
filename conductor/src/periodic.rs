//! Periodic work: it has no request, may run in every conductor, and a round of it may be skipped.
//!
//! Every loop here survives an outage of the database: it logs the first failure, and continues when it is back.

pub mod announce;
pub mod certificate_removal;
pub mod driver_lacks;
pub mod health;
pub mod journal_history;
pub mod journal_metrics;
pub mod key_pool;
mod polling;
pub mod sealing;
pub mod service_heartbeat;
pub mod status_sync;
pub mod trust_removal;
pub mod utilisation;

use std::time::Duration;

use rand::RngExt;
use tokio_util::sync::CancellationToken;

/// Waits between rounds, with a jitter of a tenth, so that conductors that were started together spread out.
#[derive(Debug)]
pub struct Rounds {
    interval: Duration,
    shutdown: CancellationToken,
    first: bool,
}

impl Rounds {
    /// The first round starts at once, each further one after about `interval`.
    pub const fn new(interval: Duration, shutdown: CancellationToken) -> Self {
        Self {
            interval,
            shutdown,
            first: true,
        }
    }

    /// Waits for the next round; `false` when it is time to stop.
    pub async fn next(&mut self) -> bool {
        self.next_or(std::future::pending()).await
    }

    /// Like [`Self::next`]; `early` brings the round forward.
    pub async fn next_or(&mut self, early: impl Future<Output = ()>) -> bool {
        if std::mem::take(&mut self.first) {
            return !self.shutdown.is_cancelled();
        }
        let pause = self.interval.mul_f64(rand::rng().random_range(0.9..1.1));
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => false,
            () = early => true,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

/// Logs the first failure of a series and its end, not each of them.
#[derive(Debug)]
pub struct FailureLog {
    activity: &'static str,
    failing: bool,
}

impl FailureLog {
    /// For the work that log lines call `activity`.
    pub const fn of(activity: &'static str) -> Self {
        Self {
            activity,
            failing: false,
        }
    }

    /// Logs the outcome of one round, and returns its value.
    pub fn record<T, E: std::fmt::Display>(&mut self, outcome: Result<T, E>) -> Option<T> {
        match outcome {
            Ok(value) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("{} works again", self.activity);
                }
                Some(value)
            }
            Err(error) => {
                if self.failing {
                    tracing::debug!(%error, "{} still fails", self.activity);
                } else {
                    tracing::warn!(%error, "{} fails; it goes on when it can", self.activity);
                }
                self.failing = true;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn first_round_starts_at_once_later_ones_can_be_brought_forward_and_a_stop_ends_them() {
        let shutdown = CancellationToken::new();
        let mut rounds = Rounds::new(Duration::from_secs(3600), shutdown.clone());
        assert!(rounds.next().await);
        assert!(rounds.next_or(std::future::ready(())).await);
        shutdown.cancel();
        assert!(!rounds.next_or(std::future::ready(())).await);
    }
}
