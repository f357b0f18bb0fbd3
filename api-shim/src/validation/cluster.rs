//! What the attributes of a cluster are; [`create`] composes a new one, [`change`] says what a patch may do,
//! [`status`] when it may be changed.

pub mod change;
pub mod create;
pub mod status;

use magnum_common::model::ClusterStatus;

use super::body::{Field, Kind, LONG, NAME, PLAIN, at_least};
use super::patch::Rules;

/// The body's name in error texts.
pub const ARGUMENT: &str = "cluster";

/// Every health, as text.
pub const HEALTH_STATUSES: &[&str] = &["HEALTHY", "UNHEALTHY", "UNKNOWN"];

/// What a monitor reports of a cluster.
pub const HEALTH: &[&str] = &["health_status", "health_status_reason"];

/// The attributes, in the order of the contract.
pub const FIELDS: &[Field] = &[
    Field::ignored("uuid", Kind::Uuid),
    Field::new("name", Kind::ClusterName),
    Field::mandatory("cluster_template_id", LONG),
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
    Field::ignored("status", Kind::Choice(STATUSES)),
    Field::ignored("status_reason", LONG),
    Field::ignored("health_status", Kind::Choice(HEALTH_STATUSES)),
    Field::ignored("health_status_reason", Kind::Strings),
    Field::new("discovery_url", PLAIN),
    Field::read_only("api_address"),
    Field::read_only("coe_version"),
    Field::read_only("container_version"),
    Field::read_only("project_id"),
    Field::read_only("user_id"),
    Field::read_only("node_addresses"),
    Field::read_only("master_addresses"),
    Field::ignored("faults", Kind::Any),
    Field::new("fixed_network", NAME),
    Field::new("fixed_subnet", NAME),
    Field::new("floating_ip_enabled", Kind::Boolean),
    Field::new("merge_labels", Kind::Boolean),
    Field::ignored("labels_overridden", Kind::Labels),
    Field::ignored("labels_added", Kind::Labels),
    Field::ignored("labels_skipped", Kind::Labels),
    Field::new("master_lb_enabled", Kind::Boolean),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

/// Every status, as text.
pub const STATUSES: &[&str] = &{
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
    lists: &[],
};

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

#[cfg(test)]
mod tests {
    use magnum_common::model::Cluster;
    use serde_json::json;

    use super::*;
    use crate::validation::{body, node_group};

    #[test]
    fn differences_of_labels_are_checked_although_they_are_ignored() {
        let bodies = [
            ("cluster", FIELDS, json!({"cluster_template_id": "t"})),
            ("nodegroup", node_group::FIELDS, json!({"name": "n"})),
        ];
        for (argument, fields, least) in bodies {
            for name in ["labels_added", "labels_overridden", "labels_skipped"] {
                let read = |value| {
                    let mut given = least.clone();
                    given[name] = value;
                    body::read(argument, &given, fields)
                };
                assert!(read(json!({"a": 1, "b": "c"})).is_ok(), "{argument} {name}");
                for value in [json!("x"), json!({"a": []})] {
                    assert_eq!(read(value).unwrap_err().code(), 400, "{argument} {name}");
                }
            }
        }
    }

    #[test]
    fn every_sent_field_exists_in_the_wire_object() {
        let cluster = Cluster::new("c".into(), "t".into());
        let sent = magnum_objects::encode_changed(&cluster, SENT_FIELDS);
        let data = sent["magnum_object.data"].as_object().unwrap();
        assert_eq!(data.len(), SENT_FIELDS.len());
    }
}
