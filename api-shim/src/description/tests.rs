//! The documents: one snapshot per version, and that they say what is served.

use serde_json::Value;

use super::*;
use crate::openapi::glossary;
use crate::openapi::schemas::{given, shown};
use crate::routes::ROUTES;
use crate::validation::{cluster_template, node_group};
use crate::views;
use crate::views::attribute::{Shown, View};
use crate::views::cluster::ClusterView;

fn json(version: Version) -> Value {
    serde_json::from_str(&document(version).to_json().unwrap()).unwrap()
}

/// What a version changes, line by line: a snapshot of sixteen whole documents would be read by nobody.
fn outline(document: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let parameters: Vec<&str> = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "query")
                .filter_map(|parameter| parameter["name"].as_str())
                .collect();
            let statuses: Vec<&String> = operation["responses"].as_object().unwrap().keys().collect();
            lines.push(format!("{method} {path} ?{} {statuses:?}", parameters.join("&")));
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for (property, of) in schema["properties"].as_object().unwrap() {
            let needed = schema["required"]
                .as_array()
                .is_some_and(|required| required.contains(&Value::from(property.as_str())));
            let mut of = of.clone();
            if let Some(of) = of.as_object_mut() {
                of.remove("description");
            }
            lines.push(format!("{name}.{property}{} {of}", if needed { "" } else { "?" }));
        }
    }
    lines
}

#[test]
fn each_version_has_its_document() {
    let mut before = Vec::new();
    for version in Version::all() {
        let now = outline(&json(version));
        let text = if before.is_empty() {
            now.join("\n")
        } else {
            let gone = before
                .iter()
                .filter(|line| !now.contains(line))
                .map(|line| format!("- {line}"));
            let new = now
                .iter()
                .filter(|line| !before.contains(line))
                .map(|line| format!("+ {line}"));
            gone.chain(new).collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(format!("version_{version}"), text);
        before = now;
    }
}

#[test]
fn everything_is_explained_and_nothing_is_referred_to_that_is_not_there() {
    for version in Version::all() {
        let document = json(version);
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for (name, schema) in schemas {
            for (property, of) in schema["properties"].as_object().unwrap() {
                let unexplained = of["description"].as_str().is_none_or(str::is_empty);
                assert!(!unexplained || name == "Fault", "{name}.{property} in {version}");
            }
        }
        let text = document.to_string();
        for reference in text.split("#/components/schemas/").skip(1) {
            let name = reference.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name} in {version}");
        }
        for name in schemas.keys().filter(|name| *name != "Accepted") {
            assert!(
                text.contains(&format!("#/components/schemas/{name}\"")),
                "nothing refers to {name}"
            );
        }
        for route in ROUTES {
            for name in route
                .parameters()
                .chain(route.query.iter().map(|argument| argument.name))
            {
                assert!(!glossary::about(name).is_empty(), "{name} of {}", route.path);
            }
        }
    }
}

fn has<R: Shown>(view: View, version: Version, name: &str) -> bool {
    shown::<R>(view, version).properties.contains_key(name)
}

#[test]
fn gated_attributes_are_in_their_versions_only() {
    let (old, new) = (Version::CREDENTIALS, Version::CLUSTER_ID);
    for view in [
        views::cluster::BRIEF,
        views::cluster::LONG,
        views::cluster::SINGLE,
    ] {
        assert!(has::<ClusterView>(view, old, "stack_id") && !has::<ClusterView>(view, old, "cluster_id"));
        assert!(has::<ClusterView>(view, new, "cluster_id") && !has::<ClusterView>(view, new, "stack_id"));
    }
    let given = |at: Version| {
        let group = given(node_group::FIELDS, at)
            .properties
            .contains_key("node_labels");
        (
            group,
            given(cluster_template::FIELDS, at)
                .properties
                .contains_key("driver"),
        )
    };
    assert_eq!(given(Version::CLUSTER_ID), (false, false));
    assert_eq!(given(Version::NODE_LABELS), (true, false));
    assert_eq!(given(Version::TEMPLATE_DRIVER), (true, true));
}

#[test]
fn the_reference_in_the_repository_is_the_one_that_is_generated() {
    let kept = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/api.md")).unwrap();
    assert!(
        reference() == kept,
        "write it anew: magnum-api reference > docs/api.md"
    );
}
