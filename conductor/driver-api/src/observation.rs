//! Looking at clusters: which, and what a driver saw of each.

use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::{Cluster, ClusterTemplate, HealthStatus, NodeGroup, StringMap};

use crate::{DriverError, DriverReport, SharedObjects};

/// One cluster to look at.
#[derive(Debug, Clone)]
pub struct ClusterRef {
    /// The cluster, as its row is.
    pub cluster: Cluster,
    /// Its node groups.
    pub node_groups: Vec<NodeGroup>,
    /// Its template.
    pub template: ClusterTemplate,
    /// The operation that waits for the outcome, if one of ours does.
    pub operation: Option<OperationId>,
    /// Its rows, for a driver that reads and writes them itself.
    pub objects: SharedObjects,
}

/// What a driver saw of one cluster, or why it could not look.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// What changed. An error leaves the cluster as it is, to be looked at again later.
    pub result: Result<DriverReport, DriverError>,
}

/// How healthy a driver found one cluster, or why it could not look.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthObservation {
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// What was found. An error says nothing about the cluster: its health is unknown.
    pub result: Result<HealthReport, DriverError>,
}

/// How healthy a cluster is.
#[derive(Debug, Clone, PartialEq)]
pub struct HealthReport {
    /// HEALTHY, UNHEALTHY or UNKNOWN.
    pub status: HealthStatus,
    /// Why, by component, with the keys that Magnum's own monitors use: `api` → `ok`, `node-0.Ready` → `True`.
    pub reasons: StringMap,
}
