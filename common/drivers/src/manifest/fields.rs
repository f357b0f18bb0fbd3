//! The sections of a manifest and what is allowed in them.

use semver::Version;
use serde_json::{Map, Value};
use toml::de::DeTable;

use super::reader::{At, Problems, Section};
use super::{EngineSpec, Manifest, Reading, api, exec, python};
use crate::info::{Capabilities, ClusterType, DriverInfo, MasterSizeRule};

/// Longest texts the columns take.
const LONGEST_NAME: usize = 255;
const LONGEST_VERSION: usize = 64;

/// Reads as much as can be read.
pub(super) fn read(text: &str) -> Reading {
    let mut problems = Problems::of(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let offset = error.span().map_or(0, |span| span.start);
        problems.add(offset, format!("this is not TOML: {}", error.message().trim()));
    }
    let root = Section {
        title: "the file".to_owned(),
        offset: 0,
        table: document.get_ref(),
    };
    let mut known = vec!["driver", "provides", "capabilities", "masters", "api", "settings"];
    known.extend(EngineSpec::NAMES);
    root.only(&known, &mut problems);

    let identity = identity(&root, &mut problems);
    let cluster_types = cluster_types(&root, &mut problems);
    let capabilities = capabilities(&root, &mut problems);
    let master_size = master_size(&root, &mut problems);
    let api = api::routes(&root, &mut problems);
    let (engine, program) = engine(&root, text, &identity, &capabilities, &mut problems);

    // For its complaint when it is not a section.
    root.table("settings", &mut problems);

    let name = identity.name.clone();
    let version = identity.version.as_ref().map(Version::to_string);
    let manifest = match (identity.name, identity.version, engine) {
        (Some(name), Some(version), Some(engine)) if problems.is_empty() => Some(Manifest {
            info: DriverInfo {
                name,
                version,
                cluster_types,
                beta: identity.beta,
                capabilities,
                master_size,
                api,
            },
            description: identity.description,
            engine,
            settings: json_table(section_of(text, "settings")),
        }),
        _ => None,
    };
    let program = program.map(|at| (problems.line(at.offset), at.value));
    Reading {
        manifest,
        name,
        version,
        program,
        problems: problems.into_sorted(),
    }
}

#[derive(Default)]
struct Identity {
    name: Option<String>,
    version: Option<Version>,
    engine: Option<At<String>>,
    beta: bool,
    description: Option<String>,
}

fn identity(root: &Section<'_>, problems: &mut Problems<'_>) -> Identity {
    root.require("driver", "[driver] with name, version and engine", problems);
    let Some(section) = root.table("driver", problems) else {
        return Identity::default();
    };
    section.only(&["name", "version", "engine", "beta", "description"], problems);
    section.require("name", "name = \"disk\"", problems);
    section.require("version", "version = \"1.0.0\"", problems);
    section.require("engine", "engine = \"exec\"", problems);
    let name = section.text("name", problems).and_then(|at| {
        let right = is_name(&at.value);
        if !right {
            problems.add(
                at.offset,
                format!(
                    "'{}' is not a driver name: use 1 to {LONGEST_NAME} of a-z, 0-9, '_' and '-'",
                    at.value
                ),
            );
        }
        right.then_some(at.value)
    });
    let version = section.text("version", problems).and_then(|at| {
        let parsed = Version::parse(&at.value)
            .ok()
            .filter(|_| at.value.len() <= LONGEST_VERSION);
        if parsed.is_none() {
            problems.add(
                at.offset,
                format!(
                    "'{}' is not a version: use MAJOR.MINOR.PATCH as in 1.0.0 (semver.org), \
                     at most {LONGEST_VERSION} characters",
                    at.value
                ),
            );
        }
        parsed
    });
    Identity {
        name,
        version,
        engine: section.text("engine", problems),
        beta: section.flag("beta", problems).unwrap_or(false),
        description: section.text("description", problems).map(|at| at.value),
    }
}

pub(super) fn is_name(text: &str) -> bool {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-';
    !text.is_empty() && text.len() <= LONGEST_NAME && text.bytes().all(allowed)
}

fn cluster_types(root: &Section<'_>, problems: &mut Problems<'_>) -> Vec<ClusterType> {
    root.require(
        "provides",
        "[[provides]] with server_type = \"vm\", os = \"ubuntu\", coe = \"kubernetes\"",
        problems,
    );
    let mut types: Vec<ClusterType> = Vec::new();
    let Some(sections) = root.tables("provides", problems) else {
        return types;
    };
    if sections.is_empty() {
        problems.add(
            root.key_offset("provides").unwrap_or(0),
            "'provides' is empty: a driver has to provide at least one cluster type",
        );
    }
    for section in sections {
        section.only(&["server_type", "os", "coe"], problems);
        let mut word = |key: &str, example: &str| {
            section.require(key, &format!("{key} = \"{example}\""), problems);
            let at = section.text(key, problems)?;
            let right = match key {
                "server_type" => ["vm", "bm"].contains(&at.value.as_str()),
                _ => !at.value.is_empty() && !at.value.contains(char::is_whitespace),
            };
            if !right {
                let rule = if key == "server_type" {
                    "use vm or bm"
                } else {
                    "use one word"
                };
                problems.add(
                    at.offset,
                    format!("'{}' is not a value of '{key}': {rule}", at.value),
                );
            }
            right.then_some(at.value)
        };
        let server_type = word("server_type", "vm");
        let os = word("os", "ubuntu");
        let coe = word("coe", "kubernetes");
        let (Some(server_type), Some(os), Some(coe)) = (server_type, os, coe) else {
            continue;
        };
        let cluster_type = ClusterType { server_type, os, coe };
        if types.contains(&cluster_type) {
            problems.add(
                section.offset,
                format!("the cluster type {cluster_type} is provided twice: remove one"),
            );
        } else {
            types.push(cluster_type);
        }
    }
    types
}

fn capabilities(root: &Section<'_>, problems: &mut Problems<'_>) -> Capabilities {
    let mut capabilities = Capabilities::default();
    if let Some(section) = root.table("capabilities", problems) {
        section.only(Capabilities::NAMES, problems);
        for name in Capabilities::NAMES {
            if let Some(value) = section.flag(name, problems) {
                capabilities.set(name, value);
            }
        }
        if capabilities.scale && !capabilities.remove_named_nodes {
            problems.add(
                section.key_offset("scale").unwrap_or(section.offset),
                "'scale' in [capabilities] needs 'remove_named_nodes', too: the nodes that the driver chooses are given \
                 back to it by their names",
            );
        }
        if capabilities.node_names && !capabilities.remove_named_nodes {
            problems.add(
                section.key_offset("node_names").unwrap_or(section.offset),
                "'node_names' in [capabilities] needs 'remove_named_nodes', too: the names are those that a resize may \
                 give to the driver",
            );
        }
    }
    capabilities
}

fn master_size(root: &Section<'_>, problems: &mut Problems<'_>) -> MasterSizeRule {
    let Some(section) = root.table("masters", problems) else {
        return MasterSizeRule::default();
    };
    section.only(&["sizes"], problems);
    let Some(at) = section.text("sizes", problems) else {
        return MasterSizeRule::default();
    };
    at.value.parse().unwrap_or_else(|()| {
        problems.add(
            at.offset,
            format!("'{}' is not a rule for master sizes: use odd or any", at.value),
        );
        MasterSizeRule::default()
    })
}

fn engine(
    root: &Section<'_>,
    text: &str,
    identity: &Identity,
    capabilities: &Capabilities,
    problems: &mut Problems<'_>,
) -> (Option<EngineSpec>, Option<At<String>>) {
    let Some(engine) = &identity.engine else {
        return (None, None);
    };
    let name = engine.value.as_str();
    if !EngineSpec::NAMES.contains(&name) {
        problems.add(
            engine.offset,
            format!("'{name}' is not an engine: use {}", EngineSpec::NAMES.join(", ")),
        );
        return (None, None);
    }
    for other in EngineSpec::NAMES.iter().filter(|other| **other != name) {
        if let Some(offset) = root.key_offset(other) {
            problems.add(
                offset,
                format!("section [{other}] has no meaning for a driver with the engine '{name}'"),
            );
        }
    }
    match name {
        "exec" => exec::spec(root, capabilities, problems),
        "python" => (python::spec(root, identity.name.as_deref(), problems), None),
        _ => {
            let settings = settings(root, text, name, problems);
            let engine = match name {
                "heat" => EngineSpec::Heat(settings),
                _ => EngineSpec::ClusterApi(settings),
            };
            (Some(engine), None)
        }
    }
}

/// The section of an engine that checks its settings itself.
fn settings(root: &Section<'_>, text: &str, name: &str, problems: &mut Problems<'_>) -> toml::Table {
    if root.table(name, problems).is_none() || !problems.is_empty() {
        return toml::Table::new();
    }
    section_of(text, name)
}

/// A section as plain values, of a text that was parsed before without an error.
fn section_of(text: &str, name: &str) -> toml::Table {
    let mut document: toml::Table = toml::from_str(text).unwrap_or_default();
    match document.remove(name) {
        Some(toml::Value::Table(section)) => section,
        _ => toml::Table::new(),
    }
}

fn json_table(table: toml::Table) -> Map<String, Value> {
    table.into_iter().map(|(key, value)| (key, json(value))).collect()
}

fn json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::from(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(flag) => Value::from(flag),
        toml::Value::Datetime(time) => Value::from(time.to_string()),
        toml::Value::Array(items) => Value::Array(items.into_iter().map(json).collect()),
        toml::Value::Table(table) => Value::Object(json_table(table)),
    }
}

#[cfg(test)]
mod tests;
