//! What is told first, when there is more than one thing to tell.

use super::{CLUSTER_PATCH, Rule, SEVERAL, TEMPLATE_PATCH, rule, when};
use crate::differential::request::Request;

const ORDER: &str = "order of checks";

/// Whether something about it may be a mistake; what a user may not see, or not do, is another one, which is not counted.
fn has_a_mistake(request: &Request) -> bool {
    request.mistakes > 0
}

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
    when(
        rule(ORDER, "*", "status", "403 Policy doesn't allow *", "400 *"),
        has_a_mistake,
    ),
    when(rule(ORDER, "GET *", "status", "404 *", "400 *"), has_a_mistake),
    rule(
        SEVERAL,
        "POST *nodegroups",
        "status",
        "409 Cluster API address is not available yet",
        "400 *",
    ),
    when(
        rule(
            SEVERAL,
            "*",
            "status",
            "409 Multiple * exist with same name*",
            "400 *",
        ),
        has_a_mistake,
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
    when(
        rule(SEVERAL, "*", "status", "400 *", "404 *could not be found."),
        has_a_mistake,
    ),
    when(
        rule(
            SEVERAL,
            "*",
            "status",
            "400 *",
            "409 Multiple * exist with same name*",
        ),
        has_a_mistake,
    ),
    when(rule(SEVERAL, "*", "error", "4*", "4*"), |request| {
        request.mistakes > 1
    }),
    when(rule(SEVERAL, "*", "status", "4*", "4*"), |request| {
        request.mistakes > 1
    }),
    // A mistake in an argument, told with the value of another one.
    when(
        rule(
            SEVERAL,
            "*",
            "status",
            "500 __str__ returned non-string *",
            "400 *",
        ),
        |request| request.mistakes > 1,
    ),
    // An attribute that a patch may not add, or not add once more, is not counted as a mistake.
    when(
        rule(
            SEVERAL,
            "PATCH *",
            "error",
            "400 Couldn't apply patch *",
            "400 Adding a new attribute *",
        ),
        has_a_mistake,
    ),
    when(
        rule(
            SEVERAL,
            "PATCH *",
            "error",
            "400 Couldn't apply patch *",
            "400 The attribute * has existed, *",
        ),
        has_a_mistake,
    ),
    // Nor is an attribute of a cluster that cannot be changed.
    when(
        rule(
            SEVERAL,
            CLUSTER_PATCH,
            "error",
            "400 Invalid input for field/attribute *",
            "400 cannot change cluster property(ies) *",
        ),
        has_a_mistake,
    ),
    // Nor is the identity of what a sequence has made, which may be of another kind than the route wants.
    when(
        rule(SEVERAL, "PATCH *", "status", "404 *could not be found*", "400 *"),
        has_a_mistake,
    ),
    // Nor is a template of another project.
    when(
        rule(
            SEVERAL,
            "POST *",
            "status",
            "404 ClusterTemplate *could not be found.",
            "400 *",
        ),
        has_a_mistake,
    ),
    rule(SEVERAL, "*", "error", "400 Unknown argument: *", "400 *"),
    rule(
        SEVERAL,
        "POST /v1/certificates",
        "status",
        "404 A key pair None could not be found.",
        "400 *",
    ),
    // After all that have a row of their own.
    when(
        rule(
            "a mistake in a request on which Magnum's API stops with an error of its own",
            "*",
            "status",
            "500 *",
            "400 Invalid input for field/attribute *",
        ),
        has_a_mistake,
    ),
];
