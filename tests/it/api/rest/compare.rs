//! Comparison of an answer with the recorded one.
//!
//! What differs for *every* case is taken out here: the highest microversion is 1.16, `request_id` is filled,
//! errors of the framework have texts, a template's `driver` shows from 1.15 on, labels and taints of nodes show from
//! 1.14 on, the 406 of a version without the route has version headers and may name what is missing, and a timestamp
//! may have a fraction or not (that depends on the database).

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::case::Case;
use super::world::Answer;

/// Each finding names a place and the two values.
pub fn compare(case: &Case, answer: &Answer, saved: &BTreeMap<String, String>) -> Vec<String> {
    let mut findings = Vec::new();
    let expected = &case.response;
    if answer.status != expected.status {
        findings.push(format!(
            "status: {} instead of {}",
            answer.status, expected.status
        ));
    }
    headers(case, answer, saved, &mut findings);
    match (&expected.body, &answer.body) {
        (Some(expected), body) => {
            let expected = adjusted(case, expected, answer);
            let pattern = Pattern {
                base: &answer.base,
                saved,
            };
            pattern.value("", &expected, body, &mut findings);
        }
        (None, Value::Null) => {}
        (None, body) => findings.push(format!("body: {body} instead of none")),
    }
    findings
}

const COMPARED: [&str; 7] = [
    "content-type",
    "vary",
    "location",
    "openstack-api-version",
    "openstack-api-minimum-version",
    "openstack-api-maximum-version",
    "x-openstack-request-id",
];

fn headers(case: &Case, answer: &Answer, saved: &BTreeMap<String, String>, findings: &mut Vec<String>) {
    let pattern = Pattern {
        base: &answer.base,
        saved,
    };
    for name in COMPARED {
        let expected = case.response.headers.get(name).map(|value| {
            let latest = case
                .request
                .version
                .as_deref()
                .is_some_and(|v| v.eq_ignore_ascii_case("latest"));
            if name == "openstack-api-maximum-version" || (name == "openstack-api-version" && latest) {
                value.replace("1.14", "1.16")
            } else {
                value.clone()
            }
        });
        let got = answer.headers.get(name);
        match (&expected, got) {
            (None, None) => {}
            (None, Some(_)) if is_later(case) && VERSION_HEADERS.contains(&name) => {}
            (Some(expected), Some(got)) if pattern.text(expected, got) => {}
            _ => findings.push(format!("header {name}: {got:?} instead of {expected:?}")),
        }
    }
}

const VERSION_HEADERS: [&str; 4] = [
    "vary",
    "openstack-api-version",
    "openstack-api-minimum-version",
    "openstack-api-maximum-version",
];

const LATER: &str = "but the requested API ";

/// Whether the answer is that of a version that does not have the route yet.
fn is_later(case: &Case) -> bool {
    let detail = case
        .response
        .body
        .as_ref()
        .and_then(|body| body.pointer("/errors/0/detail"));
    case.response.status == 406
        && detail
            .and_then(Value::as_str)
            .is_some_and(|text| text.contains(LATER))
}

/// Whether the labels and taints of nodes are hidden from this request.
fn hides_node_labels(case: &Case) -> bool {
    let minor = case
        .request
        .version
        .as_deref()
        .and_then(|version| version.strip_prefix("1."));
    let minor: Option<u32> = minor.and_then(|minor| minor.parse().ok());
    case.request.path.contains("nodegroups") && minor.is_some_and(|minor| minor < 14)
}

/// The recorded body with the differences of every case taken out.
fn adjusted(case: &Case, expected: &Value, answer: &Answer) -> Value {
    let mut expected = expected.clone();
    if let Some(error) = expected.pointer_mut("/errors/0").and_then(Value::as_object_mut) {
        adjust_error(error, answer);
    }
    if is_later(case) {
        let detail = &mut expected["errors"][0]["detail"];
        let text = detail.as_str().unwrap_or_default();
        let start = text.find(LATER).map_or(0, |at| at + LATER.len());
        let end = text.find(" is not supported").unwrap_or(text.len());
        *detail = format!("{}<random>{}", &text[..start], &text[end..]).into();
    }
    if hides_node_labels(case)
        && let Some(group) = expected.as_object_mut()
    {
        group.shift_remove("node_labels");
        group.shift_remove("node_taints");
    }
    if let Some(versions) = expected.pointer_mut("/versions/0/max_version") {
        *versions = "1.16".into();
    }
    // The list of versions in `/v1`, which Magnum has in `/` only.
    if expected["id"] == "v1"
        && let Some(document) = expected.as_object_mut()
        && let Some(href) = document["links"][0]["href"].as_str().map(str::to_owned)
    {
        let version = json!({
            "id": "v1", "links": [{"href": href, "rel": "self"}], "status": "CURRENT", "max_version": "1.16", "min_version": "1.1",
        });
        document.insert("versions".into(), json!([version]));
    }
    let latest = case
        .request
        .version
        .as_deref()
        .is_some_and(|v| v.eq_ignore_ascii_case("latest"));
    if !latest && case.request.path.contains("clustertemplates") {
        let hide = |template: &mut Value| {
            if let Some(template) = template.as_object_mut() {
                template.shift_remove("driver");
            }
        };
        match expected.get_mut("clustertemplates").and_then(Value::as_array_mut) {
            Some(items) => items.iter_mut().for_each(hide),
            None => hide(&mut expected),
        }
    }
    expected
}

fn adjust_error(error: &mut Map<String, Value>, answer: &Answer) {
    let request_id = answer
        .headers
        .get("x-openstack-request-id")
        .cloned()
        .unwrap_or_default();
    error.insert("request_id".into(), request_id.into());
    if error.contains_key("max_version") {
        error.insert("max_version".into(), "1.16".into());
        if let Some(text) = error.get("description").and_then(Value::as_str) {
            let text = text.replace("1.14]", "1.16]");
            error.insert("description".into(), text.clone().into());
            error.insert("detail".into(), text.into());
        }
        error.insert("status".into(), answer.status.into());
    } else if error.get("code") == Some(&Value::from("")) {
        for key in ["title", "detail"] {
            let empty = error
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .is_empty();
            let ours = answer.body.pointer(&format!("/errors/0/{key}")).cloned();
            if let (true, Some(ours)) = (empty, ours) {
                assert_ne!(ours, "", "errors of the framework have texts");
                error.insert(key.into(), ours);
            }
        }
    }
}

/// Recorded text with placeholders.
struct Pattern<'a> {
    base: &'a str,
    saved: &'a BTreeMap<String, String>,
}

impl Pattern<'_> {
    fn value(&self, place: &str, expected: &Value, got: &Value, findings: &mut Vec<String>) {
        match (expected, got) {
            (Value::Object(expected), Value::Object(got)) => {
                for (key, value) in expected {
                    let place = format!("{place}/{key}");
                    match got.get(key) {
                        Some(got) => self.value(&place, value, got, findings),
                        None => findings.push(format!("{place}: missing, instead of {value}")),
                    }
                }
                for key in got.keys().filter(|key| !expected.contains_key(*key)) {
                    findings.push(format!("{place}/{key}: {} instead of nothing", got[key]));
                }
            }
            (Value::Array(expected), Value::Array(got)) if expected.len() == got.len() => {
                for (index, (expected, got)) in expected.iter().zip(got).enumerate() {
                    self.value(&format!("{place}/{index}"), expected, got, findings);
                }
            }
            (Value::String(expected), Value::Number(_)) if expected == "<id>" => {}
            (Value::String(expected), Value::String(got)) if self.text(expected, got) => {}
            _ if expected == got => {}
            _ => findings.push(format!("{place}: {got} instead of {expected}")),
        }
    }

    fn text(&self, expected: &str, got: &str) -> bool {
        let mut expected = expected.replace("<base>", self.base);
        for (name, value) in self.saved {
            expected = expected.replace(&format!("{{{{{name}}}}}"), value);
        }
        matches(&expected, got)
    }
}

/// Whether `got` is `expected` with every placeholder filled in.
fn matches(expected: &str, got: &str) -> bool {
    let next = PLACEHOLDERS
        .iter()
        .filter_map(|(word, lengths)| Some((expected.find(word)?, *word, *lengths)))
        .min_by_key(|(at, ..)| *at);
    let Some((at, word, filled)) = next else {
        return expected == got;
    };
    let Some(rest) = got.strip_prefix(&expected[..at]) else {
        return false;
    };
    let expected = &expected[at + word.len()..];
    filled(rest)
        .into_iter()
        .any(|length| rest.is_char_boundary(length) && matches(expected, &rest[length..]))
}

/// How long a placeholder's text at the start of another can be.
type Lengths = fn(&str) -> Vec<usize>;

const PLACEHOLDERS: [(&str, Lengths); 8] = [
    ("<uuid>", |rest| uuid_length(rest, 0)),
    ("<req-id>", |rest| {
        if rest.starts_with("req-") {
            uuid_length(rest, 4)
        } else {
            Vec::new()
        }
    }),
    ("<time+00:00>", time_lengths),
    ("<time.us+00:00>", time_lengths),
    ("<random>", |rest| (1..=rest.len()).collect()),
    ("<address>", |rest| (1..=rest.len()).collect()),
    ("<pem CERTIFICATE>", |rest| pem_length(rest, "CERTIFICATE")),
    ("<pem CERTIFICATE REQUEST>", |rest| {
        pem_length(rest, "CERTIFICATE REQUEST")
    }),
];

fn pem_length(rest: &str, kind: &str) -> Vec<usize> {
    let (begin, end) = (
        format!("-----BEGIN {kind}-----\n"),
        format!("-----END {kind}-----"),
    );
    let whole = rest.starts_with(&begin)
        && rest.trim_end_matches('\n').ends_with(&end)
        && rest.matches(&begin).count() == 1;
    if whole { vec![rest.len()] } else { Vec::new() }
}

fn uuid_length(rest: &str, start: usize) -> Vec<usize> {
    let end = start + 36;
    let found = rest
        .get(start..end)
        .is_some_and(|text| uuid::Uuid::try_parse(text).is_ok());
    if found { vec![end] } else { Vec::new() }
}

fn time_lengths(rest: &str) -> Vec<usize> {
    [25, 32]
        .into_iter()
        .filter(|length| {
            rest.get(..*length).is_some_and(|text| {
                text.ends_with("+00:00") && chrono::DateTime::parse_from_rfc3339(text).is_ok()
            })
        })
        .collect()
}
