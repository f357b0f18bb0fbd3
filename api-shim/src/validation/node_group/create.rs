//! A new node group, composed from the request, its cluster and the cluster's template.

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup, StringMap};
use serde_json::{Map, Value};

use super::rules;
use crate::microversion::Version;
use crate::validation::body::invalid;
use crate::validation::{cluster_template, labels};

/// What the service gives a group, whatever the request says.
const ALWAYS_SENT: [&str; 11] = [
    "uuid",
    "name",
    "cluster_id",
    "project_id",
    "labels",
    "flavor_id",
    "image_id",
    "node_count",
    "role",
    "max_node_count",
    "min_node_count",
];
/// Sent, and shown in the answer, if the request has them.
const SENT_IF_GIVEN: [&str; 3] = ["docker_volume_size", "node_labels", "node_taints"];

/// A node group that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct NewNodeGroup {
    /// The group.
    pub group: NodeGroup,
    /// Its fields that travel to the conductor; the others are the conductor's to set.
    pub sent: Vec<&'static str>,
    /// Attributes that the request sets to null, and the answer shows so.
    pub nulls: Vec<&'static str>,
}

/// Refuses nulls where there is no default to fall back to, and what came with a later version.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_given(given: &mut Map<String, Value>, version: Version) -> Result<(), Fault> {
    for name in ["name", "node_count", "min_node_count"] {
        if given.get(name).is_some_and(Value::is_null) {
            return Err(invalid(name, &Value::Null, "A value is needed."));
        }
    }
    if version < Version::NODE_LABELS {
        for name in ["node_labels", "node_taints"] {
            if given.remove(name).is_some_and(|value| !value.is_null()) {
                return Err(Fault::invalid_parameter(format!(
                    "The attribute {name} of a node group needs microversion {} or later.",
                    Version::NODE_LABELS
                )));
            }
        }
    }
    Ok(())
}

/// Composes the group: what the request does not say comes from the cluster, the image from its template. The group
/// belongs to the cluster's project, even if another one creates it.
pub fn compose(
    given: &Map<String, Value>,
    cluster: &Cluster,
    template: Option<&ClusterTemplate>,
) -> NewNodeGroup {
    let value = |name: &str| given.get(name).filter(|value| !value.is_null());
    let text = |name: &str| value(name).and_then(Value::as_str).map(str::to_owned);
    let number = |name: &str| {
        value(name)
            .and_then(Value::as_i64)
            .and_then(|number| i32::try_from(number).ok())
    };
    let mut group = NodeGroup::new(
        NodeGroupUuid::random(),
        &text("name").unwrap_or_default(),
        cluster.uuid.clone(),
        cluster.project_id.as_deref().unwrap_or_default(),
        &text("role").unwrap_or_else(|| "worker".to_owned()),
    );
    group.docker_volume_size = number("docker_volume_size");
    group.labels = inherited(
        value("labels").and_then(Value::as_object).map(labels::stored),
        value("merge_labels").and_then(Value::as_bool).unwrap_or(false),
        &cluster.labels,
    );
    group.flavor_id = text("flavor_id").or_else(|| cluster.flavor_id.clone());
    group.image_id = text("image_id").or_else(|| template.and_then(|template| template.image_id.clone()));
    group.node_count = number("node_count").unwrap_or(1);
    group.min_node_count = number("min_node_count").unwrap_or(0);
    group.max_node_count = number("max_node_count");
    if let Some(node_labels) = value("node_labels").and_then(Value::as_object) {
        group.node_labels = labels::stored(node_labels);
    }
    if let Some(taints) = value("node_taints").and_then(Value::as_array) {
        group.node_taints = rules::kept_taints(taints);
    }
    let is = |name: &&'static str, null: bool| given.get(*name).is_some_and(|value| value.is_null() == null);
    let mut sent = ALWAYS_SENT.to_vec();
    sent.extend(SENT_IF_GIVEN.iter().filter(|name| is(name, false)));
    NewNodeGroup {
        group,
        sent,
        nulls: SENT_IF_GIVEN.into_iter().filter(|name| is(name, true)).collect(),
    }
}

/// A group's labels: the cluster's when none were given; the given ones alone, also if there are none in them, or
/// laid over the cluster's when merging was asked for.
fn inherited(given: Option<StringMap>, merge: bool, cluster: &StringMap) -> StringMap {
    match given {
        None => cluster.clone(),
        Some(given) if merge => {
            let mut merged = cluster.clone();
            merged.extend(given);
            merged
        }
        Some(given) => given,
    }
}

/// What must hold of a new group.
///
/// # Errors
/// Those of [`rules::check_counts`] and [`rules::check_nodes`], and 400 for a group of masters, labels that are too large
/// and a boot volume that is no number.
pub fn check_composed(new: &NewNodeGroup) -> Result<(), Fault> {
    let group = &new.group;
    rules::check_counts(group)?;
    rules::check_nodes(group)?;
    if group.is_master() {
        return Err(Fault::new(
            Exception::CreateMasterNodeGroup,
            "Creating master nodegroups is currently not supported.",
        ));
    }
    labels::check_size("labels", &group.labels)?;
    cluster_template::boot_volume_size(&group.labels).map(drop)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{ARGUMENT, FIELDS};
    use super::*;
    use crate::validation::body;

    fn composed(given: &Value) -> NewNodeGroup {
        let given = body::read(ARGUMENT, given, FIELDS).unwrap();
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.project_id = Some("p".into());
        cluster.flavor_id = Some("small".into());
        cluster.labels.insert("a".into(), "1".into());
        let mut template = ClusterTemplate::new("t".into());
        template.image_id = Some("i".into());
        compose(&given, &cluster, Some(&template))
    }

    #[test]
    fn omitted_attributes_come_from_the_cluster_and_its_template() {
        for given in [
            json!({"name": "n"}),
            json!({"name": "n", "flavor_id": null, "image_id": null, "labels": null, "role": null,
                   "max_node_count": null, "merge_labels": true}),
        ] {
            let NewNodeGroup { group, sent, nulls } = composed(&given);
            assert_eq!((group.project_id.as_str(), group.role.as_str()), ("p", "worker"));
            assert_eq!(group.flavor_id.as_deref(), Some("small"));
            assert_eq!(group.image_id.as_deref(), Some("i"));
            assert_eq!(group.labels["a"], "1");
            assert_eq!(
                (group.min_node_count, group.node_count, group.max_node_count),
                (0, 1, None)
            );
            assert_eq!((sent.as_slice(), nulls.len()), (ALWAYS_SENT.as_slice(), 0));
        }
    }

    #[test]
    fn given_labels_replace_the_clusters_or_are_laid_over_them() {
        let labels = |given: Value| {
            let labels = composed(&given).group.labels;
            labels
                .iter()
                .map(|(key, value)| format!("{key}{value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(labels(json!({"name": "n", "labels": {"b": 2}})), "b2");
        assert_eq!(labels(json!({"name": "n", "labels": {}})), "");
        assert_eq!(
            labels(json!({"name": "n", "labels": {"b": 2}, "merge_labels": true})),
            "a1 b2"
        );
    }

    #[test]
    fn read_only_attributes_are_ignored() {
        let new = composed(&json!({
            "name": "n", "uuid": "00000000-dead-4bad-8bad-000000000000", "is_default": true, "id": 7,
            "status": "CREATE_COMPLETE", "version": "v", "cluster_id": "00000000-dead-4bad-8bad-000000000000",
        }));
        assert_ne!(new.group.uuid.as_str(), "00000000-dead-4bad-8bad-000000000000");
        assert_eq!(
            (new.group.is_default, new.group.status, new.group.id),
            (false, None, None)
        );
        assert_eq!(new.group.cluster_id.as_str(), "c");
    }

    #[test]
    fn nulls_are_shown_and_not_sent() {
        let new = composed(&json!({"name": "n", "node_labels": {"a": "b"}, "node_taints": null}));
        assert_eq!(new.nulls, ["node_taints"]);
        assert_eq!(new.sent.last(), Some(&"node_labels"));
    }

    #[test]
    fn nulls_without_a_default_and_later_attributes_are_refused() {
        let check = |given: Value, version| {
            let Value::Object(mut given) = given else {
                unreachable!()
            };
            check_given(&mut given, version).map(|()| given.len())
        };
        for name in ["name", "node_count", "min_node_count"] {
            assert_eq!(check(json!({name: null}), Version::MAX).unwrap_err().code(), 400);
        }
        let labels = json!({"node_labels": {"a": "b"}});
        assert_eq!(check(labels.clone(), Version::MAX), Ok(1));
        let fault = check(labels, Version::NODE_GROUPS).unwrap_err();
        assert!(
            fault.message.contains("needs microversion 1.14"),
            "{}",
            fault.message
        );
        assert_eq!(check(json!({"node_labels": null}), Version::NODE_GROUPS), Ok(0));
    }

    #[test]
    fn there_are_no_new_masters() {
        let refusal = |given: Value| check_composed(&composed(&given)).unwrap_err();
        assert!(
            refusal(json!({"name": "n", "role": "master"}))
                .message
                .contains("not supported")
        );
        assert_eq!(
            refusal(json!({"name": "n", "labels": {"boot_volume_size": "x"}})).code(),
            400
        );
    }
}
