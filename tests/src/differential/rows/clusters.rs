//! Clusters.

use super::{CLUSTER_PATCH, Rule, TEMPLATE_PATCH, after, body_has, of_administrator, rule, when};
use crate::differential::request::Request;

const VOLUME_SIZE: &str = "label `boot_volume_size` or `min_node_count` that is no number";
const SUBNET: &str = "a fixed subnet that is not one of the fixed network";
const HEALTH: &str = "`health_status`, `health_status_reason` in POST";
const FAULTS: &str = "`faults` in a POST";
const FAILED: &str = "`faults` of a cluster whose create or delete failed";
const REPORTED: &str = "a health that a monitor reports (PATCH of `health_status`, `health_status_reason`)";
const UNSEEN: &str = "a template that the caller does not see any more";

pub const RULES: &[Rule] = &[
    rule(
        UNSEEN,
        "* /v1/c*",
        "status",
        "404 ClusterTemplate * could not be found.",
        "20*",
    ),
    // Magnum's conductor cannot delete a node group then.
    unseen("*/status", "\"UPDATE_FAILED\"", "\"UPDATE_COMPLETE\""),
    unseen("*/status_reason", "*", "*"),
    unseen("*/faults*", "*ClusterTemplate * could not be found.*", ""),
    unseen("*/node_count", "*", "*"),
    unseen("/nodegroups", "*", "*"),
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
    when(
        rule(
            "`remove` of `master_count` in a patch of a cluster",
            CLUSTER_PATCH,
            "error",
            "400 cannot change *",
            "400 cannot change *master_count*",
        ),
        |request| body_has(request, "remove"),
    ),
    rule(
        "`master_count: null`",
        "POST /v1/clusters",
        "status",
        "500 *",
        "400 *attribute master_count. *None*",
    ),
    rule(FAULTS, "POST /v1/clusters", "*", "400 *attribute faults. *", "*"),
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
    after(
        rule(REPORTED, "GET /v1/clusters*", "*/health_status", "*", "*"),
        reports_health,
    ),
    after(
        rule(REPORTED, "GET /v1/clusters*", "*/health_status_reason*", "*", "*"),
        reports_health,
    ),
    after(
        rule(REPORTED, "GET /v1/clusters*", "*/updated_at", "null", "*"),
        reports_health,
    ),
    rule(HEALTH, "GET /v1/clusters*", "*/health_status", "*", "null"),
    rule(HEALTH, "GET /v1/clusters*", "*/health_status_reason*", "*", ""),
    rule(FAILED, "GET /v1/clusters*", "*/faults/*", "", "*"),
    rule(
        FAILED,
        "GET /v1/clusters/{ident}/nodegroups*",
        "*/status",
        "\"CREATE_IN_PROGRESS\"",
        "\"CREATE_FAILED\"",
    ),
    rule(
        FAILED,
        "GET /v1/clusters/{ident}/nodegroups*",
        "*/status",
        "*",
        "\"DELETE_FAILED\"",
    ),
    rule(
        FAILED,
        "GET /v1/clusters/{ident}/nodegroups*",
        "*/status_reason",
        "null",
        "\"*\"",
    ),
    after(
        rule(
            FAILED,
            "GET /v1/clusters/{ident}/nodegroups/{group}",
            "/updated_at",
            "null",
            "*",
        ),
        makes_a_cluster,
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

const fn unseen(place: &'static str, theirs: &'static str, ours: &'static str) -> Rule {
    let rule = rule(UNSEEN, "GET /v1/clusters*", place, theirs, ours);
    after(rule, is_upgrade_by_administrator)
}

fn is_upgrade_by_administrator(request: &Request) -> bool {
    of_administrator(request) && request.route.ends_with("/actions/upgrade")
}

fn makes_a_cluster(request: &Request) -> bool {
    request.method == "POST" && request.route == "/v1/clusters"
}

fn reports_health(request: &Request) -> bool {
    request.method == "PATCH" && body_has(request, "/health_status")
}
