//! What all recordings begin with (`tests/fixtures/heat/fixtures.json`), and what a case makes of it.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::case::Case;
use super::words;

/// The driver of the recordings.
const RECORDED: &str = "k8s_fedora_coreos_v1";

/// What an upgrade goes to.
const NEWER_TEMPLATE: &str = "00000003-0000-4000-8000-000000000003";

/// What surrounds a case: in its own uuids.
#[derive(Debug, Clone)]
pub struct Scene {
    /// The fields of the cluster's row, those of its trust too.
    pub cluster: Value,
    pub template: Value,
    /// The template of an upgrade.
    pub newer_template: Value,
    /// The groups, the default ones first.
    pub groups: Vec<Value>,
    /// Stacks by their ids, as a client of Heat answers them.
    pub stacks: Value,
    /// The answers of the rest of the cloud.
    pub cloud: Value,
    /// The fixtures themselves.
    pub fixtures: Value,
}

/// The fixtures, as they are recorded.
pub fn fixtures() -> Result<&'static Value> {
    static FIXTURES: OnceLock<Value> = OnceLock::new();
    if let Some(fixtures) = FIXTURES.get() {
        return Ok(fixtures);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/heat/fixtures.json");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let read = serde_json::from_str(&text)?;
    Ok(FIXTURES.get_or_init(|| read))
}

impl Scene {
    /// That of the case with this number.
    pub fn of(case: &Case, number: usize) -> Result<Self> {
        let fixtures = words::own(number, fixtures()?)?;
        let given = words::own(number, case.given())?;
        let base = &fixtures["base"][RECORDED];
        let change = change(&fixtures, &given);
        let mut cluster = base["cluster"].clone();
        update(&mut cluster, &change["cluster"]);
        if case.operation() == "create" {
            // The two are the same in every request of an API.
            cluster["create_timeout"] = case.argument("timeout").clone();
        }
        let mut template = base["cluster_template"].clone();
        update(&mut template, &change["cluster_template"]);
        let mut newer = template.clone();
        update(&mut newer, &change["new_template"]);
        newer["uuid"] = words::own(number, &json!(NEWER_TEMPLATE))?;
        newer["name"] = json!("new");
        let mut cloud = fixtures["cloud"].clone();
        merge(&mut cloud, &change["cloud"]);
        Ok(Self {
            groups: groups(base, &fixtures["extra_nodegroup"], &change, &cluster)?,
            stacks: stacks(&fixtures["stack"][RECORDED], &change["stacks"])?,
            newer_template: newer,
            cluster,
            template,
            cloud,
            fixtures,
        })
    }

    /// The world of the cluster, as the doubles read it. `groups`: what these are to have that no request gives them.
    pub fn world(&self, groups: &Map<String, Value>, is_look: bool) -> Value {
        let mut world = json!({
            "cloud": self.cloud, "stacks": self.stacks, "node groups": groups, "is looked at": is_look,
        });
        for name in [
            "networks",
            "subnets",
            "resources of the stack",
            "new stack id",
            "discovery service answers",
            "trustee domain",
            "volume types",
            "key pairs",
        ] {
            world[name] = self.fixtures[name].clone();
        }
        world
    }
}

/// What a case changes in the base rows.
fn change(fixtures: &Value, given: &Value) -> Value {
    if given["state"] != "running" {
        return given.clone();
    }
    let mut change = fixtures["running"].clone();
    merge(&mut change, given);
    change
}

/// The row of a case's cluster, in the recording's own uuids.
pub fn cluster(case: &Case) -> Result<Value> {
    let fixtures = fixtures()?;
    let mut cluster = fixtures["base"][RECORDED]["cluster"].clone();
    update(&mut cluster, &change(fixtures, case.given())["cluster"]);
    Ok(cluster)
}

/// Whether the case is about a group of masters.
pub fn is_of_masters(case: &Case) -> bool {
    let named = case.argument("nodegroup");
    let role = |group: &Value| (group["name"] == *named).then(|| group["role"] == "master");
    let Ok(fixtures) = fixtures() else { return false };
    let base = fixtures["base"][RECORDED]["nodegroups"].as_array();
    let extra = &case.given()["extra_nodegroup"];
    base.into_iter()
        .flatten()
        .find_map(role)
        .unwrap_or_else(|| extra["role"] == "master")
}

/// The user of a case's cluster, acting by its trust, as calls tell it.
pub fn trustee(case: &Case) -> Result<String> {
    let cluster = cluster(case)?;
    let text = |name: &str| cluster[name].as_str().unwrap_or_default().to_owned();
    let (name, trust) = (text("trustee_username"), text("trust_id"));
    Ok(format!("trustee(user_name={name}, trust_id={trust})"))
}

/// The default groups have the labels and the volume size of the cluster.
fn groups(base: &Value, extra: &Value, change: &Value, cluster: &Value) -> Result<Vec<Value>> {
    let mut groups = base["nodegroups"].as_array().context("groups")?.clone();
    if !change["extra_nodegroup"].is_null() {
        let mut group = extra.clone();
        merge(&mut group, &change["extra_nodegroup"]);
        groups.push(group);
    }
    for group in &mut groups {
        if group["is_default"] == true {
            if !change["cluster"]["labels"].is_null() {
                group["labels"] = change["cluster"]["labels"].clone();
            }
            update(group, &change["nodegroups"]["*"]);
            if cluster["docker_volume_size"]
                .as_i64()
                .is_some_and(|size| size > 0)
            {
                group["docker_volume_size"] = cluster["docker_volume_size"].clone();
            }
        }
        let name = group["name"].as_str().unwrap_or_default().to_owned();
        update(group, &change["nodegroups"][name]);
    }
    Ok(groups)
}

/// Stacks as differences from the usual one: `output NAME`, `parameter NAME`, and fields of a stack.
fn stacks(usual: &Value, given: &Value) -> Result<Value> {
    let one = json!({usual["id"].as_str().context("an id")?: {}});
    let given = if given.is_null() { &one } else { given };
    let mut stacks = json!({});
    for (id, change) in given.as_object().into_iter().flatten() {
        let mut flat = usual.clone();
        update(&mut flat, change);
        flat["id"] = json!(id);
        let absent = change["absent"].as_array().into_iter().flatten();
        let absent: Vec<&str> = absent.filter_map(Value::as_str).chain(["absent"]).collect();
        let mut stack = json!({"parameters": {}, "outputs": []});
        for (name, value) in flat.as_object().into_iter().flatten() {
            if absent.contains(&name.as_str()) {
                continue;
            }
            if let Some(name) = name.strip_prefix("parameter ") {
                stack["parameters"][name] = value.clone();
            } else if let Some(name) = name.strip_prefix("output ") {
                let output = json!({"output_key": name, "output_value": value, "description": ""});
                stack["outputs"].as_array_mut().context("outputs")?.push(output);
            } else {
                stack[name] = value.clone();
            }
        }
        stacks[id] = stack;
    }
    Ok(stacks)
}

/// Sets the fields that `change` has.
fn update(value: &mut Value, change: &Value) {
    for (name, new) in change.as_object().into_iter().flatten() {
        value[name] = new.clone();
    }
}

/// The same, with maps within merged as well.
fn merge(value: &mut Value, change: &Value) {
    for (name, new) in change.as_object().into_iter().flatten() {
        if value[name].is_object() && new.is_object() {
            merge(&mut value[name], new);
        } else {
            value[name] = new.clone();
        }
    }
}
