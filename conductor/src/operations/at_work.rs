//! The operations that this process works on, for its report: asked when the database may not answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use magnum_common::ids::OperationId;
use magnum_telemetry::field;
use tokio::time::Instant;

use super::journal::OperationRow;
use super::lease::Lease;

/// Which operations run here. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct AtWork(Arc<Mutex<BTreeMap<OperationId, Entry>>>);

#[derive(Debug, Clone)]
struct Entry {
    kind: String,
    cluster: String,
    attempt: i32,
    since: Instant,
}

/// An operation is at work as long as this lives.
#[derive(Debug)]
pub struct Mark {
    all: AtWork,
    operation: OperationId,
}

impl AtWork {
    /// From now on, the operation is at work.
    pub fn begin(&self, lease: &Lease, row: &OperationRow) -> Mark {
        let entry = Entry {
            kind: row.kind.clone(),
            cluster: row.cluster_uuid.clone(),
            attempt: lease.attempt(),
            since: Instant::now(),
        };
        self.entries().insert(lease.operation().clone(), entry);
        Mark {
            all: self.clone(),
            operation: lease.operation().clone(),
        }
    }

    /// Writes a line about each into the log, and one with their number.
    pub fn log(&self) {
        let entries = self.entries().clone();
        for (operation, entry) in &entries {
            tracing::info!(
                { field::OPERATION } = %operation,
                { field::OPERATION_KIND } = entry.kind,
                { field::CLUSTER } = entry.cluster,
                { field::ATTEMPT } = entry.attempt,
                seconds = entry.since.elapsed().as_secs(),
                "report: at work"
            );
        }
        tracing::info!(operations = entries.len(), "report: operations at work here");
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<OperationId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.all.entries().remove(&self.operation);
    }
}
