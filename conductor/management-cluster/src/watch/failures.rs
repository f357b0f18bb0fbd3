//! Watches that fail, in the log: once when the first does, and once when none does any more.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher;
use magnum_common::error::with_causes;

/// The kinds whose watches fail at present.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<BTreeSet<&'static str>>);

impl Failures {
    fn kinds(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failed(&self, kind: &'static str, error: &watcher::Error) {
        let mut kinds = self.kinds();
        if kinds.is_empty() {
            tracing::warn!(
                kind,
                error = with_causes(error),
                "objects in the management cluster cannot be watched: each look asks for them meanwhile"
            );
        } else if !kinds.contains(kind) {
            tracing::debug!(kind, error = with_causes(error), "nor can these");
        }
        kinds.insert(kind);
    }

    pub(super) fn passed(&self, kind: &str) {
        let mut kinds = self.kinds();
        if kinds.remove(kind) && kinds.is_empty() {
            tracing::info!("all objects in the management cluster are watched again");
        }
    }
}
