//! How much of their processors and memory clusters use.

use magnum_common::ids::{ClusterUuid, NodeGroupUuid};

use crate::DriverError;

/// What a driver found one cluster to use, or why it could not look.
#[derive(Debug, Clone, PartialEq)]
pub struct UtilisationObservation {
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// What was found. An error says nothing about the cluster.
    pub result: Result<UtilisationReport, DriverError>,
}

/// What a cluster uses, and each of its node groups that the driver can tell of.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UtilisationReport {
    /// The cluster as a whole.
    pub cluster: Utilisation,
    /// Its node groups, each at most once.
    pub node_groups: Vec<GroupUtilisation>,
}

/// What one node group uses.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupUtilisation {
    /// Which one.
    pub uuid: NodeGroupUuid,
    /// The nodes of it together.
    pub used: Utilisation,
}

/// Processors and memory of some nodes together. A figure that the driver cannot tell is `None`; none of them is
/// negative.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Utilisation {
    /// Share of the processors in use, 0 to 100.
    pub cpu_percent: Option<f64>,
    /// Processors in use, in cores.
    pub cpu_used_cores: Option<f64>,
    /// Processors that there are, in cores.
    pub cpu_total_cores: Option<f64>,
    /// Share of the memory in use, 0 to 100.
    pub memory_percent: Option<f64>,
    /// Memory in use, in bytes.
    pub memory_used_bytes: Option<f64>,
    /// Memory that there is, in bytes.
    pub memory_total_bytes: Option<f64>,
}

impl Utilisation {
    /// Every figure with its name, in the order of [`Utilisation::NAMES`].
    pub fn figures(&self) -> [(&'static str, Option<f64>); 6] {
        let [cpu, cpu_used, cpu_total, memory, memory_used, memory_total] = Self::NAMES;
        [
            (cpu, self.cpu_percent),
            (cpu_used, self.cpu_used_cores),
            (cpu_total, self.cpu_total_cores),
            (memory, self.memory_percent),
            (memory_used, self.memory_used_bytes),
            (memory_total, self.memory_total_bytes),
        ]
    }

    /// The names of the figures, with their units.
    pub const NAMES: [&'static str; 6] = [
        "cpu_percent",
        "cpu_used_cores",
        "cpu_total_cores",
        "memory_percent",
        "memory_used_bytes",
        "memory_total_bytes",
    ];
}
