//! A cluster, in its short form for lists and its long form.
//!
//! Node counts and addresses are sums over the cluster's node groups. Labels are compared with the template as
//! it is now; a template that cannot be read any more leaves the comparison empty instead of hiding the cluster.

use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, HealthStatus, NodeGroup};
use serde_json::{Map, Value, json};

use super::{links, time};
use crate::microversion::Version;
use crate::validation::labels::{self, Difference};

/// What a view of a cluster is made of.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Parts<'a> {
    pub cluster: &'a Cluster,
    pub node_groups: &'a [NodeGroup],
    pub template: Option<&'a ClusterTemplate>,
}

/// The short form.
pub fn brief(parts: Parts<'_>, base: &str, version: Version) -> Value {
    let mut view = head(parts, base, version);
    view.insert(
        "health_status".into(),
        json!(parts.cluster.health_status.map(HealthStatus::as_str)),
    );
    // A default that Magnum lets through; clients have got used to it.
    view.insert("merge_labels".into(), json!(false));
    Value::Object(view)
}

/// The long form. `with_faults` is for a single cluster: what went wrong, by node group.
pub fn full(parts: Parts<'_>, base: &str, version: Version, with_faults: bool) -> Value {
    let Parts {
        cluster,
        node_groups,
        template,
    } = parts;
    let Difference {
        overridden,
        added,
        skipped,
    } = template
        .map(|template| labels::difference(&cluster.labels, &template.labels))
        .unwrap_or_default();
    let mut view = head(parts, base, version);
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    set("status_reason", json!(cluster.status_reason));
    set(
        "health_status",
        json!(cluster.health_status.map(HealthStatus::as_str)),
    );
    set("health_status_reason", json!(cluster.health_status_reason));
    set("discovery_url", json!(cluster.discovery_url));
    set("api_address", json!(cluster.api_address));
    set("coe_version", json!(cluster.coe_version));
    set("container_version", json!(cluster.container_version));
    set("project_id", json!(cluster.project_id));
    set("user_id", json!(cluster.user_id));
    set("node_addresses", addresses(node_groups, false));
    set("master_addresses", addresses(node_groups, true));
    if with_faults && cluster.status.is_some_and(ClusterStatus::is_failed) {
        set("faults", faults(node_groups));
    }
    set("fixed_network", json!(cluster.fixed_network));
    set("fixed_subnet", json!(cluster.fixed_subnet));
    set("floating_ip_enabled", json!(cluster.floating_ip_enabled));
    set("merge_labels", json!(false));
    set("labels_overridden", json!(overridden));
    set("labels_added", json!(added));
    set("labels_skipped", json!(skipped));
    set("master_lb_enabled", json!(cluster.master_lb_enabled));
    set("created_at", time(cluster.created_at));
    set("updated_at", time(cluster.updated_at));
    Value::Object(view)
}

/// What both forms begin with.
fn head(parts: Parts<'_>, base: &str, version: Version) -> Map<String, Value> {
    let Parts {
        cluster, node_groups, ..
    } = parts;
    let uuid = cluster.uuid.as_str();
    let mut view = Map::new();
    let mut set = |name: &str, value: Value| {
        view.insert(name.to_owned(), value);
    };
    set("uuid", json!(uuid));
    set("name", json!(cluster.name));
    set("cluster_template_id", json!(cluster.cluster_template_id));
    set("keypair", json!(cluster.keypair));
    set("node_count", json!(count(node_groups, false)));
    set("master_count", json!(count(node_groups, true)));
    set("docker_volume_size", json!(cluster.docker_volume_size));
    set("labels", json!(cluster.labels));
    set("master_flavor_id", json!(cluster.master_flavor_id));
    set("flavor_id", json!(cluster.flavor_id));
    set("create_timeout", json!(cluster.create_timeout));
    set("links", links::pair(base, &format!("clusters/{uuid}")));
    let stack = if version >= Version::CLUSTER_ID {
        "cluster_id"
    } else {
        "stack_id"
    };
    set(stack, json!(cluster.stack_id));
    set("status", json!(cluster.status.map(ClusterStatus::as_str)));
    view
}

fn count(node_groups: &[NodeGroup], masters: bool) -> i64 {
    node_groups
        .iter()
        .filter(|group| group.is_master() == masters)
        .map(|group| i64::from(group.node_count))
        .sum()
}

fn addresses(node_groups: &[NodeGroup], masters: bool) -> Value {
    node_groups
        .iter()
        .filter(|group| group.is_master() == masters)
        .flat_map(|group| group.node_addresses.iter().map(|address| json!(address)))
        .collect()
}

fn faults(node_groups: &[NodeGroup]) -> Value {
    let failed = node_groups
        .iter()
        .filter(|group| group.status.is_some_and(ClusterStatus::is_failed))
        .map(|group| (group.name.clone(), json!(group.status_reason)));
    Value::Object(failed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let parts = Parts {
            cluster: &cluster,
            node_groups: &node_groups,
            template: None,
        };
        let view = full(parts, "http://h", Version::MAX, true);
        assert_eq!(
            (view["node_count"].clone(), view["master_count"].clone()),
            (json!(3), json!(3))
        );
        assert_eq!(view["node_addresses"], json!(["w", "g"]));
        assert_eq!(view["faults"], json!({"gpu": "no cards"}));
        assert_eq!(full(parts, "", Version::MAX, false).get("faults"), None);
    }

    #[test]
    fn the_stack_has_another_name_from_1_13_on() {
        let (cluster, node_groups) = sample();
        let parts = Parts {
            cluster: &cluster,
            node_groups: &node_groups,
            template: None,
        };
        let old = brief(parts, "", Version::ZERO_NODES);
        assert_eq!(
            (old["stack_id"].clone(), old.get("cluster_id")),
            (json!("s"), None)
        );
        let new = brief(parts, "", Version::CLUSTER_ID);
        assert_eq!(
            (new["cluster_id"].clone(), new.get("stack_id")),
            (json!("s"), None)
        );
    }

    #[test]
    fn a_cluster_without_node_groups_is_shown_with_zeroes() {
        let (cluster, _) = sample();
        let parts = Parts {
            cluster: &cluster,
            node_groups: &[],
            template: None,
        };
        assert_eq!(brief(parts, "", Version::MIN)["master_count"], 0);
    }
}
