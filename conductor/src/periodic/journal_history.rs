//! Removes old operations from the journal, and old answers of the objects RPC: `[conductor] operation_history`, and a day for
//! what changed nothing.
//!
//! Every conductor does it once an hour, in small transactions. Two at the same time remove each row once; rows that
//! change during a pass are left to the next one.

use std::time::Duration;

use magnum_db::Database;
use tokio_util::sync::CancellationToken;

use super::{FailureLog, Rounds};
use crate::metric_definitions as metric;
use crate::operations::journal::{JournalError, purge};
use crate::store::object_answers;

/// Time between two passes.
const INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Rows read in one transaction.
const WINDOW: i64 = 200;

/// Removes operations that ended longer than `history` ago, until `shutdown`.
pub async fn run(db: Database, history: Duration, shutdown: CancellationToken) {
    let mut rounds = Rounds::new(INTERVAL, shutdown.clone());
    let mut failures = FailureLog::of("removing old operations");
    while rounds.next().await {
        let removed = tokio::select! {
            removed = pass(&db, history, WINDOW) => removed,
            () = shutdown.cancelled() => return,
        };
        if let Some(removed @ 1..) = failures.record(removed) {
            tracing::info!(removed, ?history, "old operations were removed from the journal");
            metrics::counter!(metric::OPERATIONS_PURGED).increment(removed as u64);
        }
    }
}

/// Walks the journal once, `window` rows at a time. Returns how many operations were removed.
///
/// # Errors
/// The database failed, or a row of the journal cannot be read; windows before that stay removed.
pub async fn pass(db: &Database, history: Duration, window: i64) -> Result<usize, JournalError> {
    let history_ms = i64::try_from(history.as_millis()).unwrap_or(i64::MAX);
    let (mut removed, mut next) = (0, Some(0));
    while let Some(after) = next {
        let purged = db
            .transaction(move |conn| purge::purge(conn, after, history_ms, window))
            .await?;
        removed += purged.operations;
        next = purged.next;
    }
    loop {
        let idle = db
            .transaction(move |conn| purge::purge_idle(conn, history_ms, window))
            .await?;
        removed += idle;
        if i64::try_from(idle).is_ok_and(|idle| idle < window) {
            break;
        }
    }
    purge_answers(db, history_ms, window).await?;
    Ok(removed)
}

/// Removes old answers of the objects RPC, `window` rows at a time.
async fn purge_answers(db: &Database, history_ms: i64, window: i64) -> Result<(), JournalError> {
    loop {
        let purged = db
            .transaction(move |conn| object_answers::purge(conn, history_ms, window))
            .await?;
        if i64::try_from(purged).is_ok_and(|purged| purged < window) {
            return Ok(());
        }
    }
}
