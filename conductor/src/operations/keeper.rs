//! Keeps a lease while an operation runs, and says in time when it cannot.
//!
//! Renews at a third of the term. The moment until which nobody else can own the operation is counted from
//! before the renewal was *sent*, on the monotonic clock; a little before it the [`LeaseKeeper::over`] token is
//! cancelled, whatever the reason: database away, renewal slow, lease taken. The worker then stops its driver
//! and writes nothing.

use std::sync::Arc;
use std::time::Duration;

use magnum_db::Database;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::journal::JournalError;
use super::lease::{self, Lease};

/// Renews in the background until dropped.
#[derive(Debug)]
pub struct LeaseKeeper {
    over: CancellationToken,
    task: JoinHandle<()>,
}

impl LeaseKeeper {
    /// Starts renewing.
    pub fn start(db: Database, lease: Arc<Lease>) -> Self {
        let over = CancellationToken::new();
        let task = tokio::spawn(keep(db, lease, over.clone()).in_current_span());
        Self { over, task }
    }

    /// Cancelled when the lease must not be relied on any more.
    pub const fn over(&self) -> &CancellationToken {
        &self.over
    }
}

impl Drop for LeaseKeeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How long before the end of the lease work stops: time to stop a driver's processes.
pub fn margin(term: Duration) -> Duration {
    term / 6
}

async fn keep(db: Database, lease: Arc<Lease>, over: CancellationToken) {
    let term = lease.term();
    let mut stop_at = lease.safe_until() - margin(term);
    // From before the claim was sent, as every later one from before the renewal before it: a slow database takes its time
    // out of the term both times.
    let mut next = lease.safe_until() - term + term / 3;
    loop {
        sleep_until(next.min(stop_at)).await;
        if Instant::now() >= stop_at {
            tracing::warn!(
                "the lease could not be renewed in time; stopping before another conductor can take over"
            );
            over.cancel();
            return;
        }
        let sent = Instant::now();
        let renewing = Arc::clone(&lease);
        let renewed = timeout_at(
            stop_at,
            db.transaction::<_, JournalError, _>(move |conn| lease::renew(conn, &renewing)),
        )
        .await;
        match renewed {
            Ok(Ok(true)) => {
                stop_at = sent + term - margin(term);
                next = sent + term / 3;
            }
            Ok(Ok(false)) => {
                // Taken over, or ended: both mean that this worker has nothing more to write.
                over.cancel();
                return;
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "renewal failed; trying again");
                next = Instant::now() + term / 12;
            }
            Err(_elapsed) => next = stop_at,
        }
    }
}
