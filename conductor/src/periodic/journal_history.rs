//! Removes old operations from the journal, and old answers of the objects RPC: `[conductor] operation_history`.
//!
//! Every conductor does it now and then, in small transactions. Two that meet remove the same rows once; what one
//! of them finds changed under its hands it leaves to the next pass.

use std::time::Duration;

use magnum_db::Database;
use tokio_util::sync::CancellationToken;

use super::{Rounds, Trouble};
use crate::metric_definitions as metric;
use crate::operations::journal::{JournalError, purge};
use crate::store::object_answers;

/// Time between two passes.
const EVERY: Duration = Duration::from_secs(60 * 60);

/// Rows looked at in one transaction.
const WINDOW: i64 = 200;

/// Removes until `shutdown` what ended longer than `history` ago.
pub async fn run(db: Database, history: Duration, shutdown: CancellationToken) {
    let mut rounds = Rounds::new(EVERY, shutdown.clone());
    let mut trouble = Trouble::with("removing old operations");
    while rounds.next().await {
        let removed = tokio::select! {
            removed = pass(&db, history, WINDOW) => removed,
            () = shutdown.cancelled() => return,
        };
        if let Some(removed @ 1..) = trouble.note(removed) {
            tracing::info!(removed, ?history, "old operations were removed from the journal");
            metrics::counter!(metric::OPERATIONS_PURGED).increment(removed as u64);
        }
    }
}

/// Walks the journal once, `window` rows at a time. Returns how many operations were removed.
///
/// # Errors
/// The database failed, or a row of the journal cannot be read.
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
    forget_answers(db, history_ms, window).await?;
    Ok(removed)
}

/// Forgets old answers, `window` rows at a time.
async fn forget_answers(db: &Database, history_ms: i64, window: i64) -> Result<(), JournalError> {
    loop {
        let forgotten = db
            .transaction(move |conn| object_answers::purge(conn, history_ms, window))
            .await?;
        if i64::try_from(forgotten).is_ok_and(|forgotten| forgotten < window) {
            return Ok(());
        }
    }
}
