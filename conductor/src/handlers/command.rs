//! The commands that become operations, with valid arguments.

use magnum_common::ids::{ClusterUuid, NodeGroupUuid, TemplateUuid};
use magnum_common::model::{Cluster, HealthStatus, NodeGroup, StringMap};
use magnum_objects::node_group::NodeGroupObject;

use crate::workflows::{OperationKind, kinds};

/// A request that is recorded as an operation. Of the cluster in a message only the identity counts: everything
/// else is read from its row.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// `cluster_create`
    ClusterCreate(ClusterCreate),
    /// `cluster_update`
    ClusterUpdate(ClusterUpdate),
    /// `cluster_delete`
    ClusterDelete(ClusterUuid),
    /// `cluster_resize`
    ClusterResize(ClusterResize),
    /// `cluster_upgrade`
    ClusterUpgrade(ClusterUpgrade),
    /// `nodegroup_create`: the cluster, and what the sender set of the group.
    NodegroupCreate(ClusterUuid, Box<NodeGroup>),
    /// `nodegroup_update`: the cluster, and the group with its changes.
    NodegroupUpdate(ClusterUuid, NodeGroupUuid, Box<NodeGroupObject>),
    /// `nodegroup_delete`
    NodegroupDelete(ClusterUuid, NodeGroupUuid),
    /// `rotate_ca_certificate`
    RotateCaCertificate(ClusterUuid),
    /// `credential_rotate`
    CredentialRotate(ClusterUuid),
    /// `cluster_rebuild`
    ClusterRebuild(ClusterUuid, kinds::ClusterRebuild),
    /// `cluster_reboot`
    ClusterReboot(ClusterUuid, kinds::ClusterReboot),
}

/// Arguments of `cluster_create`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterCreate {
    /// The new cluster: what the sender set, and the object's defaults.
    pub cluster: Box<Cluster>,
    /// Nodes of the default master group.
    pub master_count: i32,
    /// Nodes of the default worker group.
    pub node_count: i32,
    /// Minutes.
    pub create_timeout: Option<i32>,
}

/// Arguments of `cluster_update`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterUpdate {
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// Nodes wanted in the default worker group; null leaves them.
    pub node_count: Option<i32>,
    /// Health that differs from what the sender saw at the cluster.
    pub health: Option<ReportedHealth>,
    /// Kept for the record; no driver uses it.
    pub rollback: bool,
}

/// The health of a cluster as a monitor reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedHealth {
    /// Null: not known any more.
    pub status: Option<HealthStatus>,
    /// By what the monitor looks at, such as `api` or a node's condition.
    pub reasons: StringMap,
}

/// Arguments of `cluster_resize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterResize {
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// Which of its groups.
    pub node_group: NodeGroupUuid,
    /// Nodes wanted.
    pub node_count: i32,
    /// Servers to be removed rather than others.
    pub nodes_to_remove: Vec<String>,
}

/// Arguments of `cluster_upgrade`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterUpgrade {
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// To which template.
    pub template: TemplateUuid,
    /// Which group first.
    pub node_group: NodeGroupUuid,
    /// Nodes replaced at once.
    pub max_batch_size: Option<i32>,
    /// Kept for the record; no driver uses it.
    pub rollback: bool,
}

impl Command {
    /// The kind of operation it becomes.
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::ClusterCreate(_) => OperationKind::ClusterCreate,
            Self::ClusterUpdate(_) => OperationKind::ClusterUpdate,
            Self::ClusterDelete(_) => OperationKind::ClusterDelete,
            Self::ClusterResize(_) => OperationKind::ClusterResize,
            Self::ClusterUpgrade(_) => OperationKind::ClusterUpgrade,
            Self::NodegroupCreate(..) => OperationKind::NodegroupCreate,
            Self::NodegroupUpdate(..) => OperationKind::NodegroupUpdate,
            Self::NodegroupDelete(..) => OperationKind::NodegroupDelete,
            Self::RotateCaCertificate(_) => OperationKind::RotateCaCertificate,
            Self::CredentialRotate(_) => OperationKind::CredentialRotate,
            Self::ClusterRebuild(..) => OperationKind::ClusterRebuild,
            Self::ClusterReboot(..) => OperationKind::ClusterReboot,
        }
    }

    /// The cluster it is about.
    pub fn cluster(&self) -> &ClusterUuid {
        match self {
            Self::ClusterCreate(create) => &create.cluster.uuid,
            Self::ClusterUpdate(update) => &update.cluster,
            Self::ClusterResize(resize) => &resize.cluster,
            Self::ClusterUpgrade(upgrade) => &upgrade.cluster,
            Self::ClusterDelete(cluster)
            | Self::NodegroupCreate(cluster, _)
            | Self::NodegroupUpdate(cluster, ..)
            | Self::NodegroupDelete(cluster, _)
            | Self::RotateCaCertificate(cluster)
            | Self::CredentialRotate(cluster)
            | Self::ClusterRebuild(cluster, _)
            | Self::ClusterReboot(cluster, _) => cluster,
        }
    }

    /// Whether it makes its cluster.
    pub const fn creates_cluster(&self) -> bool {
        matches!(self, Self::ClusterCreate(_))
    }

    /// The node group that it makes.
    pub fn new_group(&self) -> Option<&NodeGroup> {
        match self {
            Self::NodegroupCreate(_, group) => Some(group),
            _ => None,
        }
    }

    /// Whether its plan needs the cluster's node groups.
    pub const fn needs_node_groups(&self) -> bool {
        !matches!(
            self,
            Self::ClusterCreate(_)
                | Self::ClusterDelete(_)
                | Self::RotateCaCertificate(_)
                | Self::CredentialRotate(_)
        )
    }

    /// The template it names, which has to exist.
    pub fn template(&self) -> Option<&TemplateUuid> {
        match self {
            Self::ClusterCreate(create) => Some(&create.cluster.cluster_template_id),
            Self::ClusterUpgrade(upgrade) => Some(&upgrade.template),
            _ => None,
        }
    }
}
