//! A node group: its short form for lists, its long form, and what a create request is answered with.
//!
//! Labels are compared with those of the cluster as it is now.

use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use serde_json::Value;

use super::attribute::{self, Shown, View, attributes};
use super::cell::Cell;
use super::links;
use crate::microversion::Version;
use crate::validation::cluster::STATUSES;
use crate::validation::labels::{self, Difference};
use crate::validation::node_group::create::NewNodeGroup;

/// The form in lists.
pub const BRIEF: View = 1;
/// A single group, and the answer to a patch.
pub const FULL: View = 2;
/// The answer to a create request: what the group will be, without what only its row can tell.
pub const CREATED: View = 4;
const BOTH: View = FULL | CREATED;

/// What a row of the table reads.
#[derive(Debug)]
pub struct NodeGroupSource<'a> {
    group: &'a NodeGroup,
    base: &'a str,
    labels: Difference,
    /// The request that the group is made by.
    new: Option<&'a NewNodeGroup>,
}

impl NodeGroupSource<'_> {
    /// In the answer to a create request only what was sent, as null where null was sent.
    fn if_sent<'c>(&self, name: &str, value: impl Into<Cell<'c>>) -> Option<Cell<'c>> {
        match self.new {
            None => Some(value.into()),
            Some(new) if new.nulls.contains(&name) => Some(Cell::Null),
            Some(new) => new.sent.contains(&name).then(|| value.into()),
        }
    }
}

/// A node group as it is shown.
#[derive(Debug)]
pub struct NodeGroupView;

impl Shown for NodeGroupView {
    type Source<'a> = NodeGroupSource<'a>;
    attributes! { Self, seen;
        "id" or null: Integer, in FULL => &seen.group.id;
        "uuid": Uuid => &seen.group.uuid;
        "name": Text => &seen.group.name;
        "cluster_id": Uuid, in BOTH => &seen.group.cluster_id;
        "project_id": Text, in BOTH => &seen.group.project_id;
        "docker_volume_size" or null: Integer, in BOTH, maybe CREATED
            => seen.if_sent("docker_volume_size", &seen.group.docker_volume_size);
        "labels": Strings, in BOTH => &seen.group.labels;
        "links": Links, in BOTH
            => links::pair(seen.base, format!("clusters/{}/nodegroups/{}", seen.group.cluster_id, seen.group.uuid));
        "flavor_id" or null: Text => &seen.group.flavor_id;
        "image_id" or null: Text => &seen.group.image_id;
        "node_addresses": Texts, in FULL => &seen.group.node_addresses;
        "node_count": Integer => &seen.group.node_count;
        "role": Text => &seen.group.role;
        "min_node_count": Integer => &seen.group.min_node_count;
        "max_node_count" or null: Integer => &seen.group.max_node_count;
        "is_default": Boolean, in BRIEF | FULL => &seen.group.is_default;
        "stack_id" or null: Text, in BRIEF | FULL => &seen.group.stack_id;
        "status" or null: Choice(STATUSES), in BRIEF | FULL => seen.group.status.map(ClusterStatus::as_str);
        "status_reason" or null: Text, in FULL => &seen.group.status_reason;
        "version" or null: Text, in FULL => &seen.group.version;
        // A default that Magnum lets through; clients have got used to it.
        "merge_labels": Boolean => &false;
        "labels_overridden": Strings, in BOTH => &seen.labels.overridden;
        "labels_added": Strings, in BOTH => &seen.labels.added;
        "labels_skipped": Strings, in BOTH => &seen.labels.skipped;
        "node_labels" or null: Strings, in BOTH, maybe CREATED, since Version::NODE_LABELS
            => seen.if_sent("node_labels", &seen.group.node_labels);
        "node_taints" or null: ListOfStrings, in BOTH, maybe CREATED, since Version::NODE_LABELS
            => seen.if_sent("node_taints", &seen.group.node_taints);
        "created_at" or null: Time, in FULL => &seen.group.created_at;
        "updated_at" or null: Time, in FULL => &seen.group.updated_at;
    }
}

/// The short form, the same in every version.
pub fn brief(group: &NodeGroup) -> Value {
    let seen = NodeGroupSource {
        group,
        base: "",
        labels: Difference::default(),
        new: None,
    };
    attribute::render::<NodeGroupView>(seen, BRIEF, Version::MAX)
}

/// The long form, as a client of `version` sees it.
pub fn full(group: &NodeGroup, cluster: &Cluster, base: &str, version: Version) -> Value {
    let seen = NodeGroupSource {
        group,
        base,
        labels: labels::difference(&group.labels, &cluster.labels),
        new: None,
    };
    attribute::render::<NodeGroupView>(seen, FULL, version)
}

/// A group that was asked for: what it will be, without what only its row can tell.
pub fn created(new: &NewNodeGroup, cluster: &Cluster, base: &str) -> Value {
    let seen = NodeGroupSource {
        group: &new.group,
        base,
        labels: labels::difference(&new.group.labels, &cluster.labels),
        new: Some(new),
    };
    // What came with a later version was not read, and so was not sent.
    attribute::render::<NodeGroupView>(seen, CREATED, Version::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
