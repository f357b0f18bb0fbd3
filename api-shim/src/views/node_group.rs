//! A node group: its short form for lists, its long form, and what a create request is answered with.
//!
//! Labels are compared with those of the cluster as it is now.

use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use serde_json::{Map, Value, json};

use super::{links, time};
use crate::microversion::Version;
use crate::validation::labels::{self, Difference};
use crate::validation::node_group::create::NewNodeGroup;

/// The short form.
pub fn brief(group: &NodeGroup) -> Value {
    json!({
        "uuid": group.uuid,
        "name": group.name,
        "flavor_id": group.flavor_id,
        "image_id": group.image_id,
        "node_count": group.node_count,
        "role": group.role,
        "min_node_count": group.min_node_count,
        "max_node_count": group.max_node_count,
        "is_default": group.is_default,
        "stack_id": group.stack_id,
        "status": group.status.map(ClusterStatus::as_str),
        "merge_labels": false,
    })
}

/// The long form, as a client of `version` sees it.
pub fn full(group: &NodeGroup, cluster: &Cluster, base: &str, version: Version) -> Value {
    let mut view = Map::from_iter([("id".to_owned(), json!(group.id))]);
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    set("uuid", json!(group.uuid));
    set("name", json!(group.name));
    set("cluster_id", json!(group.cluster_id));
    set("project_id", json!(group.project_id));
    set("docker_volume_size", json!(group.docker_volume_size));
    set("labels", json!(group.labels));
    set("links", pair(group, base));
    set("flavor_id", json!(group.flavor_id));
    set("image_id", json!(group.image_id));
    set("node_addresses", json!(group.node_addresses));
    set("node_count", json!(group.node_count));
    set("role", json!(group.role));
    set("min_node_count", json!(group.min_node_count));
    set("max_node_count", json!(group.max_node_count));
    set("is_default", json!(group.is_default));
    set("stack_id", json!(group.stack_id));
    set("status", json!(group.status.map(ClusterStatus::as_str)));
    set("status_reason", json!(group.status_reason));
    set("version", json!(group.version));
    differences(group, cluster, &mut set);
    if version >= Version::NODE_LABELS {
        set("node_labels", json!(group.node_labels));
        set("node_taints", json!(group.node_taints));
    }
    set("created_at", time(group.created_at));
    set("updated_at", time(group.updated_at));
    Value::Object(view)
}

/// A group that was asked for: what it will be, without what only its row can tell.
pub fn created(new: &NewNodeGroup, cluster: &Cluster, base: &str) -> Value {
    let group = &new.group;
    let mut view = Map::new();
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    set("uuid", json!(group.uuid));
    set("name", json!(group.name));
    set("cluster_id", json!(group.cluster_id));
    set("project_id", json!(group.project_id));
    set("labels", json!(group.labels));
    set("links", pair(group, base));
    set("flavor_id", json!(group.flavor_id));
    set("image_id", json!(group.image_id));
    set("node_count", json!(group.node_count));
    set("role", json!(group.role));
    set("min_node_count", json!(group.min_node_count));
    set("max_node_count", json!(group.max_node_count));
    differences(group, cluster, &mut set);
    for (name, value) in [
        ("docker_volume_size", json!(group.docker_volume_size)),
        ("node_labels", json!(group.node_labels)),
        ("node_taints", json!(group.node_taints)),
    ] {
        if new.nulls.contains(&name) {
            set(name, Value::Null);
        } else if new.sent.contains(&name) {
            set(name, value);
        }
    }
    Value::Object(view)
}

fn pair(group: &NodeGroup, base: &str) -> Value {
    links::pair(
        base,
        &format!("clusters/{}/nodegroups/{}", group.cluster_id, group.uuid),
    )
}

fn differences(group: &NodeGroup, cluster: &Cluster, set: &mut impl FnMut(&str, Value)) {
    let Difference {
        overridden,
        added,
        skipped,
    } = labels::difference(&group.labels, &cluster.labels);
    // A default that Magnum lets through; clients have got used to it.
    set("merge_labels", json!(false));
    set("labels_overridden", json!(overridden));
    set("labels_added", json!(added));
    set("labels_skipped", json!(skipped));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_taints_are_shown_from_their_version_on() {
        let cluster = Cluster::new("c".into(), "t".into());
        let group = NodeGroup::new("g".into(), "pool", "c".into(), "p", "worker");
        let view = full(&group, &cluster, "", Version::NODE_LABELS);
        assert_eq!(
            (&view["node_labels"], &view["node_taints"]),
            (&json!({}), &json!([]))
        );
        let view = full(&group, &cluster, "", Version::CLUSTER_ID);
        assert_eq!((view.get("node_labels"), view.get("node_taints")), (None, None));
    }
}
