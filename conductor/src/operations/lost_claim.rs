//! A claim that was lost though its conductor lives: it was too slow to renew the lease, or its database was. That is not the
//! driver's doing, and does not make a suspect of the operation ([`super::suspects`]).

use std::sync::Arc;
use std::time::Duration;

use magnum_common::retry::{Retry, RetryPolicy};
use magnum_db::Database;

use super::journal::JournalError;
use super::lease::{self, Lease};

/// How long it is tried to take back the count of a lost claim.
const TAKE_BACK_WITHIN: Duration = Duration::from_secs(900);

/// Has a lease that was lost by slowness alone not count as one that its driver may have caused, once the database answers. A
/// process that ends before that leaves it counted.
pub(super) async fn take_back(db: Database, lease: Arc<Lease>) {
    let policy = RetryPolicy {
        initial: Duration::from_secs(1),
        max_interval: Duration::from_secs(60),
        multiplier: 2.0,
        jitter: 0.25,
    };
    let attempt = || {
        let lease = Arc::clone(&lease);
        db.transaction(move |conn| lease::lost_by_slowness(conn, &lease))
    };
    let is_retryable = |error: &JournalError, _: Retry| error.is_transient();
    let given_up = tokio::time::sleep(TAKE_BACK_WITHIN);
    if let Err(error) = policy.retry_until(given_up, attempt, is_retryable).await {
        tracing::debug!(%error, "the lost claim stays counted");
    }
}
