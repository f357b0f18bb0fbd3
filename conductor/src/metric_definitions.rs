//! The metrics of a conductor: names, kinds and meanings, in one place.

use std::sync::OnceLock;

use metrics::{describe_counter, describe_gauge, describe_histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Open operations by `state`.
pub const OPERATIONS_OPEN: &str = "magnum_operations_open";
/// Age of the oldest open operation by `state`.
pub const OPERATIONS_OLDEST: &str = "magnum_operations_oldest_seconds";
/// Requests recorded by `kind` and `state`.
pub const OPERATIONS_ACCEPTED: &str = "magnum_operations_accepted_total";
/// Moves of operations after a run, by `state`.
pub const OPERATIONS_SETTLED: &str = "magnum_operations_settled_total";
/// Ended operations removed from the journal.
pub const OPERATIONS_PURGED: &str = "magnum_operations_purged_total";
/// Loaded drivers.
pub const DRIVERS_LOADED: &str = "magnum_drivers_loaded";
/// Driver folders that could not be loaded.
pub const DRIVERS_FAILED: &str = "magnum_drivers_failed";
/// Clusters looked at by the status sync, by `outcome`.
pub const CLUSTERS_POLLED: &str = "magnum_status_polls_total";
/// Duration of a driver's observation of one group of clusters, by `driver`.
pub const OBSERVE_SECONDS: &str = "magnum_status_observe_seconds";
/// Connections of the pool, by `state`.
pub const DATABASE_CONNECTIONS: &str = "magnum_database_connections";

/// Makes this process record metrics. Called by the program, once, so that a conductor inside of another program
/// leaves the choice to that one.
pub fn record() {
    match PrometheusBuilder::new().install_recorder() {
        // Set twice only if installed twice, which is the other arm.
        Ok(handle) => drop(HANDLE.set(handle)),
        Err(error) => tracing::warn!(%error, "this process records metrics already"),
    }
}

/// All metrics in Prometheus' text form; `None` when they are not recorded here.
pub fn rendered() -> Option<String> {
    let handle = HANDLE.get()?;
    handle.run_upkeep();
    Some(handle.render())
}

/// Tells the recorder what the metrics mean.
pub fn describe() {
    describe_gauge!(
        OPERATIONS_OPEN,
        "Open operations in the journal, of all conductors"
    );
    describe_gauge!(
        OPERATIONS_OLDEST,
        "Age of the oldest open operation in the journal"
    );
    describe_counter!(OPERATIONS_ACCEPTED, "Requests that this conductor recorded");
    describe_counter!(
        OPERATIONS_SETTLED,
        "Runs of operations that ended here, by the state they led to"
    );
    describe_counter!(
        OPERATIONS_PURGED,
        "Ended operations that this conductor removed from the journal"
    );
    describe_gauge!(
        DRIVERS_LOADED,
        "Drivers, in all their versions, that this conductor has loaded"
    );
    describe_gauge!(
        DRIVERS_FAILED,
        "Driver folders that this conductor could not load"
    );
    describe_counter!(
        CLUSTERS_POLLED,
        "Clusters in progress that this conductor asked a driver about"
    );
    describe_histogram!(
        OBSERVE_SECONDS,
        "Time a driver took to look at a group of clusters"
    );
    describe_gauge!(DATABASE_CONNECTIONS, "Database connections of this process");
}
