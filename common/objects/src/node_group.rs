//! The `NodeGroup` object.

use serde_json::Value;

use magnum_common::error::Fault;
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::NodeGroup;

use super::convert::{Received, wanted, wire_model};
use super::tables::NODE_GROUP;

/// A node group that arrived.
pub type NodeGroupObject = Received<NodeGroup>;

wire_model!(
    NodeGroup,
    NODE_GROUP,
    |object| {
        let uuid = object.text("uuid").map_or_else(NodeGroupUuid::random, NodeGroupUuid::from);
        Ok(NodeGroup::new(
            uuid,
            wanted(object, "name")?,
            wanted(object, "cluster_id")?.into(),
            wanted(object, "project_id")?,
            // Magnum's column has no default; its API always sends a role.
            object.text("role").unwrap_or("worker"),
        ))
    },
    [id uuid name cluster_id project_id docker_volume_size labels flavor_id image_id node_addresses node_count
     role max_node_count min_node_count is_default stack_id status status_reason version node_labels
     node_taints created_at updated_at]
);

impl Received<NodeGroup> {
    /// The group's uuid.
    ///
    /// # Errors
    /// `ValueError` when it is not set.
    pub fn uuid(&self) -> Result<NodeGroupUuid, Fault> {
        wanted(self.object(), "uuid").map(NodeGroupUuid::from)
    }
}

/// A node group as a row that was just read: all fields set, nothing changed.
pub fn encode(group: &NodeGroup) -> Value {
    super::encode(group)
}

/// Reads a node group from a message.
///
/// # Errors
/// As [`super::VersionedObject::decode`].
pub fn decode(value: &Value) -> Result<NodeGroupObject, Fault> {
    Received::decode(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_group_survives_the_wire() {
        let mut group = NodeGroup::new("n-1".into(), "extra", "c-1".into(), "p-1", "worker");
        group.node_taints = vec![json!({"key": "a", "effect": "NoSchedule"})];
        group.node_labels.insert("zone".into(), "a".into());
        group.node_addresses = vec!["10.0.0.1".into()];
        let read = decode(&encode(&group)).unwrap().model().unwrap();
        assert_eq!(read, group);
    }

    #[test]
    fn nulls_read_as_the_defaults_of_the_class() {
        let mut sent = encode(&NodeGroup::new("n-1".into(), "w", "c-1".into(), "p-1", "worker"));
        for field in [
            "node_count",
            "min_node_count",
            "is_default",
            "labels",
            "node_addresses",
        ] {
            sent["magnum_object.data"][field] = Value::Null;
        }
        let read = decode(&sent).unwrap().model().unwrap();
        assert_eq!(
            (read.node_count, read.min_node_count, read.is_default),
            (1, 0, false)
        );
        assert!(read.labels.is_empty() && read.node_addresses.is_empty());
    }

    #[test]
    fn a_group_without_a_cluster_is_refused_by_name() {
        let mut sent = encode(&NodeGroup::new("n-1".into(), "w", "c-1".into(), "p-1", "worker"));
        sent["magnum_object.data"]
            .as_object_mut()
            .unwrap()
            .remove("cluster_id");
        let fault = decode(&sent).unwrap().model().unwrap_err();
        assert_eq!(fault.message, "Field `cluster_id' of NodeGroup is not set");
    }
}
