//! Node groups and resizes.

use super::{OTHER_PROJECT, Rule, of_administrator, rule, when};

const GROUP_LOOKED_UP: &str = "an unknown image or flavor of a node group";
const STATUS_OF_GROUPS: &str = "a resize, or a change of node groups, in a status that does not allow it";
const LIST: &str = "a list as patch value of `node_taints`";
const GROUP_POST: &str = "`is_default`, `status`, `version`, `id` in a POST of a node group";
const GROUP_NULL: &str = "a node group without a `name`, or with null for it or a count";
const BOUNDS: &str = "bounds of node groups in lists";
const GROUP: &str = "* /v1/clusters/{ident}/nodegroups/{group}";
const GROUPS: &str = "* /v1/clusters/{ident}/nodegroups*";

pub const RULES: &[Rule] = &[
    when(
        rule(OTHER_PROJECT, "* /v1/clusters/{ident}/*", "*", "404 *", "*"),
        of_administrator,
    ),
    when(
        rule(
            OTHER_PROJECT,
            "* /v1/clusters/{ident}/*",
            "*",
            "*",
            "409 Multiple clusters exist with same name*",
        ),
        of_administrator,
    ),
    rule(
        "`status_reason` of a cluster while one of its node groups changes",
        "GET /v1/clusters*",
        "*/status_reason",
        "*",
        "null",
    ),
    rule(BOUNDS, GROUPS, "/nodegroups/*/max_node_count", "null", "*"),
    rule(BOUNDS, GROUPS, "/nodegroups/*/min_node_count", "0", "*"),
    rule(
        STATUS_OF_GROUPS,
        "POST /v1/clusters/{ident}/*",
        "*",
        "*",
        "409 * when status is *",
    ),
    rule(STATUS_OF_GROUPS, GROUP, "status", "*", "409 * status is *"),
    rule(
        "a resize with null for `node_count` or in `nodes_to_remove`",
        "POST /v1/clusters/{ident}/actions/resize",
        "status",
        "*",
        "400 *node*None*",
    ),
    rule(
        "`/labels/x` in the patch of a node group",
        GROUP,
        "*",
        "*",
        "400 '/labels/* is an internal attribute and can not be updated",
    ),
    rule(GROUP_POST, "POST *nodegroups", "/id", "*", ""),
    rule(GROUP_POST, "POST *nodegroups", "/is_default", "*", ""),
    rule(GROUP_POST, "POST *nodegroups", "/version", "*", ""),
    rule(GROUP_POST, "POST *nodegroups", "/status*", "*", ""),
    rule(GROUP_POST, "POST *nodegroups", "for ever", "*", "*"),
    rule(
        GROUP_POST,
        "POST *nodegroups",
        "status",
        "500 Field `id' cannot be None",
        "202",
    ),
    rule(
        GROUP_LOOKED_UP,
        "POST *nodegroups",
        "status",
        "202",
        "400 Image * could not be found.",
    ),
    rule(
        GROUP_LOOKED_UP,
        "POST *nodegroups",
        "status",
        "202",
        "400 Unable to find flavor *",
    ),
    rule(
        GROUP_NULL,
        "POST *nodegroups",
        "status",
        "*",
        "400 *attribute name. Value: 'None'*",
    ),
    rule(
        GROUP_NULL,
        "POST *nodegroups",
        "status",
        "500 '>' not supported between instances of *",
        "400 *_node_count. Value: 'None'. A value is needed.",
    ),
    rule(
        "`node_labels`, `node_taints` after their removal by a patch",
        GROUP,
        "/node_*",
        "null",
        "*",
    ),
    when(
        rule(
            "`node_labels`, `node_taints` of a node group",
            GROUP,
            "*",
            "*",
            "400 *node_*",
        ),
        |request| request.minor() < 14,
    ),
    rule(
        "`node_labels`, `node_taints` of a node group",
        "POST *nodegroups",
        "*",
        "*",
        "400 * of a node group needs microversion 1.14 or later.",
    ),
    rule(
        "a control character in the name or the role of a node group",
        "POST *nodegroups",
        "status",
        "*",
        "400 *should not have control characters",
    ),
    rule(
        "`next` of a list that was filtered (`role`, `all_tenants`)",
        "GET *",
        "/next",
        "*",
        "*",
    ),
    rule(
        "Master count below 1",
        "POST *",
        "error",
        "400 *size cannot be an even number.",
        "400 *size must be at least 1.",
    ),
    rule(
        LIST,
        "PATCH *nodegroups*",
        "*",
        "*Wrong type. Expected '(<class 'str'>, <class 'int'>)', got '<class 'list'>'",
        "*",
    ),
];
