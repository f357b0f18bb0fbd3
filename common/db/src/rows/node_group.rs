//! Rows of `nodegroup`.

use super::json::{Place, string_list, string_map, to_text, value_list};
use super::{FreeText, RowTime, lenient, row, time};
use crate::error::DbError;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::{NodeGroup, Role};

row! {
    /// A node group's row.
    NodeGroupRow, NodeGroupChanges, nodegroup {
        uuid: String,
        name: String,
        cluster_id: String,
        project_id: String,
        docker_volume_size: i32,
        labels: String,
        flavor_id: String,
        image_id: String,
        node_addresses: String,
        node_count: i32,
        role: String,
        max_node_count: i32,
        min_node_count: i32,
        is_default: bool,
        stack_id: String,
        status: String,
        status_reason: FreeText,
        version: String,
        node_labels: String,
        node_taints: String,
    }
}

const TABLE: &str = "nodegroup";

impl TryFrom<NodeGroupRow> for NodeGroup {
    type Error = DbError;

    fn try_from(row: NodeGroupRow) -> Result<Self, DbError> {
        let uuid = Place::uuid(TABLE, row.id, row.uuid.clone())?;
        let place = |column| Place {
            table: TABLE,
            column,
            row: &uuid,
        };
        Ok(Self {
            id: Some(row.id),
            uuid: NodeGroupUuid::new(uuid.clone()),
            name: row.name.unwrap_or_default(),
            cluster_id: ClusterUuid::new(row.cluster_id.unwrap_or_default()),
            project_id: row.project_id.unwrap_or_default(),
            docker_volume_size: row.docker_volume_size,
            labels: string_map(row.labels.as_deref(), place("labels"))?,
            flavor_id: row.flavor_id,
            image_id: row.image_id,
            node_addresses: string_list(row.node_addresses.as_deref(), place("node_addresses"))?,
            node_count: row.node_count.unwrap_or(Self::DEFAULT_NODE_COUNT),
            role: row.role.unwrap_or_else(|| Role::Worker.as_str().to_owned()),
            max_node_count: row.max_node_count,
            min_node_count: row.min_node_count.unwrap_or(0),
            is_default: row.is_default.unwrap_or(false),
            stack_id: row.stack_id,
            status: lenient(row.status, TABLE, &uuid),
            status_reason: row.status_reason.map(|text| text.0),
            version: row.version,
            node_labels: string_map(row.node_labels.as_deref(), place("node_labels"))?,
            node_taints: value_list(row.node_taints.as_deref(), place("node_taints"))?,
            created_at: time(row.created_at),
            updated_at: time(row.updated_at),
        })
    }
}

impl From<&NodeGroup> for NodeGroupRow {
    /// The row to insert: `created_at` is now unless it is set, the number is the database's to give.
    fn from(m: &NodeGroup) -> Self {
        Self {
            id: m.id.unwrap_or_default(),
            uuid: Some(m.uuid.to_string()),
            name: Some(m.name.clone()),
            cluster_id: Some(m.cluster_id.to_string()),
            project_id: Some(m.project_id.clone()),
            docker_volume_size: m.docker_volume_size,
            labels: Some(to_text(&m.labels)),
            flavor_id: m.flavor_id.clone(),
            image_id: m.image_id.clone(),
            node_addresses: Some(to_text(&m.node_addresses)),
            node_count: Some(m.node_count),
            role: Some(m.role.clone()),
            max_node_count: m.max_node_count,
            min_node_count: Some(m.min_node_count),
            is_default: Some(m.is_default),
            stack_id: m.stack_id.clone(),
            status: m.status.map(|s| s.to_string()),
            status_reason: m.status_reason.clone().map(FreeText),
            version: m.version.clone(),
            node_labels: Some(to_text(&m.node_labels)),
            node_taints: Some(to_text(&m.node_taints)),
            created_at: Some(m.created_at.map_or_else(RowTime::now, RowTime)),
            updated_at: m.updated_at.map(RowTime),
        }
    }
}
