//! What is told first, when there is more than one thing to tell.

use super::{Rule, SEVERAL, TEMPLATE_PATCH, rule, when};

const ORDER: &str = "order of checks";

pub const RULES: &[Rule] = &[
    rule(ORDER, "*", "status", "4*", "403 Policy doesn't allow *"),
    rule(ORDER, "*", "status", "5*", "403 Policy doesn't allow *"),
    rule(
        ORDER,
        "*",
        "status",
        "4*",
        "403 Not authorized to set public or hidden flag for cluster template.",
    ),
    rule(ORDER, "*", "status", "403 Policy doesn't allow *", "400 *"),
    rule(ORDER, "GET *", "status", "404 *", "400 *"),
    rule(
        SEVERAL,
        "POST *nodegroups",
        "status",
        "409 Cluster API address is not available yet",
        "400 *",
    ),
    rule(
        SEVERAL,
        "*",
        "status",
        "409 Multiple * exist with same name*",
        "400 *",
    ),
    rule(
        SEVERAL,
        "POST *",
        "error",
        "400 *Mandatory field missing.",
        "400 Unknown attribute *",
    ),
    rule(
        SEVERAL,
        TEMPLATE_PATCH,
        "error",
        "400 *is referenced by one or multiple clusters.",
        "400 *",
    ),
    rule(
        SEVERAL,
        TEMPLATE_PATCH,
        "error",
        "400 *",
        "400 *is referenced by one or multiple clusters.",
    ),
    rule(
        SEVERAL,
        "POST /v1/federations",
        "error",
        "400 No hostcluster specified.*",
        "400 *",
    ),
    rule(SEVERAL, "*", "status", "400 *", "404 *could not be found."),
    rule(
        SEVERAL,
        "*",
        "status",
        "400 *",
        "409 Multiple * exist with same name*",
    ),
    when(rule(SEVERAL, "*", "error", "4*", "4*"), |request| {
        request.mistakes > 1
    }),
    when(rule(SEVERAL, "*", "status", "4*", "4*"), |request| {
        request.mistakes > 1
    }),
    rule(SEVERAL, "*", "error", "400 Unknown argument: *", "400 *"),
    rule(
        SEVERAL,
        "POST /v1/certificates",
        "status",
        "404 A key pair None could not be found.",
        "400 *",
    ),
];
