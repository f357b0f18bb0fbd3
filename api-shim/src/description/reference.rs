//! The same as a page for people: every route with what it takes and answers, in the highest version.

use std::fmt::Write as _;

use super::document::faults;
use crate::microversion::Version;
use crate::openapi::{Model, glossary};
use crate::policy::Rule;
use crate::routes::{Body, ROUTES, ResponseKind, Route};
use crate::validation::body::{Access, Field};

const HEAD: &str = "\
# API reference

Every route of `magnum-api` in microversion MAX, generated from the code: `magnum-api reference` prints this page, and
`magnum-api openapi --microversion 1.9` the OpenAPI document of any version, which a running API serves at
`/v1/openapi.json`, with a token as everything below `/v1`. What a role may do by default is in [policy.md](policy.md);
what differs from Python Magnum in [differences.md](differences.md).

Requests and answers are JSON. `OpenStack-API-Version: container-infra MAX` asks for a version, `latest` for the
highest; without the header it is MIN. Errors are `{\"errors\": [{\"title\", \"detail\", \"status\", \"code\", \"request_id\",
\"links\"}]}`. In a body, a text for a number or a word for a boolean (`\"yes\"`) is understood; null is as good as absent
where nothing else is said.
";

/// The page.
pub fn reference() -> String {
    let mut page = HEAD
        .replace("MAX", &Version::MAX.to_string())
        .replace("MIN", &Version::MIN.to_string());
    for route in ROUTES {
        one(&mut page, route);
    }
    page
}

// Writing to a String cannot fail.

fn one(page: &mut String, route: &Route) {
    let _ = writeln!(
        page,
        "\n## {} {}\n\n{}\n",
        route.method,
        route.documented_path(),
        route.about
    );
    if route.since > Version::MIN {
        let _ = writeln!(page, "- From version {} on.", route.since);
    }
    let rules: Vec<String> = route
        .rules()
        .map(|rule: Rule| format!("`{}`", rule.name()))
        .collect();
    if !rules.is_empty() {
        let _ = writeln!(page, "- Policy: {}.", rules.join(", "));
    }
    match (route.answer.status(), answer(route)) {
        (Some(status), Some(what)) => {
            let _ = writeln!(page, "- Answer: {status}, {what}");
        }
        (Some(status), None) => {
            let _ = writeln!(page, "- Answer: {status}, no body.");
        }
        (None, _) => {}
    }
    let statuses: Vec<String> = faults(route).iter().map(u16::to_string).collect();
    let _ = writeln!(page, "- Errors: {}.", statuses.join(", "));
    let arguments: Vec<(&str, String)> = route
        .parameters()
        .map(|name| (name, "path".to_owned()))
        .chain(
            route
                .query
                .iter()
                .map(|argument| (argument.name, with_version("query", argument.since))),
        )
        .collect();
    if !arguments.is_empty() {
        page.push_str("\n| Argument | In | What |\n|---|---|---|\n");
        for (name, place) in arguments {
            let _ = writeln!(page, "| `{name}` | {place} | {} |", glossary::about(name));
        }
    }
    match route.body {
        Body::None => {}
        Body::Object(_, fields) => {
            page.push_str("\n| Attribute | Form | What |\n|---|---|---|\n");
            for field in fields.iter().filter(|field| field.is_given(Version::MAX)) {
                row(page, field);
            }
        }
        Body::Free => page.push_str("\nBody: an object, as the driver documents it, or nothing.\n"),
        Body::Patch(rules) => {
            let refused: Vec<String> = rules.refused().map(|name| format!("`{name}`")).collect();
            let _ = writeln!(
                page,
                "\nBody: a JSON patch (`add`, `replace`, `remove`). Not to be changed: {}.",
                refused.join(", ")
            );
        }
    }
}

fn with_version(what: &str, since: Version) -> String {
    if since > Version::MIN {
        format!("{what}, from {since} on")
    } else {
        what.to_owned()
    }
}

fn row(page: &mut String, field: &Field) {
    let form = match field.access {
        Access::Mandatory => format!("{}, needed", field.kind),
        _ => field.kind.to_string(),
    };
    let about = match field.access {
        Access::Ignored => "Taken and ignored.",
        _ => glossary::about_field(field),
    };
    let _ = writeln!(
        page,
        "| `{}` | {} | {about} |",
        field.name,
        with_version(&form, field.since)
    );
}

fn answer(route: &Route) -> Option<String> {
    let attributes = |model: Model| {
        let schema = (model.schema)(Version::MAX);
        let names: Vec<String> = schema.properties.keys().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    Some(match route.answer {
        ResponseKind::Empty(_) | ResponseKind::Never => return None,
        ResponseKind::Uuid(_) => "with `uuid`.".to_owned(),
        ResponseKind::One(_, model) => format!("with {}.", attributes(model)),
        ResponseKind::Page(key, model) => {
            format!(
                "with `{key}` and, on a full page, `next`. Each has {}.",
                attributes(model)
            )
        }
        ResponseKind::All(key, model) => format!("with `{key}`. Each has {}.", attributes(model)),
        ResponseKind::Document(about) => about.to_owned(),
    })
}
