//! A node group.

use serde_json::Value;

use crate::ids::{ClusterUuid, NodeGroupUuid};

use super::{ClusterStatus, StringMap, Timestamp};

/// A node group as Magnum's table holds it. NULL counts of old rows are read as the object's defaults
/// (`node_count` 1, `min_node_count` 0).
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's; db-schema documents them")]
pub struct NodeGroup {
    /// Row number; `None` until inserted.
    pub id: Option<i32>,
    pub uuid: NodeGroupUuid,
    pub name: String,
    pub cluster_id: ClusterUuid,
    pub project_id: String,
    /// Size in GB.
    pub docker_volume_size: Option<i32>,
    pub labels: StringMap,
    pub flavor_id: Option<String>,
    pub image_id: Option<String>,
    pub node_addresses: Vec<String>,
    pub node_count: i32,
    /// `master`, `worker`, or any text of the user's; see [`NodeGroup::is_master`].
    pub role: String,
    pub max_node_count: Option<i32>,
    pub min_node_count: i32,
    pub is_default: bool,
    pub stack_id: Option<String>,
    pub status: Option<ClusterStatus>,
    pub status_reason: Option<String>,
    pub version: Option<String>,
    pub node_labels: StringMap,
    /// Objects with `key`, `effect` and perhaps `value`.
    pub node_taints: Vec<Value>,
    pub created_at: Option<Timestamp>,
    pub updated_at: Option<Timestamp>,
}

/// The two roles of the default node groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Role {
    Master,
    Worker,
}

impl Role {
    /// The text in rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Worker => "worker",
        }
    }

    /// The name of the cluster's default group of this role.
    pub const fn default_group_name(self) -> &'static str {
        match self {
            Self::Master => "default-master",
            Self::Worker => "default-worker",
        }
    }
}

/// Nodes of a cluster: sums over its groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Of groups of role `master`.
    pub masters: i64,
    /// Number of nodes in all other groups.
    pub workers: i64,
}

impl NodeCounts {
    /// The node counts of these groups.
    pub fn of(groups: &[NodeGroup]) -> Self {
        let mut counts = Self::default();
        for group in groups {
            counts.add(group.is_master(), group.node_count);
        }
        counts
    }

    /// With one group more.
    pub fn add(&mut self, is_master: bool, nodes: i32) {
        if is_master {
            self.masters += i64::from(nodes);
        } else {
            self.workers += i64::from(nodes);
        }
    }
}

impl NodeGroup {
    /// What a count that is NULL in an old row stands for.
    pub const DEFAULT_NODE_COUNT: i32 = 1;

    /// A new group of `cluster_id` with everything else unset.
    pub fn new(
        uuid: NodeGroupUuid,
        name: &str,
        cluster_id: ClusterUuid,
        project_id: &str,
        role: &str,
    ) -> Self {
        Self {
            id: None,
            uuid,
            name: name.to_owned(),
            cluster_id,
            project_id: project_id.to_owned(),
            docker_volume_size: None,
            labels: StringMap::new(),
            flavor_id: None,
            image_id: None,
            node_addresses: Vec::new(),
            node_count: Self::DEFAULT_NODE_COUNT,
            role: role.to_owned(),
            max_node_count: None,
            min_node_count: 0,
            is_default: false,
            stack_id: None,
            status: None,
            status_reason: None,
            version: None,
            node_labels: StringMap::new(),
            node_taints: Vec::new(),
            created_at: None,
            updated_at: None,
        }
    }

    /// Whether the group's nodes run the control plane.
    pub fn is_master(&self) -> bool {
        self.role == Role::Master.as_str()
    }
}
