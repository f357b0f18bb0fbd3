//! Versions, paths, methods, arguments and types of bodies.

use super::{OF_ROUTE, Rule, body_has, rule, when};
use crate::differential::request::Request;

const METHOD: &str =
    "a method that a path does not take: PATCH or DELETE of a list, POST to a single resource";
const UNKNOWN: &str = "several unknown arguments of a query";
const BELOW: &str = "a path below a collection that has none (`/v1/mservices/1`, `/v1/clusters/x/detail`)";
const FORM: &str = "form-encoded bodies, and bodies without a `Content-Type`";
const OF_FRAMEWORK: &str = "texts of framework errors (404 of an unknown route, 405, 406)";
const LATER: &str = "406 for a route that a later version has";

pub const RULES: &[Rule] = &[
    rule("`GET /v1`", "GET /v1", "/versions", "", "*"),
    rule(
        "highest microversion",
        "*",
        "*max_version",
        "\"1.14\"",
        "\"1.16\"",
    ),
    rule(LATER, "*", "route of a later version", "*", "*"),
    rule(LATER, "*", "status", "*", "406 *but the requested API *"),
    rule(OF_FRAMEWORK, "*", "error", "404 ", "404 *"),
    rule(FORM, "*", "*", "*", "415 *"),
    when(rule("a body of a GET", "*", "*", "*", "*"), reads_with_a_body),
    rule(METHOD, "*", "status", "400 *", "405 *"),
    rule(METHOD, "*", "status", "404 *", "405 *"),
    when(
        rule(
            "a PATCH of `/v1/quotas` that names project and resource in its body",
            "PATCH /v1/quotas",
            "status",
            "*",
            "405 *",
        ),
        |request| body_has(request, "\"project_id\"") && body_has(request, "\"resource\""),
    ),
    // Its body is read first there, and may be of the wrong kind.
    rule(
        METHOD,
        "PATCH *",
        "status",
        "500 'list' object has no attribute *",
        "405 *",
    ),
    when(
        rule(
            "an unknown word before a collection (`/v2/clusters`)",
            "*",
            "status",
            "*",
            "404 *",
        ),
        |request| !request.path.starts_with("/v1/") && !request.path.starts_with("//v1"),
    ),
    when(
        rule("an escaped slash (`%2F`) in a path", "*", "*", "*", "404 *"),
        |request| request.path.contains("%2F"),
    ),
    when(rule(BELOW, "*", "*", "*", "404 *"), |request| {
        ["/x", "/detail", "%20"]
            .iter()
            .any(|end| request.path.ends_with(end))
    }),
    when(
        rule("an escaped slash (`%2F`) in a path", "*", "header *", "*", "*"),
        |request| request.path.contains("%2F"),
    ),
    when(
        rule(
            "an unknown word before a collection (`/v2/clusters`)",
            "*",
            "header *",
            "*",
            "*",
        ),
        |request| !request.path.starts_with("/v1/"),
    ),
    when(
        rule(
            "an unknown word before a collection (`/v2/clusters`)",
            "*",
            "error",
            "404 *",
            "404 *",
        ),
        |request| !request.path.starts_with("/v1/"),
    ),
    rule(
        "`/detail/` with the slash at its end",
        "*/detail",
        "*",
        "404 The %(name)s resource %(id)s could not be found.",
        "*",
    ),
    when(rule(BELOW, "*", "header *", "*", ""), |request| {
        request.path.ends_with("/x") || request.path.ends_with("/detail")
    }),
    when(
        rule("an escaped slash (`%2F`) in a path", "PATCH *", "*", "*", "400 *"),
        |request| request.path.contains("%2F"),
    ),
    rule(UNKNOWN, "*", "error", "400 *", "400 Unknown argument: *"),
    rule(
        UNKNOWN,
        "*",
        "error",
        "400 Unknown argument: *",
        "400 Missing argument: *",
    ),
    when(
        rule(
            OF_ROUTE,
            "* /v1/quotas/{project}/{resource}",
            "status",
            "*",
            "400 Unknown argument: *",
        ),
        |request| {
            let in_query = request.query.iter().any(|(name, _)| name == "project_id");
            in_query || body_has(request, "\"project_id\"") || body_has(request, "\"resource\"")
        },
    ),
    when(
        rule(
            "an escaped slash (`%2F`) in a path",
            "GET *",
            "status",
            "404 ",
            "*",
        ),
        |request| request.path.contains("%2F"),
    ),
];

fn reads_with_a_body(request: &Request) -> bool {
    matches!(request.method.as_str(), "GET" | "HEAD") && request.body.is_some()
}
