//! Clusters.

use super::{CLUSTER_PATCH, Rule, TEMPLATE_PATCH, body_has, rule, when};

const VOLUME_SIZE: &str = "label `boot_volume_size` or `min_node_count` that is no number";
const SUBNET: &str = "a fixed subnet that is not one of the fixed network";
const FAULTS: &str = "`faults` in a POST";

pub const RULES: &[Rule] = &[
    rule(
        "PATCH in a status that does not allow it",
        CLUSTER_PATCH,
        "status",
        "*",
        "409 Updating a cluster when status is *",
    ),
    when(
        rule(
            "`remove` of `master_count` in a patch of a cluster",
            CLUSTER_PATCH,
            "status",
            "202",
            "400 cannot change *master_count",
        ),
        |request| body_has(request, "remove"),
    ),
    rule(
        "`remove` of a dictionary or of a health in a patch",
        CLUSTER_PATCH,
        "status",
        "500 *",
        "*",
    ),
    rule(
        VOLUME_SIZE,
        "*",
        "status",
        "*",
        "400 boot_volume_size must be an integer of at least 0, not *",
    ),
    rule(
        VOLUME_SIZE,
        "*",
        "status",
        "500 boot_volume_size must be an integer",
        "400 *",
    ),
    rule(
        FAULTS,
        "POST /v1/clusters",
        "*",
        "400 *Value not a valid dict*",
        "*",
    ),
    rule(
        SUBNET,
        "POST *",
        "*",
        "*",
        "400 The fixed subnet * is not one of the fixed network *",
    ),
    rule(
        SUBNET,
        TEMPLATE_PATCH,
        "*",
        "*",
        "400 The fixed subnet * is not one of the fixed network *",
    ),
    rule(
        "PATCH of `node_count` outside the group's bounds",
        CLUSTER_PATCH,
        "status",
        "202",
        "400 Resizing * outside the allowed range: *",
    ),
];
