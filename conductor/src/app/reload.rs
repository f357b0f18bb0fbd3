//! Reading the drivers, at the start and again on SIGHUP.

use std::path::PathBuf;
use std::sync::Arc;

use magnum_driver_api::{EngineServices, Shared};
use tokio::sync::Notify;

use crate::drivers::{Loaded, Registry};
use crate::metric_definitions as metric;

/// Reads the drivers again.
#[derive(Clone)]
pub struct Reload {
    pub(super) registry: Registry,
    pub(super) paths: Vec<PathBuf>,
    pub(super) services: EngineServices,
    /// Wakes the announcements.
    pub(super) changed: Arc<Notify>,
}

impl Reload {
    /// Looks into the driver folders and swaps the whole set. Calls that run keep the driver they began with.
    pub async fn now(&self) {
        let paths = self.paths.clone();
        // What drivers share, they share with those that are loaded with them.
        let services = EngineServices {
            shared: Shared::default(),
            ..self.services.clone()
        };
        match tokio::task::spawn_blocking(move || Loaded::from_folders(&paths, &services)).await {
            Ok(loaded) => {
                metrics::gauge!(metric::DRIVERS_LOADED).set(loaded.infos().iter().count() as f64);
                metrics::gauge!(metric::DRIVERS_FAILED).set(loaded.failed().len() as f64);
                self.registry.replace(loaded);
                self.changed.notify_one();
            }
            Err(error) => tracing::error!(%error, "the drivers could not be read; the old ones stay"),
        }
    }
}
