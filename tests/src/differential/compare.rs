//! Where two answers differ, with what differs in every answer taken out.
//!
//! Out of every answer are taken (rows of `docs/differences.md`, "REST: every answer"): the highest microversion, `request_id`, the
//! texts of the framework's errors, the keys of the 406 of a version out of range, the order of choices in a text, a template's
//! `driver` below 1.15, labels and taints of nodes below 1.14. Besides: numbers of rows, the time of what has just been written,
//! certificates, and what each side makes up ([`Saved`]); of a list that is sorted by this, only status and headers are compared.

use serde_json::{Map, Value};

use super::request::Request;
use super::rows::body_has;
use super::saved::{Saved, Side};
use super::stage::Answer;

/// One place, and what each has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `status` (with the error's text), `error`, `header NAME`, or a JSON pointer into the body.
    pub place: String,
    pub theirs: String,
    pub ours: String,
}

/// Every place where they differ.
pub fn compare(request: &Request, theirs: &Answer, ours: &Answer, saved: &Saved) -> Vec<Finding> {
    let their_body = general(&theirs.body, &theirs.base, saved, Side::Magnum);
    let our_body = general(&ours.body, &ours.base, saved, Side::Ours);
    let their_outcome = outcome(theirs.status, &their_body);
    let our_outcome = outcome(ours.status, &our_body);
    if theirs.status != ours.status {
        return vec![Finding {
            place: "status".to_owned(),
            theirs: their_outcome,
            ours: our_outcome,
        }];
    }
    // Theirs has no text for who does not ask for JSON.
    let has_no_text = !their_body.is_object() || is_of_the_framework(&their_body);
    if is_of_a_later_version(&our_outcome) && (is_of_a_later_version(&their_outcome) || has_no_text) {
        return vec![Finding {
            place: "route of a later version".to_owned(),
            theirs: their_outcome,
            ours: our_outcome,
        }];
    }
    let mut findings = headers(request, theirs, ours, saved);
    if theirs.status < 400 && is_in_an_order_of_its_own(request, saved) {
        return findings;
    }
    if theirs.status < 400 {
        bodies(request, "", &their_body, &our_body, &mut findings);
    } else if their_outcome != our_outcome && !is_of_the_framework(&their_body) {
        findings.push(Finding {
            place: "error".to_owned(),
            theirs: their_outcome,
            ours: our_outcome,
        });
    }
    findings
}

/// Whether a list is sorted by what each side makes up.
fn is_in_an_order_of_its_own(request: &Request, saved: &Saved) -> bool {
    let sorts_by_it = request
        .query
        .iter()
        .any(|(name, value)| name == "sort_key" && matches!(value.as_str(), "name" | "uuid"));
    sorts_by_it && saved.count() > 0
}

/// The body with placeholders for what is each side's own.
fn general(body: &Value, base: &str, saved: &Saved, side: Side) -> Value {
    match body {
        Value::String(text) => saved.general(&text.replace(base, "<base>"), side).into(),
        Value::Array(items) => items
            .iter()
            .map(|item| general(item, base, saved, side))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (saved.general(key, side), general(value, base, saved, side)))
            .collect::<Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

/// Status and, of an error, its text.
fn outcome(status: u16, body: &Value) -> String {
    let error = &body["errors"][0];
    // The 406 of a version out of range has its text elsewhere.
    let text = match error["description"].as_str() {
        Some(description) => description.replace("1.16]", "1.14]"),
        None => sorted_choices(error["detail"].as_str().unwrap_or_default()),
    };
    if status < 400 {
        status.to_string()
    } else if text.is_empty() && !body.is_null() && body.get("errors").is_none() {
        format!("{status} {body}")
    } else {
        format!("{status} {text}")
    }
}

/// The text with the choices at its end in alphabetical order, as ours are; Magnum has sets there.
fn sorted_choices(text: &str) -> String {
    for before in ["Value should be one of: ", "property(ies) "] {
        if let Some((start, choices)) = text.split_once(before) {
            let mut choices: Vec<&str> = choices.trim_end_matches('.').split(", ").collect();
            choices.sort_unstable();
            return format!("{start}{before}{}", choices.join(", "));
        }
    }
    text.to_owned()
}

/// Whether it says that a later version has the route.
fn is_of_a_later_version(outcome: &str) -> bool {
    outcome.starts_with("406 ") && outcome.contains("but the requested API ")
}

/// Whether it is an error in which the framework that Magnum uses has left the text out.
fn is_of_the_framework(body: &Value) -> bool {
    let error = &body["errors"][0];
    let is_empty = |key: &str| error[key].as_str().is_none_or(str::is_empty);
    body.is_null()
        || (error["code"] == ""
            && (is_empty("detail") || is_empty("title"))
            && error.get("description").is_none())
}

const COMPARED: [&str; 6] = [
    "content-type",
    "vary",
    "location",
    "openstack-api-version",
    "openstack-api-minimum-version",
    "openstack-api-maximum-version",
];

fn headers(request: &Request, theirs: &Answer, ours: &Answer, saved: &Saved) -> Vec<Finding> {
    let shown = |answer: &Answer, name: &str, side: Side| {
        let value = answer.headers.get(name)?;
        let is_of_versions = name == "openstack-api-maximum-version"
            || (name == "openstack-api-version" && request.minor() > 14);
        let value = if is_of_versions {
            value.replace("1.16", "1.14")
        } else {
            value.clone()
        };
        Some(saved.general(&value.replace(&answer.base, "<base>"), side))
    };
    COMPARED
        .into_iter()
        .filter_map(|name| {
            let theirs = shown(theirs, name, Side::Magnum);
            let ours = shown(ours, name, Side::Ours);
            (theirs != ours).then(|| Finding {
                place: format!("header {name}"),
                theirs: theirs.unwrap_or_default(),
                ours: ours.unwrap_or_default(),
            })
        })
        .collect()
}

fn bodies(request: &Request, place: &str, theirs: &Value, ours: &Value, findings: &mut Vec<Finding>) {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let keys: Vec<&String> = theirs
                .keys()
                .chain(ours.keys().filter(|key| !theirs.contains_key(*key)))
                .collect();
            for key in keys {
                if !ours.contains_key(key) && is_hidden(request, key) {
                    continue;
                }
                let place = format!("{place}/{key}");
                match (theirs.get(key), ours.get(key)) {
                    (Some(theirs), Some(ours)) => bodies(request, &place, theirs, ours, findings),
                    (theirs, ours) => findings.push(Finding {
                        place,
                        theirs: theirs.map(Value::to_string).unwrap_or_default(),
                        ours: ours.map(Value::to_string).unwrap_or_default(),
                    }),
                }
            }
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => {
            for (index, (theirs, ours)) in theirs.iter().zip(ours).enumerate() {
                bodies(request, &format!("{place}/{index}"), theirs, ours, findings);
            }
        }
        (Value::String(theirs), Value::String(ours)) if is_time(theirs) && is_time(ours) => {}
        (Value::String(theirs), Value::String(ours)) if is_certificate(theirs) && is_certificate(ours) => {}
        (Value::Number(_), Value::Number(_)) if place.ends_with("/id") && has_row_numbers(request) => {}
        _ if theirs == ours => {}
        _ => findings.push(Finding {
            place: place.to_owned(),
            theirs: theirs.to_string(),
            ours: ours.to_string(),
        }),
    }
}

/// Whether a resource shows the number that the database has given to its row. Magnum takes that of a request, too.
fn has_row_numbers(request: &Request) -> bool {
    !body_has(request, "\"id\"")
        && (request.route.starts_with("/v1/quotas") || request.route.contains("/nodegroups"))
}

/// Whether a later version than the request's shows it first.
fn is_hidden(request: &Request, key: &str) -> bool {
    match key {
        "driver" => request.path.contains("clustertemplates") && request.minor() < 15,
        "node_labels" | "node_taints" => request.minor() < 14,
        _ => false,
    }
}

/// Each side has its own.
fn is_certificate(text: &str) -> bool {
    text.starts_with("-----BEGIN CERTIFICATE-----\n")
        && text.trim_end().ends_with("-----END CERTIFICATE-----")
}

fn is_time(text: &str) -> bool {
    text.ends_with("+00:00") && chrono::DateTime::parse_from_rfc3339(text).is_ok()
}
