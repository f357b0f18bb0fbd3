//! Work that comes round: it has no request, may run in every conductor, and may be skipped once.
//!
//! Every loop here survives a database that is away: it logs once, and goes on when it is back.

pub mod announce;
pub mod certificate_removal;
pub mod health;
pub mod journal_history;
pub mod journal_metrics;
pub mod key_pool;
mod polling;
pub mod service_heartbeat;
pub mod status_sync;
pub mod utilisation;

use std::time::Duration;

use rand::RngExt;
use tokio_util::sync::CancellationToken;

/// Waits between rounds, a little irregularly, so that conductors that were started together spread out.
#[derive(Debug)]
pub struct Rounds {
    interval: Duration,
    shutdown: CancellationToken,
    first: bool,
}

impl Rounds {
    /// The first round comes at once.
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
pub struct Trouble {
    what: &'static str,
    failing: bool,
}

impl Trouble {
    /// For work called `what`.
    pub const fn with(what: &'static str) -> Self {
        Self { what, failing: false }
    }

    /// Takes the outcome of one round.
    pub fn note<T, E: std::fmt::Display>(&mut self, outcome: Result<T, E>) -> Option<T> {
        match outcome {
            Ok(value) => {
                if std::mem::take(&mut self.failing) {
                    tracing::info!("{} works again", self.what);
                }
                Some(value)
            }
            Err(error) => {
                if self.failing {
                    tracing::debug!(%error, "{} still fails", self.what);
                } else {
                    tracing::warn!(%error, "{} fails; it goes on when it can", self.what);
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
    async fn the_first_round_comes_at_once_later_ones_can_be_brought_forward_and_a_stop_ends_them() {
        let shutdown = CancellationToken::new();
        let mut rounds = Rounds::new(Duration::from_secs(3600), shutdown.clone());
        assert!(rounds.next().await);
        assert!(rounds.next_or(std::future::ready(())).await);
        shutdown.cancel();
        assert!(!rounds.next_or(std::future::ready(())).await);
    }
}
