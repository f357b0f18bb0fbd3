//! Signs of life for callers that asked for them while their operation waits or runs.
//!
//! Who sends: the conductor that took the call, until the answer is in the journal, and the conductor that runs
//! the operation. Usually that is one process, and it sends once; when there are two, the caller hears both, which
//! does no harm, and a takeover leaves no gap. Not guaranteed: a call that waits for its turn falls silent when
//! the conductor that took it dies; its caller may give up then, the operation goes on all the same.
//!
//! The journal is asked before each sign, so none follows an answer but by a hair's breadth; oslo's client drops
//! such a one.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use magnum_common::ids::OperationId;
use magnum_db::Database;
use magnum_rpc::{PublishError, ReplyAddress};
use magnum_telemetry::field;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use super::journal::{JournalError, read};
use super::replies::ReplySink;

/// The monitored calls of this process.
#[derive(Clone)]
pub struct CallMonitors(Arc<Inner>);

struct Inner {
    db: Database,
    sink: Arc<dyn ReplySink>,
    watched: Mutex<HashSet<OperationId>>,
    stop: CancellationToken,
    _stops_with_the_last_handle: DropGuard,
}

impl CallMonitors {
    /// None yet.
    pub fn new(db: Database, sink: Arc<dyn ReplySink>) -> Self {
        let stop = CancellationToken::new();
        Self(Arc::new(Inner {
            db,
            sink,
            watched: Mutex::default(),
            _stops_with_the_last_handle: stop.clone().drop_guard(),
            stop,
        }))
    }

    /// Sends signs of life to `caller`, two in each `timeout`, until the operation is answered. Once is enough:
    /// an operation that is watched here already stays so.
    pub fn watch(&self, operation: &OperationId, caller: &ReplyAddress, timeout: Duration) {
        if !self.0.watched().insert(operation.clone()) {
            return;
        }
        let (db, sink) = (self.0.db.clone(), Arc::clone(&self.0.sink));
        let (operation, caller, stop) = (operation.clone(), caller.clone(), self.0.stop.clone());
        // Not the whole of it, or the last handle would never be dropped.
        let here = Arc::downgrade(&self.0);
        let span = tracing::info_span!("call monitor", { field::OPERATION } = %operation);
        let watching = async move {
            tokio::select! {
                () = send(&db, sink.as_ref(), &operation, &caller, timeout / 2) => {}
                () = stop.cancelled() => {}
            }
            if let Some(here) = here.upgrade() {
                here.watched().remove(&operation);
            }
        };
        tokio::spawn(watching.instrument(span));
    }
}

impl Inner {
    fn watched(&self) -> MutexGuard<'_, HashSet<OperationId>> {
        // A set of ids stays valid whatever a panicking thread was doing.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn send(
    db: &Database,
    sink: &dyn ReplySink,
    operation: &OperationId,
    caller: &ReplyAddress,
    period: Duration,
) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is immediate; the caller has only just asked.
    ticks.tick().await;
    loop {
        ticks.tick().await;
        let id = operation.clone();
        let waits = db
            .transaction::<_, JournalError, _>(move |conn| read::is_unanswered(conn, id.as_str()))
            .await;
        // A database that is away has not answered the call either.
        if let Ok(false) = waits {
            return;
        }
        match sink.alive(caller).await {
            Ok(()) => {}
            Err(error @ PublishError::Unroutable { .. }) => {
                tracing::debug!(%error, "the caller has gone");
                return;
            }
            Err(error) => tracing::debug!(%error, "sign of life not sent"),
        }
    }
}
