//! What the attributes of a node group are; [`create`] composes a new one, [`change`] says what a patch may do,
//! [`rules`] what must hold of any.

pub mod change;
pub mod create;
pub mod rules;

use super::body::{Field, Kind, LONG, NAME, ONE_LINE, at_least};
use super::cluster::STATUSES;
use super::patch::Rules;
use crate::microversion::Version;

/// The body's name in error texts.
pub const ARGUMENT: &str = "nodegroup";

/// The attributes, in the order of the contract.
pub const FIELDS: &[Field] = &[
    // Taken and ignored: they are the service's to set, and Magnum lets clients set some of them.
    Field::ignored("id", at_least(1)),
    Field::ignored("uuid", Kind::Uuid),
    Field::mandatory("name", ONE_LINE),
    Field::ignored("cluster_id", Kind::Uuid),
    Field::read_only("project_id"),
    Field::new("docker_volume_size", at_least(1)),
    Field::new("labels", Kind::Labels),
    Field::read_only("links"),
    Field::new("flavor_id", NAME),
    Field::new("image_id", NAME),
    Field::read_only("node_addresses"),
    Field::new("node_count", at_least(0)),
    Field::new("role", ONE_LINE),
    Field::new("min_node_count", at_least(0)),
    Field::new("max_node_count", at_least(0)),
    Field::ignored("is_default", Kind::Boolean),
    Field::read_only("stack_id"),
    Field::ignored("status", Kind::Choice(STATUSES)),
    Field::ignored("status_reason", LONG),
    Field::ignored("version", LONG),
    Field::new("merge_labels", Kind::Boolean),
    Field::ignored("labels_overridden", Kind::Labels),
    Field::ignored("labels_added", Kind::Labels),
    Field::ignored("labels_skipped", Kind::Labels),
    Field::new("node_labels", Kind::Strings).since(Version::NODE_LABELS),
    Field::new("node_taints", Kind::ListOfStrings).since(Version::NODE_LABELS),
    Field::read_only("created_at"),
    Field::read_only("updated_at"),
];

/// What a patch may not touch, which is all but the two bounds and what the nodes carry.
pub const PATCH_RULES: Rules = Rules {
    internal: &[
        "name",
        "cluster_id",
        "docker_volume_size",
        "labels",
        "flavor_id",
        "image_id",
        "node_addresses",
        "node_count",
        "role",
        "is_default",
        "stack_id",
        "status",
        "status_reason",
        "version",
    ],
    mandatory: &[],
    dictionaries: &["node_labels"],
    lists: &["node_taints"],
};
