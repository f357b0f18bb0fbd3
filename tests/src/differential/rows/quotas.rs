//! Quotas and federations.

use super::{Rule, body_has, rule, when};
use crate::differential::request::Request;

const QUOTA_ID: &str = "`id` in a POST or PATCH of a quota";

const NULL: &str = "null for `role` or `uuid` of a node group, for `resource` of a quota";

pub const RULES: &[Rule] = &[
    rule(
        "an empty patch of a federation",
        "PATCH /v1/federations/{ident}",
        "status",
        "500 *",
        "400 A patch of a federation needs at least one operation.",
    ),
    rule(
        "a number for a cluster's name in a patch of a federation",
        "PATCH /v1/federations/{ident}",
        "status",
        "500 Multiple rows were found *",
        "404 Cluster * could not be found.",
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
    rule(QUOTA_ID, "*/v1/quotas*", "*", "400 *attribute id. *", "*"),
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
            // MySQL takes a blank at the end for none as well.
            let path = request.path.to_lowercase();
            let path = path.trim_end_matches('/').trim_end_matches("%20");
            path.ends_with("/cluster")
        },
    ),
    rule(QUOTA_ID, "* /v1/quotas*", "/id", "*", "*"),
    when(
        rule(QUOTA_ID, "PATCH /v1/quotas*", "/updated_at", "*", "null"),
        names_an_id,
    ),
    when(rule(QUOTA_ID, "* /v1/quotas*", "status", "*", "20*"), names_an_id),
    when(rule(QUOTA_ID, "* /v1/quotas*", "status", "5*", "4*"), names_an_id),
    rule(
        NULL,
        "* /v1/quotas*",
        "status",
        "500 Field `resource' cannot be None",
        "*",
    ),
    rule(
        NULL,
        "POST *nodegroups",
        "status",
        "500 Field `role' cannot be None",
        "*",
    ),
    rule(
        NULL,
        "POST *nodegroups",
        "status",
        "500 Field `uuid' cannot be None",
        "*",
    ),
];

fn names_an_id(request: &Request) -> bool {
    body_has(request, "\"id\"")
}
