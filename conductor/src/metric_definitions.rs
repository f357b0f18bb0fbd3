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
/// Operations that this conductor left to others.
pub const OPERATIONS_NOT_HERE: &str = "magnum_operations_not_here_total";
/// Requests that cannot be recorded now, while others can.
pub const REQUESTS_HELD_BACK: &str = "magnum_requests_held_back";
/// Messages that no holder of the key has signed, by `outcome`.
pub const MESSAGES_UNSIGNED: &str = "magnum_messages_unsigned_total";
/// Moves of operations after a run, by `state`.
pub const OPERATIONS_SETTLED: &str = "magnum_operations_settled_total";
/// Ended operations removed from the journal.
pub const OPERATIONS_PURGED: &str = "magnum_operations_purged_total";
/// Loaded drivers.
pub const DRIVERS_LOADED: &str = "magnum_drivers_loaded";
/// Driver folders that could not be loaded.
pub const DRIVERS_FAILED: &str = "magnum_drivers_failed";
/// Things that an operator has to see to before a driver can do its work, by `driver`.
pub const DRIVER_LACKS: &str = "magnum_driver_lacks";
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
/// Clusters of which a driver was asked what they use, by `outcome`.
pub const UTILISATION_POLLED: &str = "magnum_utilisation_polls_total";
/// Duration of a driver's answer about what one group of clusters uses, by `driver`.
pub const UTILISATION_SECONDS: &str = "magnum_utilisation_seconds";
/// What a cluster uses, by `cluster`; in the order of `Utilisation::NAMES` of the driver interface. Not recorded like
/// the others but written when they are scraped: they go with their cluster.
pub const CLUSTER_USES: [&str; 6] = [
    "magnum_cluster_cpu_percent",
    "magnum_cluster_cpu_used_cores",
    "magnum_cluster_cpu_total_cores",
    "magnum_cluster_memory_percent",
    "magnum_cluster_memory_used_bytes",
    "magnum_cluster_memory_total_bytes",
];
/// What a node group uses, by `cluster` and `node_group`; likewise.
pub const NODE_GROUP_USES: [&str; 6] = [
    "magnum_node_group_cpu_percent",
    "magnum_node_group_cpu_used_cores",
    "magnum_node_group_cpu_total_cores",
    "magnum_node_group_memory_percent",
    "magnum_node_group_memory_used_bytes",
    "magnum_node_group_memory_total_bytes",
];
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
        name: OPERATIONS_NOT_HERE,
        kind: Kind::Counter,
        labels: &[],
        meaning: "Times that this conductor left an operation to others: it cannot run the driver, or has not the version",
    },
    Metric {
        name: REQUESTS_HELD_BACK,
        kind: Kind::Gauge,
        labels: &[],
        meaning: "Requests that this conductor cannot record now, while it records others: a row of theirs is locked, for example",
    },
    Metric {
        name: MESSAGES_UNSIGNED,
        kind: Kind::Counter,
        labels: &["outcome"],
        meaning: "Messages that no holder of the key of [conductor] message_key_file has signed, where messages are signed",
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
        name: DRIVER_LACKS,
        kind: Kind::Gauge,
        labels: &["driver"],
        meaning: "Things that a driver lacks at this conductor, such as permissions in a management cluster; the log names them",
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
        name: UTILISATION_POLLED,
        kind: Kind::Counter,
        labels: &["outcome"],
        meaning: "Clusters of which this conductor asked a driver what they use",
    },
    Metric {
        name: UTILISATION_SECONDS,
        kind: Kind::Seconds,
        labels: &["driver"],
        meaning: "Time a driver took to tell what a group of clusters uses",
    },
    Metric {
        name: CLUSTER_USES[0],
        kind: Kind::Gauge,
        labels: &["cluster"],
        meaning: "Share of a cluster's processors in use, 0 to 100",
    },
    Metric {
        name: CLUSTER_USES[1],
        kind: Kind::Gauge,
        labels: &["cluster"],
        meaning: "Processors of a cluster in use, in cores",
    },
    Metric {
        name: CLUSTER_USES[2],
        kind: Kind::Gauge,
        labels: &["cluster"],
        meaning: "Processors of a cluster, in cores",
    },
    Metric {
        name: CLUSTER_USES[3],
        kind: Kind::Gauge,
        labels: &["cluster"],
        meaning: "Share of a cluster's memory in use, 0 to 100",
    },
    Metric {
        name: CLUSTER_USES[4],
        kind: Kind::Gauge,
        labels: &["cluster"],
        meaning: "Memory of a cluster in use, in bytes",
    },
    Metric {
        name: CLUSTER_USES[5],
        kind: Kind::Gauge,
        labels: &["cluster"],
        meaning: "Memory of a cluster, in bytes",
    },
    Metric {
        name: NODE_GROUP_USES[0],
        kind: Kind::Gauge,
        labels: &["cluster", "node_group"],
        meaning: "Share of a node group's processors in use, 0 to 100",
    },
    Metric {
        name: NODE_GROUP_USES[1],
        kind: Kind::Gauge,
        labels: &["cluster", "node_group"],
        meaning: "Processors of a node group in use, in cores",
    },
    Metric {
        name: NODE_GROUP_USES[2],
        kind: Kind::Gauge,
        labels: &["cluster", "node_group"],
        meaning: "Processors of a node group, in cores",
    },
    Metric {
        name: NODE_GROUP_USES[3],
        kind: Kind::Gauge,
        labels: &["cluster", "node_group"],
        meaning: "Share of a node group's memory in use, 0 to 100",
    },
    Metric {
        name: NODE_GROUP_USES[4],
        kind: Kind::Gauge,
        labels: &["cluster", "node_group"],
        meaning: "Memory of a node group in use, in bytes",
    },
    Metric {
        name: NODE_GROUP_USES[5],
        kind: Kind::Gauge,
        labels: &["cluster", "node_group"],
        meaning: "Memory of a node group, in bytes",
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
