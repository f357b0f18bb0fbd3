//! A cluster, in its short form for lists and its long form.
//!
//! Node counts and addresses are sums over the cluster's node groups. Labels are compared with the template as
//! it is now; a template that cannot be read any more leaves the comparison empty instead of hiding the cluster.

use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, HealthStatus, NodeCounts, NodeGroup};
use serde_json::{Value, json};

use super::attribute::{Rendered, Shown, View, attributes};
use super::links;
use crate::microversion::Version;
use crate::validation::cluster::{HEALTH_STATUSES, STATUSES};
use crate::validation::labels::{self, Difference};

/// What the long forms are made of.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct ClusterParts<'a> {
    pub cluster: &'a Cluster,
    pub node_groups: &'a [NodeGroup],
    pub template: Option<&'a ClusterTemplate>,
}

/// The form in lists.
pub const BRIEF: View = 1;
/// The form in lists with details.
pub const LONG: View = 2;
/// A single cluster.
pub const SINGLE: View = 4;
const BOTH: View = LONG | SINGLE;

/// What a row of the table reads.
#[derive(Debug)]
pub struct ClusterSource<'a> {
    parts: ClusterParts<'a>,
    nodes: NodeCounts,
    base: &'a str,
    labels: Difference,
}

/// A cluster as it is shown.
#[derive(Debug)]
pub struct ClusterView;

impl Shown for ClusterView {
    type Source<'a> = ClusterSource<'a>;
    attributes! { Self, seen;
        "uuid": Uuid => &seen.parts.cluster.uuid;
        "name" or null: Text => &seen.parts.cluster.name;
        "cluster_template_id": Text => &seen.parts.cluster.cluster_template_id;
        "keypair" or null: Text => &seen.parts.cluster.keypair;
        "node_count": Integer => &seen.nodes.workers;
        "master_count": Integer => &seen.nodes.masters;
        "docker_volume_size" or null: Integer => &seen.parts.cluster.docker_volume_size;
        "labels": Strings => &seen.parts.cluster.labels;
        "master_flavor_id" or null: Text => &seen.parts.cluster.master_flavor_id;
        "flavor_id" or null: Text => &seen.parts.cluster.flavor_id;
        "create_timeout" or null: Integer => &seen.parts.cluster.create_timeout;
        "links": Links => links::pair(seen.base, format!("clusters/{}", seen.parts.cluster.uuid));
        "cluster_id" or null: Text, since Version::CLUSTER_ID => &seen.parts.cluster.stack_id;
        "stack_id" or null: Text, until Version::CLUSTER_ID => &seen.parts.cluster.stack_id;
        "status" or null: Choice(STATUSES) => seen.parts.cluster.status.map(ClusterStatus::as_str);
        "status_reason" or null: Text, in BOTH => &seen.parts.cluster.status_reason;
        "health_status" or null: Choice(HEALTH_STATUSES) => seen.parts.cluster.health_status.map(HealthStatus::as_str);
        "health_status_reason": Strings, in BOTH => &seen.parts.cluster.health_status_reason;
        "discovery_url" or null: Text, in BOTH => &seen.parts.cluster.discovery_url;
        "api_address" or null: Text, in BOTH => &seen.parts.cluster.api_address;
        "coe_version" or null: Text, in BOTH => &seen.parts.cluster.coe_version;
        "container_version" or null: Text, in BOTH => &seen.parts.cluster.container_version;
        "project_id" or null: Text, in BOTH => &seen.parts.cluster.project_id;
        "user_id" or null: Text, in BOTH => &seen.parts.cluster.user_id;
        "node_addresses": Texts, in BOTH => addresses(seen.parts.node_groups, false);
        "master_addresses": Texts, in BOTH => addresses(seen.parts.node_groups, true);
        "faults": Reasons, in SINGLE, maybe SINGLE => faults(seen.parts);
        "fixed_network" or null: Text, in BOTH => &seen.parts.cluster.fixed_network;
        "fixed_subnet" or null: Text, in BOTH => &seen.parts.cluster.fixed_subnet;
        "floating_ip_enabled" or null: Boolean, in BOTH => &seen.parts.cluster.floating_ip_enabled;
        // A default that Magnum lets through; clients have got used to it.
        "merge_labels": Boolean => &false;
        "labels_overridden": Strings, in BOTH => &seen.labels.overridden;
        "labels_added": Strings, in BOTH => &seen.labels.added;
        "labels_skipped": Strings, in BOTH => &seen.labels.skipped;
        "master_lb_enabled" or null: Boolean, in BOTH => &seen.parts.cluster.master_lb_enabled;
        "created_at" or null: Time, in BOTH => &seen.parts.cluster.created_at;
        "updated_at" or null: Time, in BOTH => &seen.parts.cluster.updated_at;
    }
}

/// The short form.
pub fn brief<'a>(
    cluster: &'a Cluster,
    nodes: NodeCounts,
    base: &'a str,
    version: Version,
) -> Rendered<'a, ClusterView> {
    let seen = ClusterSource {
        parts: ClusterParts {
            cluster,
            node_groups: &[],
            template: None,
        },
        nodes,
        base,
        labels: Difference::default(),
    };
    Rendered::new(seen, BRIEF, version)
}

/// A long form: `view` is [`LONG`], or [`SINGLE`], which tells what went wrong, by node group.
pub fn full<'a>(
    parts: ClusterParts<'a>,
    base: &'a str,
    view: View,
    version: Version,
) -> Rendered<'a, ClusterView> {
    let difference = |template: &ClusterTemplate| labels::difference(&parts.cluster.labels, &template.labels);
    let seen = ClusterSource {
        parts,
        nodes: NodeCounts::of(parts.node_groups),
        base,
        labels: parts.template.map(difference).unwrap_or_default(),
    };
    Rendered::new(seen, view, version)
}

fn addresses(node_groups: &[NodeGroup], masters: bool) -> Vec<&str> {
    node_groups
        .iter()
        .filter(|group| group.is_master() == masters)
        .flat_map(|group| group.node_addresses.iter().map(String::as_str))
        .collect()
}

/// Only where something failed.
fn faults(parts: ClusterParts<'_>) -> Option<Value> {
    if !parts.cluster.status.is_some_and(ClusterStatus::is_failed) {
        return None;
    }
    let failed = parts
        .node_groups
        .iter()
        .filter(|group| group.status.is_some_and(ClusterStatus::is_failed))
        .map(|group| (group.name.clone(), json!(group.status_reason)));
    Some(Value::Object(failed.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(view: &Rendered<'_, ClusterView>) -> Value {
        serde_json::to_value(view).unwrap()
    }

    fn sample() -> (Cluster, Vec<NodeGroup>) {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.stack_id = Some("s".into());
        cluster.status = Some(ClusterStatus::CreateFailed);
        let group = |name: &str, role: &str, count, address: &str| {
            let mut group = NodeGroup::new(name.into(), name, "c".into(), "p", role);
            group.node_count = count;
            group.node_addresses = vec![address.to_owned()];
            group
        };
        let mut groups = vec![
            group("default-master", "master", 3, "m"),
            group("default-worker", "worker", 2, "w"),
            group("gpu", "gpu", 1, "g"),
        ];
        groups[2].status = Some(ClusterStatus::CreateFailed);
        groups[2].status_reason = Some("no cards".into());
        (cluster, groups)
    }

    #[test]
    fn counts_and_addresses_are_sums_over_the_groups() {
        let (cluster, node_groups) = sample();
        let parts = ClusterParts {
            cluster: &cluster,
            node_groups: &node_groups,
            template: None,
        };
        let view = shown(&full(parts, "http://h", SINGLE, Version::MAX));
        assert_eq!(
            (view["node_count"].clone(), view["master_count"].clone()),
            (json!(3), json!(3))
        );
        assert_eq!(view["node_addresses"], json!(["w", "g"]));
        assert_eq!(view["faults"], json!({"gpu": "no cards"}));
        assert_eq!(shown(&full(parts, "", LONG, Version::MAX)).get("faults"), None);
    }

    #[test]
    fn the_stack_has_another_name_from_1_13_on() {
        let (cluster, node_groups) = sample();
        let nodes = NodeCounts::of(&node_groups);
        let old = shown(&brief(&cluster, nodes, "", Version::ZERO_NODES));
        assert_eq!(
            (old["stack_id"].clone(), old.get("cluster_id")),
            (json!("s"), None)
        );
        let new = shown(&brief(&cluster, nodes, "", Version::CLUSTER_ID));
        assert_eq!(
            (new["cluster_id"].clone(), new.get("stack_id")),
            (json!("s"), None)
        );
    }

    #[test]
    fn a_cluster_without_node_groups_is_shown_with_zeroes() {
        let (cluster, _) = sample();
        let view = shown(&brief(&cluster, NodeCounts::default(), "", Version::MIN));
        assert_eq!(view["master_count"], 0);
    }
}
