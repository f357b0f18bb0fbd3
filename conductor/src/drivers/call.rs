//! What goes into a driver and what comes out: domain objects, never rows, leases or messages.

use magnum_common::context::RequestContext;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid, OperationId};
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, HealthStatus, NodeGroup, StringMap};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

use super::DriverError;

/// What a driver is asked to do. The cluster and its node groups say how it shall be afterwards.
#[derive(Debug, Clone, Copy)]
pub enum Task<'a> {
    /// Build the cluster.
    Create,
    /// Bring the cluster to its node counts.
    Update,
    /// Take the cluster away. One that is gone already is success.
    Delete,
    /// Bring one group to its node count.
    Resize {
        /// The group.
        node_group: &'a NodeGroupUuid,
        /// Servers to be removed rather than others, as the cloud names them.
        remove: &'a [String],
    },
    /// Go from the call's template to another one.
    Upgrade {
        /// The new template.
        to: &'a ClusterTemplate,
        /// The group to begin with.
        node_group: &'a NodeGroupUuid,
        /// Nodes replaced at once; `None` leaves it to the driver.
        max_batch_size: Option<i32>,
    },
    /// Build a node group.
    CreateNodeGroup(&'a NodeGroupUuid),
    /// Bring a node group to its bounds, labels and taints.
    UpdateNodeGroup(&'a NodeGroupUuid),
    /// Take a node group away. One that is gone already is success.
    DeleteNodeGroup(&'a NodeGroupUuid),
    /// Bring new certificates to the cluster: those that `call.cluster` refers to.
    RotateCa,
    /// Replace the credential that the cluster uses towards the cloud.
    RotateCredential,
}

impl<'a> Task<'a> {
    /// The word in requests to programs, in their environment and in logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Resize { .. } => "resize",
            Self::Upgrade { .. } => "upgrade",
            Self::CreateNodeGroup(_) => "create_nodegroup",
            Self::UpdateNodeGroup(_) => "update_nodegroup",
            Self::DeleteNodeGroup(_) => "delete_nodegroup",
            Self::RotateCa => "rotate_ca",
            Self::RotateCredential => "rotate_credential",
        }
    }

    /// The node group it is about, if it is about one.
    pub const fn node_group(&self) -> Option<&'a NodeGroupUuid> {
        match self {
            Self::Resize { node_group, .. }
            | Self::Upgrade { node_group, .. }
            | Self::CreateNodeGroup(node_group)
            | Self::UpdateNodeGroup(node_group)
            | Self::DeleteNodeGroup(node_group) => Some(node_group),
            Self::Create | Self::Update | Self::Delete | Self::RotateCa | Self::RotateCredential => None,
        }
    }
}

/// Everything a driver may know while it works for one operation.
#[derive(Clone)]
pub struct DriverCall<'a> {
    /// What to do.
    pub task: Task<'a>,
    /// The cluster as it shall become.
    pub cluster: &'a Cluster,
    /// Its node groups, with the counts wanted.
    pub node_groups: &'a [NodeGroup],
    /// The template it was made from.
    pub template: &'a ClusterTemplate,
    /// Who asked. Holds a token: hand it on only to what must act for the user.
    pub context: &'a RequestContext,
    /// The operation: the same for every attempt, so effects can be made idempotent by it.
    pub operation: &'a OperationId,
    /// Counts from 1.
    pub attempt: u32,
    /// How long the whole operation may still take (`create_timeout` and its like); `None` is without limit.
    pub time_left: Option<Duration>,
    /// Where to tell how far it got.
    pub progress: &'a dyn ProgressSink,
    /// When cancelled, the driver stops at once and returns [`DriverError::Cancelled`].
    pub cancel: CancellationToken,
}

/// How far a driver got, in words for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing.
    pub text: String,
    /// 0 to 100, when the driver can tell.
    pub percent: Option<u8>,
}

/// Takes progress. Must return at once: a slow sink would slow the driver.
pub trait ProgressSink: Send + Sync {
    /// Takes one report; a later one replaces an earlier one.
    fn report(&self, progress: Progress);
}

/// A sink for callers that do not care.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl ProgressSink for NoProgress {
    fn report(&self, _progress: Progress) {}
}

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
}

/// What a driver saw of one cluster, or why it could not look.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// What changed. An error leaves the cluster as it is, to be looked at again later.
    pub result: Result<DriverReport, DriverError>,
}

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
