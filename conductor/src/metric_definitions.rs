//! The metrics of a conductor: names, kinds and meanings, in one place; `docs/metrics.md` is the same list.

use std::sync::OnceLock;

use magnum_telemetry::metric::{self, Kind, Metric};
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
/// Duration of a driver's call for an operation, by `driver`, `kind` and `outcome`.
pub const DRIVER_CALL_SECONDS: &str = "magnum_driver_call_seconds";
/// Clusters looked at by the status sync, by `outcome`.
pub const CLUSTERS_POLLED: &str = "magnum_status_polls_total";
/// Duration of a driver's observation of one group of clusters, by `driver`.
pub const OBSERVE_SECONDS: &str = "magnum_status_observe_seconds";
/// Keys that can be taken from the pool of keys made ahead of need.
pub const KEY_POOL_DEPTH: &str = "magnum_key_pool_keys";
/// Keys taken from the pool.
pub const KEYS_FROM_POOL: &str = "magnum_keys_from_pool_total";
/// Keys made while an operation waited for them.
pub const KEYS_GENERATED: &str = "magnum_keys_generated_total";
/// Clusters looked at by the health check, by `outcome`.
pub const HEALTH_POLLED: &str = "magnum_health_polls_total";
/// Duration of a driver's answer about the health of one group of clusters, by `driver`.
pub const HEALTH_SECONDS: &str = "magnum_health_seconds";
/// Calls of drivers' own APIs, by `driver` and `outcome`.
pub const DRIVER_API_CALLS: &str = "magnum_driver_api_calls_total";
/// Duration of a call of a driver's own API, by `driver`.
pub const DRIVER_API_SECONDS: &str = "magnum_driver_api_seconds";
/// Connections of the pool, by `state`.
pub const DATABASE_CONNECTIONS: &str = "magnum_database_connections";

/// All of them.
pub const ALL: &[Metric] = &[
    Metric {
        name: OPERATIONS_OPEN,
        kind: Kind::Gauge,
        labels: &["state"],
        meaning: "Open operations in the journal, of all conductors",
    },
    Metric {
        name: OPERATIONS_OLDEST,
        kind: Kind::Gauge,
        labels: &["state"],
        meaning: "Age of the oldest open operation in the journal, in seconds",
    },
    Metric {
        name: OPERATIONS_ACCEPTED,
        kind: Kind::Counter,
        labels: &["kind", "state"],
        meaning: "Requests that this conductor recorded",
    },
    Metric {
        name: OPERATIONS_SETTLED,
        kind: Kind::Counter,
        labels: &["state"],
        meaning: "Runs of operations that ended here, by the state they led to",
    },
    Metric {
        name: OPERATIONS_PURGED,
        kind: Kind::Counter,
        labels: &[],
        meaning: "Ended operations that this conductor removed from the journal",
    },
    Metric {
        name: DRIVERS_LOADED,
        kind: Kind::Gauge,
        labels: &[],
        meaning: "Drivers, in all their versions, that this conductor has loaded",
    },
    Metric {
        name: DRIVERS_FAILED,
        kind: Kind::Gauge,
        labels: &[],
        meaning: "Driver folders that this conductor could not load",
    },
    Metric {
        name: DRIVER_CALL_SECONDS,
        kind: Kind::Seconds,
        labels: &["driver", "kind", "outcome"],
        meaning: "Time a driver's call for an operation took, by the operation's kind and how the call ended",
    },
    Metric {
        name: CLUSTERS_POLLED,
        kind: Kind::Counter,
        labels: &["outcome"],
        meaning: "Clusters in progress that this conductor asked a driver about",
    },
    Metric {
        name: OBSERVE_SECONDS,
        kind: Kind::Seconds,
        labels: &["driver"],
        meaning: "Time a driver took to look at a group of clusters",
    },
    Metric {
        name: KEY_POOL_DEPTH,
        kind: Kind::Gauge,
        labels: &[],
        meaning: "Private keys made ahead of need that any conductor can take",
    },
    Metric {
        name: KEYS_FROM_POOL,
        kind: Kind::Counter,
        labels: &[],
        meaning: "Private keys that this conductor took from the pool",
    },
    Metric {
        name: KEYS_GENERATED,
        kind: Kind::Counter,
        labels: &[],
        meaning: "Private keys that this conductor made while an operation waited for them",
    },
    Metric {
        name: HEALTH_POLLED,
        kind: Kind::Counter,
        labels: &["outcome"],
        meaning: "Clusters about whose health this conductor asked a driver",
    },
    Metric {
        name: HEALTH_SECONDS,
        kind: Kind::Seconds,
        labels: &["driver"],
        meaning: "Time a driver took to report the health of a group of clusters",
    },
    Metric {
        name: DRIVER_API_CALLS,
        kind: Kind::Counter,
        labels: &["driver", "outcome"],
        meaning: "Calls of a driver's own API that this conductor made or refused",
    },
    Metric {
        name: DRIVER_API_SECONDS,
        kind: Kind::Seconds,
        labels: &["driver"],
        meaning: "Time a call of a driver's own API took",
    },
    Metric {
        name: DATABASE_CONNECTIONS,
        kind: Kind::Gauge,
        labels: &["state"],
        meaning: "Database connections of this process: open, in_use",
    },
];

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
    metric::describe(ALL);
}
