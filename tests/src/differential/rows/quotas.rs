//! Quotas and federations.

use super::{Rule, body_has, rule, when};

const QUOTA_ID: &str = "`id` in a POST or PATCH of a quota";

pub const RULES: &[Rule] = &[
    rule(
        "an empty patch of a federation",
        "PATCH /v1/federations/{ident}",
        "status",
        "500 *",
        "400 A patch of a federation needs at least one operation.",
    ),
    rule(
        "POST of a federation",
        "POST /v1/federations",
        "status",
        "202",
        "501 *",
    ),
    rule(
        "null for `hard_limit`",
        "*/v1/quotas*",
        "status",
        "500 *",
        "400 *hard_limit*",
    ),
    rule(
        "a quota for no project (absent, null, empty)",
        "POST /v1/quotas",
        "status",
        "500 *",
        "400 Must provide a valid project ID.",
    ),
    rule(
        QUOTA_ID,
        "*/v1/quotas*",
        "*",
        "400 *invalid literal for int() with base 10*",
        "*",
    ),
    rule(QUOTA_ID, "*/v1/quotas*", "status", "500 *", "2*"),
    when(
        rule(
            "`resource` of a quota in other letters, in a path (`cluster`)",
            "*/v1/quotas/*",
            "*",
            "400 *Value should be one of: Cluster",
            "*",
        ),
        |request| {
            request
                .path
                .to_lowercase()
                .trim_end_matches('/')
                .ends_with("/cluster")
        },
    ),
    when(rule(QUOTA_ID, "* /v1/quotas*", "*", "*", "*"), |request| {
        body_has(request, "\"id\"")
    }),
    rule(
        "null for `role` of a node group, for `resource` of a quota",
        "* /v1/quotas*",
        "status",
        "500 Field `resource' cannot be None",
        "*",
    ),
    rule(
        "null for `role` of a node group, for `resource` of a quota",
        "POST *nodegroups",
        "status",
        "500 Field `role' cannot be None",
        "*",
    ),
];
