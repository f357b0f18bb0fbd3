//! What a driver is asked to do.

use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{ClusterTemplate, RebootType};

/// What a driver is asked to do. The cluster and its node groups say how it shall be afterwards.
#[derive(Debug, Clone, Copy)]
pub enum Task<'a> {
    /// Build the cluster.
    Create,
    /// Bring the cluster to its node counts.
    Update {
        /// Whether what was there shall come back if that fails.
        rollback: bool,
    },
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
    /// Build nodes anew, each in the place of the old one.
    Rebuild(Nodes<'a>),
    /// Restart nodes.
    Reboot {
        /// How.
        how: RebootType,
        /// Which.
        nodes: Nodes<'a>,
    },
}

/// Which nodes of a cluster are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nodes<'a> {
    /// Those of this group; `None` means those of every group.
    pub node_group: Option<&'a NodeGroupUuid>,
    /// Of those the ones with these names, as the cloud names them; none means all. A name that no node has is a
    /// permanent failure, before any node is touched.
    pub names: &'a [String],
}

impl<'a> Task<'a> {
    /// The word in requests to programs, in their environment and in logs.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update { .. } => "update",
            Self::Delete => "delete",
            Self::Resize { .. } => "resize",
            Self::Upgrade { .. } => "upgrade",
            Self::CreateNodeGroup(_) => "create_nodegroup",
            Self::UpdateNodeGroup(_) => "update_nodegroup",
            Self::DeleteNodeGroup(_) => "delete_nodegroup",
            Self::RotateCa => "rotate_ca",
            Self::RotateCredential => "rotate_credential",
            Self::Rebuild(_) => "rebuild",
            Self::Reboot { .. } => "reboot",
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
            Self::Rebuild(nodes) | Self::Reboot { nodes, .. } => nodes.node_group,
            Self::Create | Self::Update { .. } | Self::Delete | Self::RotateCa | Self::RotateCredential => {
                None
            }
        }
    }
}
