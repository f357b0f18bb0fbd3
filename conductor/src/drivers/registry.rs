//! The drivers this conductor has loaded, by name and version; replaced as a whole on SIGHUP.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::Driver;

type Loaded = HashMap<(String, String), Arc<dyn Driver>>;

/// A cheap handle on the loaded drivers. Calls that run keep the driver they started with.
#[derive(Clone, Default)]
pub struct Registry {
    loaded: Arc<RwLock<Arc<Loaded>>>,
}

impl Registry {
    /// A registry of exactly these drivers: for tests and in-process use.
    pub fn of(drivers: impl IntoIterator<Item = Arc<dyn Driver>>) -> Self {
        let registry = Self::default();
        registry.replace(drivers);
        registry
    }

    /// The driver `name` in exactly this version.
    pub fn get(&self, name: &str, version: &str) -> Option<Arc<dyn Driver>> {
        self.snapshot()
            .get(&(name.to_owned(), version.to_owned()))
            .cloned()
    }

    /// Swaps the whole set.
    pub fn replace(&self, drivers: impl IntoIterator<Item = Arc<dyn Driver>>) {
        let loaded: Loaded = drivers
            .into_iter()
            .map(|driver| ((driver.name().to_owned(), driver.version().to_owned()), driver))
            .collect();
        // A poisoned lock only means that a holder panicked; the value is replaced as a whole, never half.
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
    }

    fn snapshot(&self) -> Arc<Loaded> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.snapshot().keys()).finish()
    }
}
