//! What a patch may change of a cluster: the default workers' count, and the health that a monitor reports.

use magnum_common::error::Fault;
use magnum_common::model::{Cluster, ClusterStatus, HealthStatus, NodeGroup, StringMap};
use serde_json::{Map, Value, json};

use super::create::{DEFAULT_CREATE_TIMEOUT, refuse_zero};
use super::{FIELDS, PATCH_RULES};
use crate::microversion::Version;
use crate::validation::body::{check, invalid};
use crate::validation::labels;
use crate::validation::node_group::rules::check_resize;
use crate::validation::patch::{Patch, apply};

/// What a patch changes.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names are Magnum's")]
pub struct ClusterChange {
    /// Of the default worker group.
    pub node_count: i32,
    pub health_status: Option<HealthStatus>,
    pub health_status_reason: StringMap,
}

/// Applies a patch to a cluster and says what it changes, or why it may not. The patchable `node_count` is the
/// default worker group's, although the readable one is a sum.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn change(
    patch: &Patch,
    cluster: &Cluster,
    node_groups: &[NodeGroup],
    version: Version,
) -> Result<ClusterChange, Fault> {
    let worker = node_groups
        .iter()
        .find(|group| group.is_default && !group.is_master());
    let before = document(cluster, node_groups, worker);
    let mut after = apply(patch, before.clone(), &PATCH_RULES)?;
    after.entry("node_count").or_insert(json!(1));
    after
        .entry("create_timeout")
        .or_insert(json!(DEFAULT_CREATE_TIMEOUT));
    check(&mut after, &before, FIELDS)?;
    let node_count = after["node_count"]
        .as_i64()
        .and_then(|count| i32::try_from(count).ok())
        .ok_or_else(|| {
            invalid(
                "node_count",
                &after["node_count"],
                "Value should be greater or equal to 0",
            )
        })?;

    const CHANGEABLE: [&str; 3] = ["node_count", "health_status", "health_status_reason"];
    let mut refused: Vec<&str> = before
        .iter()
        .filter(|(name, value)| !CHANGEABLE.contains(&name.as_str()) && after.get(*name) != Some(*value))
        .map(|(name, _)| name.as_str())
        .collect();
    if !refused.is_empty() {
        refused.sort_unstable();
        return Err(Fault::invalid_parameter(format!(
            "cannot change cluster property(ies) {}.",
            refused.join(", ")
        )));
    }
    if node_count == 0 {
        refuse_zero(version)?;
    }
    if let Some(worker) = worker.filter(|worker| worker.node_count != node_count) {
        check_resize(worker, node_count)?;
    }
    Ok(ClusterChange {
        node_count,
        health_status: after
            .get("health_status")
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok()),
        health_status_reason: after
            .get("health_status_reason")
            .and_then(Value::as_object)
            .map(labels::stored)
            .unwrap_or_default(),
    })
}

/// The object that a patch sees: every attribute present, unset ones as null.
fn document(cluster: &Cluster, node_groups: &[NodeGroup], worker: Option<&NodeGroup>) -> Map<String, Value> {
    let masters = node_groups
        .iter()
        .filter(|group| group.is_master())
        .map(|group| i64::from(group.node_count));
    let mut document = Map::new();
    let mut set = |name: &str, value: Value| {
        document.insert(name.to_owned(), value);
    };
    set("uuid", json!(cluster.uuid));
    set("name", json!(cluster.name));
    set("cluster_template_id", json!(cluster.cluster_template_id));
    set("keypair", json!(cluster.keypair));
    set("node_count", json!(worker.map_or(0, |worker| worker.node_count)));
    set("master_count", json!(masters.sum::<i64>()));
    set("docker_volume_size", json!(cluster.docker_volume_size));
    set("labels", json!(cluster.labels));
    set("master_flavor_id", json!(cluster.master_flavor_id));
    set("flavor_id", json!(cluster.flavor_id));
    set("create_timeout", json!(cluster.create_timeout));
    set("stack_id", json!(cluster.stack_id));
    set("status", json!(cluster.status.map(ClusterStatus::as_str)));
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
    set("fixed_network", json!(cluster.fixed_network));
    set("fixed_subnet", json!(cluster.fixed_subnet));
    set("floating_ip_enabled", json!(cluster.floating_ip_enabled));
    set("master_lb_enabled", json!(cluster.master_lb_enabled));
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::patch;

    const LATEST: Version = Version::MAX;

    fn cluster() -> (Cluster, NodeGroup) {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.name = Some("prod".into());
        cluster.labels.insert("a".into(), "1".into());
        cluster.status = Some(ClusterStatus::CreateComplete);
        let mut worker = NodeGroup::new("w".into(), "default-worker", "c".into(), "p", "worker");
        worker.is_default = true;
        worker.node_count = 2;
        worker.min_node_count = 1;
        worker.max_node_count = Some(5);
        (cluster, worker)
    }

    fn changed(operations: &Value, version: Version) -> Result<ClusterChange, String> {
        let (cluster, worker) = cluster();
        patch::read(operations, &PATCH_RULES)
            .and_then(|patch| change(&patch, &cluster, &[worker], version))
            .map_err(|fault| fault.message)
    }

    #[test]
    fn counts_and_health_can_be_changed_and_nothing_else() {
        let change = changed(
            &json!([
                {"op": "replace", "path": "/node_count", "value": 4},
                {"op": "replace", "path": "/health_status", "value": "UNHEALTHY"},
                {"op": "replace", "path": "/health_status_reason", "value": "{'api': 'down'}"},
            ]),
            LATEST,
        )
        .unwrap();
        assert_eq!(change.node_count, 4);
        assert_eq!(change.health_status, Some(HealthStatus::Unhealthy));
        assert_eq!(change.health_status_reason["api"], "down");
        assert_eq!(
            changed(
                &json!([{"op": "replace", "path": "/name", "value": "x"},
                           {"op": "replace", "path": "/labels", "value": "{}"}]),
                LATEST
            ),
            Err("cannot change cluster property(ies) labels, name.".into())
        );
        assert_eq!(
            changed(&json!([{"op": "remove", "path": "/discovery_url"}]), LATEST),
            Err("cannot change cluster property(ies) discovery_url.".into())
        );
    }

    #[test]
    fn a_patch_that_changes_nothing_passes() {
        for operations in [
            json!([]),
            json!([{"op": "replace", "path": "/labels", "value": "{'a': '1'}"}]),
            json!([{"op": "replace", "path": "/node_count", "value": 2}]),
        ] {
            assert_eq!(changed(&operations, LATEST).unwrap().node_count, 2);
        }
    }

    #[test]
    fn a_removed_count_is_one_and_the_groups_bounds_hold() {
        assert_eq!(
            changed(&json!([{"op": "remove", "path": "/node_count"}]), LATEST)
                .unwrap()
                .node_count,
            1
        );
        let to = |count: Value, version| {
            changed(
                &json!([{"op": "replace", "path": "/node_count", "value": count}]),
                version,
            )
        };
        assert!(
            to(json!(6), LATEST)
                .unwrap_err()
                .contains("min_node_count = 1, max_node_count = 5")
        );
        assert!(
            to(json!(0), LATEST)
                .unwrap_err()
                .contains("outside the allowed range")
        );
        assert!(
            to(json!(0), Version::MIN)
                .unwrap_err()
                .contains("zero is not supported")
        );
        assert!(
            to(json!("5"), LATEST)
                .unwrap_err()
                .contains("attribute node_count. Value: '5'. Wrong type")
        );
        assert!(
            to(json!(-1), LATEST)
                .unwrap_err()
                .contains("greater or equal to 0")
        );
    }
}
