//! What may be asked of a cluster besides a patch: another size of one of its groups, another template, nodes built
//! anew or restarted.

use magnum_common::error::{Exception, Fault};
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup, RebootType};
use serde_json::{Map, Value};

use super::body::{Field, Kind, NAME, at_least, invalid};
use super::cluster::create::refuse_zero;
use super::python::str_of;
use crate::microversion::Version;

/// The body's name in error texts.
pub const RESIZE: &str = "cluster_resize_req";
/// Attributes of a resize.
pub const RESIZE_FIELDS: &[Field] = &[
    Field::mandatory("node_count", at_least(0)),
    Field::new("nodes_to_remove", Kind::Texts),
    Field::new("nodegroup", NAME),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

/// The body's name in error texts.
pub const UPGRADE: &str = "cluster_upgrade_req";
/// Attributes of an upgrade.
pub const UPGRADE_FIELDS: &[Field] = &[
    Field::new("max_batch_size", at_least(1)),
    Field::new("nodegroup", NAME),
    Field::mandatory("cluster_template", NAME),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

/// The body's name in error texts.
pub const REBUILD: &str = "cluster_rebuild_req";
/// Attributes of a rebuild.
pub const REBUILD_FIELDS: &[Field] = &[NODES_OF_GROUP, NODES];

/// The body's name in error texts.
pub const REBOOT: &str = "cluster_reboot_req";
/// Attributes of a reboot.
pub const REBOOT_FIELDS: &[Field] = &[
    Field::mandatory("type", Kind::Choice(RebootType::TEXTS))
        .about("How: soft restarts the operating system, hard switches the node off and on."),
    NODES_OF_GROUP,
    NODES,
];

/// Of a rebuild and a reboot: whose nodes are meant.
const NODES_OF_GROUP: Field = Field::new("nodegroup", NAME)
    .about("Node group whose nodes are meant, by uuid or name; every group where none is given.");
/// Of a rebuild and a reboot: which nodes are meant.
const NODES: Field = Field::new("nodes", Kind::Texts).about(
    "Nodes that are meant, as the cloud names them, one at least; all of the group where no list is given.",
);

/// The longest name of a node, in characters.
const NODE_NAME: usize = 255;

/// Another size of a node group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resize {
    /// Requested number of nodes.
    pub node_count: i32,
    /// Servers that shall go rather than others.
    pub nodes_to_remove: Vec<String>,
    /// The group's uuid, name or number; `None` means the default workers.
    pub node_group: Option<String>,
}

/// Reads a resize that was read by its fields.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn resize(given: &Map<String, Value>, version: Version) -> Result<Resize, Fault> {
    let node_count = given.get("node_count").and_then(Value::as_i64);
    let node_count = node_count
        .and_then(|count| i32::try_from(count).ok())
        .ok_or_else(|| invalid("node_count", &Value::Null, "Mandatory field missing."))?;
    if node_count == 0 {
        refuse_zero(version)?;
    }
    let nodes = given.get("nodes_to_remove").and_then(Value::as_array);
    Ok(Resize {
        node_count,
        nodes_to_remove: nodes.into_iter().flatten().map(str_of).collect(),
        node_group: group_of(given),
    })
}

/// Another template for a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upgrade {
    /// The template's uuid or name.
    pub template: String,
    /// Nodes replaced at once.
    pub max_batch_size: i32,
    /// The group's uuid, name or number; `None` means the default workers.
    pub node_group: Option<String>,
}

/// Reads an upgrade that was read by its fields. A null template reads as Python prints it.
pub fn upgrade(given: &Map<String, Value>) -> Upgrade {
    let batch = given.get("max_batch_size").and_then(Value::as_i64);
    Upgrade {
        template: str_of(given.get("cluster_template").unwrap_or(&Value::Null)),
        max_batch_size: batch.and_then(|size| i32::try_from(size).ok()).unwrap_or(1),
        node_group: group_of(given),
    }
}

/// Nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nodes {
    /// The uuid, name or number of their group; `None` means every group.
    pub node_group: Option<String>,
    /// Of those the ones with these names, as the cloud names them; none means all.
    pub names: Vec<String>,
}

/// Reads which nodes a rebuild or a reboot is about. An empty list is refused: all nodes are asked for by no list.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn nodes(given: &Map<String, Value>) -> Result<Nodes, Fault> {
    let list = given.get("nodes").filter(|list| !list.is_null());
    let names: Vec<String> = list
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(str_of)
        .collect();
    if let Some(empty) = list
        && names.is_empty()
    {
        return Err(invalid(
            "nodes",
            empty,
            "Name at least one node, or leave the attribute out to mean all of them.",
        ));
    }
    let is_wrong = |name: &&String| name.is_empty() || name.chars().count() > NODE_NAME;
    if let Some(wrong) = names.iter().find(is_wrong) {
        let told = format!("A node's name has 1 to {NODE_NAME} characters.");
        return Err(invalid("nodes", &Value::from(wrong.as_str()), &told));
    }
    Ok(Nodes {
        node_group: group_of(given),
        names,
    })
}

/// Reads how nodes are restarted.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn reboot_type(given: &Map<String, Value>) -> Result<RebootType, Fault> {
    let text = given.get("type").unwrap_or(&Value::Null);
    text.as_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| invalid("type", text, "Value should be one of: soft, hard."))
}

fn group_of(given: &Map<String, Value>) -> Option<String> {
    given.get("nodegroup").and_then(Value::as_str).map(str::to_owned)
}

/// Whether a group that was named may go to another template: one that is not a default group only follows its
/// cluster.
///
/// # Errors
/// 409 for a group that only follows its cluster.
pub fn check_upgrade(
    cluster: &Cluster,
    current: Option<&ClusterTemplate>,
    wanted: &ClusterTemplate,
    group: &NodeGroup,
) -> Result<(), Fault> {
    if group.is_default || wanted.uuid == cluster.cluster_template_id {
        return Ok(());
    }
    let name = current.and_then(|template| template.name.as_deref());
    Err(Fault::new(
        Exception::InvalidClusterTemplateForUpgrade,
        format!(
            "Cluster Template is not valid for upgrade: Nodegroup {} can be upgraded only to match cluster's \
             template ({}).",
            group.name,
            name.unwrap_or(cluster.cluster_template_id.as_str())
        ),
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::validation::body;

    #[test]
    fn times_of_an_action_are_refused_as_those_of_every_body() {
        let (count, template) = (json!({"node_count": 1}), json!({"cluster_template": "t"}));
        for (name, fields, given) in [
            (RESIZE, RESIZE_FIELDS, count),
            (UPGRADE, UPGRADE_FIELDS, template),
        ] {
            for attribute in ["created_at", "updated_at"] {
                let mut given = given.clone();
                given[attribute] = json!("2026-01-01T00:00:00");
                let told = body::read(name, &given, fields).unwrap_err().message;
                let wanted = format!(
                    "attribute {attribute}. Value: '2026-01-01 00:00:00'. Cannot set read only field."
                );
                assert!(told.ends_with(&wanted), "{told}");
            }
        }
    }

    #[test]
    fn a_resize_needs_a_count_and_zero_its_version() {
        let read = |given: Value, version| {
            body::read(RESIZE, &given, RESIZE_FIELDS).and_then(|given| resize(&given, version))
        };
        let asked = read(
            json!({"node_count": 2, "nodes_to_remove": null, "nodegroup": null}),
            Version::RESIZE,
        );
        let plain = Resize {
            node_count: 2,
            nodes_to_remove: Vec::new(),
            node_group: None,
        };
        assert_eq!(asked, Ok(plain));
        let asked = read(
            json!({"node_count": 0, "nodes_to_remove": ["a"], "nodegroup": "g"}),
            Version::ZERO_NODES,
        )
        .unwrap();
        assert_eq!(
            (asked.nodes_to_remove, asked.node_group),
            (vec!["a".to_owned()], Some("g".into()))
        );
        for given in [json!({}), json!({"node_count": null}), json!({"node_count": -1})] {
            assert_eq!(read(given, Version::MAX).unwrap_err().code(), 400);
        }
        let zero = read(json!({"node_count": 0}), Version::NODE_GROUPS).unwrap_err();
        assert!(zero.message.contains("provided microversion"), "{}", zero.message);
    }

    #[test]
    fn upgrade_batch_size_defaults_to_one_node() {
        let read = |given: Value| upgrade(&body::read(UPGRADE, &given, UPGRADE_FIELDS).unwrap());
        for given in [
            json!({"cluster_template": "t"}),
            json!({"cluster_template": "t", "max_batch_size": null}),
        ] {
            assert_eq!(read(given).max_batch_size, 1);
        }
        assert_eq!(read(json!({"cluster_template": null})).template, "None");
        assert!(body::read(UPGRADE, &json!({}), UPGRADE_FIELDS).is_err());
    }

    #[test]
    fn a_reboot_names_its_type_and_no_list_means_all_nodes() {
        let read = |given: Value| {
            let given = body::read(REBOOT, &given, REBOOT_FIELDS)?;
            Ok::<_, Fault>((reboot_type(&given)?, nodes(&given)?))
        };
        let (how, all) = read(json!({"type": "hard", "nodes": null})).unwrap();
        assert_eq!(how, RebootType::Hard);
        assert_eq!((all.node_group, all.names), (None, Vec::new()));
        let (_, some) = read(json!({"type": "soft", "nodegroup": "g", "nodes": ["a", "b"]})).unwrap();
        assert_eq!(
            (some.node_group, some.names),
            (Some("g".into()), vec!["a".to_owned(), "b".to_owned()])
        );
        for (given, field) in [
            (json!({}), "type"),
            (json!({"type": null}), "type"),
            (json!({"type": "gentle"}), "type"),
            (json!({"type": "soft", "nodes": []}), "nodes"),
            (json!({"type": "soft", "nodes": [""]}), "nodes"),
            (json!({"type": "soft", "nodes": "a"}), "nodes"),
            (json!({"type": "soft", "nodes": ["x".repeat(256)]}), "nodes"),
            (json!({"type": "soft", "node": ["a"]}), "node"),
        ] {
            let fault = read(given.clone()).unwrap_err();
            assert_eq!(fault.code(), 400, "{given}");
            assert!(fault.message.contains(field), "{given}: {}", fault.message);
        }
    }

    #[test]
    fn a_group_of_the_users_only_follows_its_cluster() {
        let cluster = Cluster::new("c".into(), "t".into());
        let mut current = ClusterTemplate::new("t".into());
        current.name = Some("old".into());
        let other = ClusterTemplate::new("t-2".into());
        let mut group = NodeGroup::new("g".into(), "gpu", "c".into(), "p", "gpu");
        assert_eq!(check_upgrade(&cluster, Some(&current), &current, &group), Ok(()));
        let fault = check_upgrade(&cluster, Some(&current), &other, &group).unwrap_err();
        assert_eq!(fault.code(), 409);
        assert!(
            fault.message.ends_with("match cluster's template (old)."),
            "{}",
            fault.message
        );
        group.is_default = true;
        assert_eq!(check_upgrade(&cluster, Some(&current), &other, &group), Ok(()));
    }
}
