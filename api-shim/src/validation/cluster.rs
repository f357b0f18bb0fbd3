//! What the attributes of a cluster mean: how a new one is composed from request and template, and what a patch
//! may change.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, HealthStatus, NodeGroup, StringMap};
use serde_json::{Map, Value, json};

use super::body::{FREE_TEXT, Field, Kind, NAME, at_least, check, invalid};
use super::labels;
use super::names;
use super::patch::{Patch, Rules, apply};
use super::python::str_of;
use crate::microversion::Version;

/// The body's name in error texts.
pub const ARGUMENT: &str = "cluster";

/// The attributes, in the order of the contract.
pub const FIELDS: &[Field] = &[
    Field::new("uuid", Kind::Uuid),
    Field::new("name", Kind::ClusterName),
    Field::mandatory("cluster_template_id", NAME),
    Field::new("keypair", NAME),
    Field::new("node_count", at_least(0)),
    Field::new("master_count", at_least(1)),
    Field::new("docker_volume_size", at_least(1)),
    Field::new("labels", Kind::Labels),
    Field::new("master_flavor_id", NAME),
    Field::new("flavor_id", NAME),
    Field::new("create_timeout", at_least(0)),
    Field::read_only("links"),
    Field::read_only("stack_id"),
    Field::read_only("cluster_id"),
    // Status and health are taken and ignored in a create request, as Magnum takes them.
    Field::new("status", Kind::Choice(STATUSES)),
    Field::new("status_reason", FREE_TEXT),
    Field::new(
        "health_status",
        Kind::Choice(&["HEALTHY", "UNHEALTHY", "UNKNOWN"]),
    ),
    Field::new("health_status_reason", Kind::Labels),
    Field::new("discovery_url", FREE_TEXT),
    Field::read_only("api_address"),
    Field::read_only("coe_version"),
    Field::read_only("container_version"),
    Field::read_only("project_id"),
    Field::read_only("user_id"),
    Field::read_only("node_addresses"),
    Field::read_only("master_addresses"),
    Field::new("faults", Kind::Any),
    Field::new("fixed_network", NAME),
    Field::new("fixed_subnet", NAME),
    Field::new("floating_ip_enabled", Kind::Boolean),
    Field::new("merge_labels", Kind::Boolean),
    Field::new("labels_overridden", Kind::Any),
    Field::new("labels_added", Kind::Any),
    Field::new("labels_skipped", Kind::Any),
    Field::new("master_lb_enabled", Kind::Boolean),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

const STATUSES: &[&str] = &{
    let mut texts = [""; ClusterStatus::ALL.len()];
    let mut at = 0;
    while at < texts.len() {
        texts[at] = ClusterStatus::ALL[at].as_str();
        at += 1;
    }
    texts
};

/// What a patch may not touch.
pub const PATCH_RULES: Rules = Rules {
    internal: &[
        "api_address",
        "node_addresses",
        "master_addresses",
        "stack_id",
        "cluster_id",
        "ca_cert_ref",
        "magnum_cert_ref",
        "etcd_ca_cert_ref",
        "front_proxy_ca_cert_ref",
    ],
    mandatory: &["cluster_template_id"],
    dictionaries: &["labels", "health_status_reason"],
};

/// Minutes, when a create request names none.
const DEFAULT_CREATE_TIMEOUT: i32 = 60;

/// A cluster that was asked for, with the counts of its two default node groups.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct NewCluster {
    pub cluster: Cluster,
    pub master_count: i32,
    pub node_count: i32,
}

/// The fields of a new cluster that travel to the conductor; the others are its to set.
pub const SENT_FIELDS: &[&str] = &[
    "uuid",
    "name",
    "project_id",
    "user_id",
    "cluster_template_id",
    "keypair",
    "docker_volume_size",
    "labels",
    "master_flavor_id",
    "flavor_id",
    "create_timeout",
    "discovery_url",
    "coe_version",
    "container_version",
    "fixed_network",
    "fixed_subnet",
    "floating_ip_enabled",
    "master_lb_enabled",
];

/// The template that a create request names; a null reads as Python prints it.
pub fn template_ident(given: &Map<String, Value>) -> String {
    str_of(given.get("cluster_template_id").unwrap_or(&Value::Null))
}

/// Whether the counts of a create request may be so at this microversion.
pub fn check_counts(given: &Map<String, Value>, version: Version) -> Result<(), Fault> {
    if given.get("master_count").is_some_and(Value::is_null) {
        return Err(invalid(
            "master_count",
            &Value::Null,
            "Value should be greater or equal to 1",
        ));
    }
    if given.get("node_count").and_then(Value::as_i64) == Some(0) {
        refuse_zero(version)?;
    }
    Ok(())
}

fn refuse_zero(version: Version) -> Result<(), Fault> {
    if version >= Version::ZERO_NODES {
        return Ok(());
    }
    Err(Fault::new(
        Exception::ZeroNodeCountNotSupported,
        "Resizing a nodegroup to zero is not supported in the provided microversion.",
    ))
}

/// Composes the cluster: what the request does not say comes from the template.
pub fn compose(
    given: &Map<String, Value>,
    template: &ClusterTemplate,
    context: &RequestContext,
) -> NewCluster {
    let value = |name: &str| given.get(name).filter(|value| !value.is_null());
    let text = |name: &str| value(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| {
        value(name)
            .and_then(Value::as_i64)
            .and_then(|n| i32::try_from(n).ok())
    };
    let flag = |name: &str| value(name).and_then(Value::as_bool);

    let mut cluster = Cluster::new(ClusterUuid::random(), template.uuid.clone());
    cluster.name = Some(text("name").unwrap_or_else(|| names::generate("cluster")));
    cluster.project_id = context.project_id().map(str::to_owned);
    cluster.user_id = context.user_id().map(str::to_owned);
    cluster.keypair = text("keypair").or_else(|| template.keypair_id.clone());
    cluster.docker_volume_size = number("docker_volume_size").or(template.docker_volume_size);
    cluster.labels = labels::inherit(
        value("labels").and_then(Value::as_object).map(labels::stored),
        flag("merge_labels").unwrap_or(false),
        &template.labels,
    );
    cluster.master_flavor_id = text("master_flavor_id").or_else(|| template.master_flavor_id.clone());
    cluster.flavor_id = text("flavor_id").or_else(|| template.flavor_id.clone());
    // An explicit null means no time limit of its own.
    cluster.create_timeout = match given.get("create_timeout") {
        None => Some(DEFAULT_CREATE_TIMEOUT),
        Some(_) => number("create_timeout"),
    };
    cluster.discovery_url = text("discovery_url");
    cluster.fixed_network = text("fixed_network").or_else(|| template.fixed_network.clone());
    cluster.fixed_subnet = text("fixed_subnet").or_else(|| template.fixed_subnet.clone());
    cluster.floating_ip_enabled = flag("floating_ip_enabled").unwrap_or(template.floating_ip_enabled);
    cluster.master_lb_enabled = flag("master_lb_enabled").unwrap_or(template.master_lb_enabled);
    NewCluster {
        cluster,
        master_count: number("master_count").unwrap_or(1),
        node_count: number("node_count").unwrap_or(1),
    }
}

/// What must hold between the parts of a new cluster. Master sizes are the driver's to check.
pub fn check_composed(new: &NewCluster, template: &ClusterTemplate) -> Result<(), Fault> {
    super::cluster_template::check_docker_volume(
        template.docker_storage_driver.as_deref(),
        new.cluster.docker_volume_size,
    )?;
    super::cluster_template::check_boot_volume(&new.cluster.labels)?;
    if new.master_count > 1 && !new.cluster.master_lb_enabled {
        return Err(Fault::invalid_parameter(
            "master_count must be 1 when master_lb_enabled is False",
        ));
    }
    check_minimum(&new.cluster.labels)
}

/// The label from which the default worker group takes its minimum.
fn check_minimum(labels: &StringMap) -> Result<(), Fault> {
    match labels.get("min_node_count") {
        Some(text) if !text.trim().parse::<i32>().is_ok_and(|count| count >= 0) => {
            Err(Fault::invalid_parameter(format!(
                "The label min_node_count must be a whole number of at least 0, not '{text}'."
            )))
        }
        _ => Ok(()),
    }
}

/// 409 for a change of a cluster that is busy, or whose last operation failed.
pub fn check_updatable(status: Option<ClusterStatus>) -> Result<(), Fault> {
    match status {
        Some(status) if ClusterStatus::COMPLETE.contains(&status) => Ok(()),
        other => Err(Fault::new(
            Exception::Conflict,
            format!(
                "Updating a cluster when status is \"{}\" is not supported.",
                other.map_or("None", ClusterStatus::as_str)
            ),
        )),
    }
}

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
        check_bounds(worker, node_count)?;
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

fn check_bounds(worker: &NodeGroup, node_count: i32) -> Result<(), Fault> {
    let maximum = worker.max_node_count.filter(|maximum| *maximum != 0);
    if node_count >= worker.min_node_count && maximum.is_none_or(|maximum| node_count <= maximum) {
        return Ok(());
    }
    Err(Fault::new(
        Exception::NGResizeOutBounds,
        format!(
            "Resizing {} outside the allowed range: min_node_count = {}, max_node_count = {}",
            worker.name,
            worker.min_node_count,
            maximum.map_or_else(|| "None".to_owned(), |maximum| maximum.to_string())
        ),
    ))
}

/// The object that a patch sees: every attribute present, unset ones as null.
fn document(cluster: &Cluster, node_groups: &[NodeGroup], worker: Option<&NodeGroup>) -> Map<String, Value> {
    let masters = node_groups
        .iter()
        .filter(|group| group.is_master())
        .map(|group| group.node_count);
    let mut document = Map::new();
    let mut set = |name: &str, value: Value| {
        document.insert(name.to_owned(), value);
    };
    set("uuid", json!(cluster.uuid));
    set("name", json!(cluster.name));
    set("cluster_template_id", json!(cluster.cluster_template_id));
    set("keypair", json!(cluster.keypair));
    set("node_count", json!(worker.map_or(0, |worker| worker.node_count)));
    set("master_count", json!(masters.sum::<i32>()));
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
    use magnum_common::context::Caller;
    use magnum_common::ids::RequestId;

    use super::super::{body, patch};
    use super::*;

    const LATEST: Version = Version::MAX;

    fn template() -> ClusterTemplate {
        let mut template = ClusterTemplate::new("t".into());
        template.keypair_id = Some("template-key".into());
        template.flavor_id = Some("small".into());
        template.docker_volume_size = Some(5);
        template.master_lb_enabled = true;
        template.labels.insert("a".into(), "1".into());
        template
    }

    fn compose_from(body: &Value) -> NewCluster {
        let given = body::read(ARGUMENT, body, FIELDS).unwrap();
        let caller = Caller {
            project_id: Some("p".into()),
            user_id: Some("u".into()),
            ..Caller::default()
        };
        let context = RequestContext::for_caller(&caller, &RequestId::random());
        compose(&given, &template(), &context)
    }

    #[test]
    fn what_is_not_given_comes_from_the_template() {
        for body in [
            json!({"cluster_template_id": "t"}),
            json!({"cluster_template_id": "t", "keypair": null, "flavor_id": null, "labels": {},
                   "master_lb_enabled": null, "docker_volume_size": null, "node_count": null}),
        ] {
            let new = compose_from(&body);
            assert_eq!(new.cluster.keypair.as_deref(), Some("template-key"));
            assert_eq!(new.cluster.flavor_id.as_deref(), Some("small"));
            assert_eq!(new.cluster.docker_volume_size, Some(5));
            assert!(new.cluster.master_lb_enabled);
            assert_eq!(new.cluster.labels, template().labels);
            assert_eq!((new.master_count, new.node_count), (1, 1));
            assert_eq!(new.cluster.create_timeout, Some(60));
            assert!(new.cluster.name.unwrap().ends_with("-cluster"));
            assert_eq!(new.cluster.project_id.as_deref(), Some("p"));
        }
    }

    #[test]
    fn what_is_given_wins_and_status_is_ignored() {
        let new = compose_from(&json!({
            "cluster_template_id": "t", "name": "c", "keypair": "k", "node_count": 4, "master_count": 3,
            "create_timeout": null, "labels": {"b": 2}, "merge_labels": true, "floating_ip_enabled": false,
            "status": "CREATE_COMPLETE", "health_status": "HEALTHY", "faults": {"x": "y"},
        }));
        assert_eq!(new.cluster.keypair.as_deref(), Some("k"));
        assert_eq!((new.master_count, new.node_count), (3, 4));
        assert_eq!(new.cluster.create_timeout, None);
        assert_eq!(new.cluster.labels.len(), 2);
        assert!(!new.cluster.floating_ip_enabled);
        assert_eq!((new.cluster.status, new.cluster.health_status), (None, None));
    }

    #[test]
    fn many_masters_need_a_load_balancer_and_numbers_must_be_numbers() {
        let refusal = |body: Value| {
            check_composed(&compose_from(&body), &template())
                .unwrap_err()
                .message
        };
        assert_eq!(
            refusal(json!({"cluster_template_id": "t", "master_count": 3, "master_lb_enabled": false})),
            "master_count must be 1 when master_lb_enabled is False"
        );
        assert!(
            refusal(json!({"cluster_template_id": "t", "labels": {"min_node_count": "abc"}}))
                .contains("'abc'")
        );
        assert!(
            refusal(json!({"cluster_template_id": "t", "labels": {"boot_volume_size": "x"}})).contains("'x'")
        );
    }

    #[test]
    fn zero_nodes_need_their_version_and_null_masters_are_refused() {
        let counts = |body: Value, version| {
            let Value::Object(given) = body else {
                unreachable!()
            };
            check_counts(&given, version)
        };
        assert!(counts(json!({"node_count": 0}), Version::MIN).is_err());
        assert!(counts(json!({"node_count": 0}), LATEST).is_ok());
        assert_eq!(
            counts(json!({"master_count": null}), LATEST).unwrap_err().code(),
            400
        );
    }

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

    #[test]
    fn only_a_cluster_at_rest_can_be_updated() {
        assert!(check_updatable(Some(ClusterStatus::UpdateComplete)).is_ok());
        for status in [
            ClusterStatus::CreateInProgress,
            ClusterStatus::UpdateFailed,
            ClusterStatus::DeleteComplete,
        ] {
            let fault = check_updatable(Some(status)).unwrap_err();
            assert_eq!(fault.code(), 409);
            assert!(fault.message.contains(status.as_str()));
        }
    }

    #[test]
    fn every_sent_field_exists_in_the_wire_object() {
        let (cluster, _) = cluster();
        let sent = magnum_common::objects::encode_changed(&cluster, SENT_FIELDS);
        let data = sent["magnum_object.data"].as_object().unwrap();
        assert_eq!(data.len(), SENT_FIELDS.len());
    }
}
