//! Requests from the API's description, by chance.
//!
//! Most of a request is what a client would send, and one thing about it is not. Which routes are asked depends on who is behind
//! the APIs.

mod bodies;
mod dice;
mod values;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use self::bodies::Attribute;
pub use self::dice::Dice;
use super::request::{Body, Request};
use super::saved::Saved;
use super::stage::Behind;

/// One operation of the description.
#[derive(Debug)]
struct Route {
    method: String,
    path: String,
    arguments: Vec<Attribute>,
    body: Shape,
}

#[derive(Debug)]
enum Shape {
    None,
    Object(Vec<Attribute>),
    /// A JSON patch of something with these attributes.
    Patch(Vec<Attribute>),
}

/// Makes requests.
#[derive(Debug)]
pub struct Generator {
    routes: Vec<Route>,
}

/// What is not Magnum's.
const OURS_ALONE: [&str; 5] = [
    "/v1/openapi.json",
    "/actions/rebuild",
    "/actions/reboot",
    "/operations",
    "/driver/",
];

/// What a conductor has to answer.
const ANSWERED_BY_CONDUCTORS: [&str; 3] = ["/v1/certificates", "/v1/credentials", "/actions/upgrade"];

/// Whether a route is asked. With conductors, what these answer and do; else all that they do not answer.
fn is_asked(behind: Behind, path: &str) -> bool {
    let is_one = |of: &[&str]| of.iter().any(|part| path.contains(part));
    let is_answered = is_one(&ANSWERED_BY_CONDUCTORS);
    !is_one(&OURS_ALONE)
        && match behind {
            Behind::Nobody => !is_answered,
            Behind::Conductors => is_answered || path.starts_with("/v1/clusters"),
        }
}

const METHODS: [&str; 5] = ["get", "post", "patch", "delete", "put"];

/// Who may do most things.
const USERS: [(&str, u32); 2] = [("anna", 6), ("chief", 4)];
/// Another project's member, one who may only read, one with a role that nobody knows, somebody without a token, and with one
/// that is none.
const OTHERS: [(&str, u32); 5] = [
    ("bert", 8),
    ("rita", 5),
    ("gus", 3),
    ("nobody", 2),
    ("stranger", 1),
];

impl Generator {
    /// From our description of the API.
    pub fn new(description: &Value, behind: Behind) -> Result<Self> {
        let mut routes = Vec::new();
        for (path, operations) in description["paths"].as_object().context("no paths")? {
            for (method, operation) in operations.as_object().context("no operations")? {
                if METHODS.contains(&method.as_str()) && is_asked(behind, path) {
                    routes.push(Route {
                        method: method.to_uppercase(),
                        path: path.clone(),
                        arguments: bodies::arguments(operation, description),
                        body: shape(path, operation, description),
                    });
                }
            }
        }
        ensure!(routes.len() > 5, "only {} routes", routes.len());
        Ok(Self { routes })
    }

    /// The next one.
    pub fn request(&self, dice: &mut Dice, saved: &Saved) -> Result<Request> {
        let route = dice.weighted(&self.routes, weight).context("no route")?;
        dice.begin();
        let users: &[(&str, u32)] = if dice.mistake(8) { &OTHERS } else { &USERS };
        let mut request = Request {
            user: dice.weighted(users, |user| user.1).context("nobody")?.0,
            method: route.method.clone(),
            path: path(&route.path, dice, saved),
            query: query(route, dice),
            version: version(dice),
            accept: Some("application/json"),
            content_type: None,
            body: None,
            route: route.path.clone(),
            mistakes: 0,
        };
        let body = match &route.body {
            Shape::None => None,
            Shape::Object(attributes) => Some(bodies::object(attributes, dice)),
            Shape::Patch(attributes) => Some(bodies::patch(attributes, dice)),
        };
        if let Some(body) = body {
            request.content_type = Some("application/json");
            request.body = Some(body);
        }
        if dice.mistake(5) {
            spoil(&mut request, dice);
        }
        request.mistakes = dice.mistakes();
        Ok(request)
    }
}

/// Writes of what an API keeps by itself show most.
fn weight(route: &Route) -> u32 {
    match (route.method.as_str(), route.path.as_str()) {
        ("POST" | "PATCH", "/v1/clustertemplates" | "/v1/clustertemplates/{ident}") => 8,
        ("POST" | "PATCH", _) => 5,
        ("GET", _) => 2,
        _ => 1,
    }
}

fn shape(path: &str, operation: &Value, description: &Value) -> Shape {
    let content = operation["requestBody"]["content"].as_object();
    let Some(kind) = content.and_then(|kinds| kinds.values().next()) else {
        return Shape::None;
    };
    let schema = bodies::resolved(&kind["schema"], description);
    if schema["type"] != "array" {
        return Shape::Object(bodies::attributes(schema, description));
    }
    // What a patch changes is what the resource shows.
    let shown =
        &description["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
    Shape::Patch(bodies::attributes(
        bodies::resolved(shown, description),
        description,
    ))
}

fn path(template: &str, dice: &mut Dice, saved: &Saved) -> String {
    let mut path = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        path.push_str(before);
        path.push_str(&values::ident(template, name, dice, saved));
        rest = after;
    }
    path + rest
}

fn query(route: &Route, dice: &mut Dice) -> Vec<(String, String)> {
    let mut query = Vec::new();
    for argument in &route.arguments {
        if argument.required || dice.once_in(6) {
            query.push((argument.name.clone(), values::argument(argument, dice)));
        }
    }
    if dice.mistake(15) {
        let first = query.first().cloned();
        match (dice.below(3), first) {
            (0, Some(first)) => query.push(first),
            (1, _) => query.push(values::other_argument(dice)),
            _ => query.push(("unknown".to_owned(), "1".to_owned())),
        }
    }
    query
}

fn version(dice: &mut Dice) -> Option<String> {
    if dice.mistake(8) {
        return match dice.below(4) {
            0 => None,
            1 => Some(values::odd_version(dice)),
            _ => Some(format!("1.{}", 1 + dice.below(14))),
        };
    }
    Some("1.14".to_owned())
}

/// Changes something that is not an attribute's value.
fn spoil(request: &mut Request, dice: &mut Dice) {
    match dice.below(8) {
        0 => {
            request.method = dice
                .pick(&["GET", "POST", "PATCH", "DELETE", "PUT", "HEAD"])
                .to_owned()
        }
        1 => request
            .path
            .push_str(dice.pick(&["/", "/x", "/detail", "//", "%20", "%2Fx"])),
        2 => request.accept = values::accept(dice),
        3 => request.content_type = values::content_type(dice),
        4 => request.body = Some(Body::Text(values::broken_body(dice).to_owned())),
        5 => {
            request.path = request
                .path
                .replacen("/v1", dice.pick(&["/v2", "", "/V1", "/v1.0", "//v1"]), 1)
        }
        6 => request.body = None,
        _ => {
            if let Some(Body::Json(body)) = &mut request.body {
                *body = values::broken(dice);
            }
        }
    }
}
