//! What comes out of a driver: the fields to change.

use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Cluster, ClusterStatus, HealthStatus, NodeGroup, StringMap};

/// The fields to change after a call. An empty report of a create, update or delete means "done".
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DriverReport {
    /// Of the cluster.
    pub cluster: ClusterChanges,
    /// Of its node groups; groups that are not named stay as they are.
    pub node_groups: Vec<NodeGroupChanges>,
}

/// Fields of a cluster that a driver may set; `None` leaves a field as it is.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the cluster's fields")]
pub struct ClusterChanges {
    /// `*_IN_PROGRESS` tells that the work goes on in the cloud and has to be observed.
    pub status: Option<ClusterStatus>,
    pub status_reason: Option<String>,
    pub stack_id: Option<String>,
    pub user_id: Option<String>,
    pub api_address: Option<String>,
    pub coe_version: Option<String>,
    pub container_version: Option<String>,
    pub discovery_url: Option<String>,
    pub health_status: Option<HealthStatus>,
    pub health_status_reason: Option<StringMap>,
}

/// Fields of a node group that a driver may set; `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are those of the node group's fields")]
pub struct NodeGroupChanges {
    pub uuid: NodeGroupUuid,
    pub status: Option<ClusterStatus>,
    pub status_reason: Option<String>,
    pub stack_id: Option<String>,
    pub node_count: Option<i32>,
    pub node_addresses: Option<Vec<String>>,
    pub version: Option<String>,
    pub image_id: Option<String>,
}

impl DriverReport {
    /// A report that only tells the cluster's status.
    pub fn status(status: ClusterStatus) -> Self {
        Self {
            cluster: ClusterChanges {
                status: Some(status),
                ..ClusterChanges::default()
            },
            node_groups: Vec::new(),
        }
    }
}

impl NodeGroupChanges {
    /// No change yet to the group `uuid`.
    pub fn of(uuid: NodeGroupUuid) -> Self {
        Self {
            uuid,
            status: None,
            status_reason: None,
            stack_id: None,
            node_count: None,
            node_addresses: None,
            version: None,
            image_id: None,
        }
    }

    /// Writes the changes onto `group`.
    pub fn apply(&self, group: &mut NodeGroup) {
        let changes = self.clone();
        group.status = changes.status.or(group.status);
        set(&mut group.status_reason, changes.status_reason);
        set(&mut group.stack_id, changes.stack_id);
        set(&mut group.version, changes.version);
        set(&mut group.image_id, changes.image_id);
        group.node_count = changes.node_count.unwrap_or(group.node_count);
        if let Some(addresses) = changes.node_addresses {
            group.node_addresses = addresses;
        }
    }
}

impl ClusterChanges {
    /// Writes the changes onto `cluster`, status included.
    pub fn apply(&self, cluster: &mut Cluster) {
        let changes = self.clone();
        cluster.status = changes.status.or(cluster.status);
        cluster.health_status = changes.health_status.or(cluster.health_status);
        set(&mut cluster.status_reason, changes.status_reason);
        set(&mut cluster.stack_id, changes.stack_id);
        set(&mut cluster.user_id, changes.user_id);
        set(&mut cluster.api_address, changes.api_address);
        set(&mut cluster.coe_version, changes.coe_version);
        set(&mut cluster.container_version, changes.container_version);
        set(&mut cluster.discovery_url, changes.discovery_url);
        if let Some(reasons) = changes.health_status_reason {
            cluster.health_status_reason = reasons;
        }
    }
}

fn set(field: &mut Option<String>, change: Option<String>) {
    if change.is_some() {
        *field = change;
    }
}
