//! Recorded cases, and their files: operations, one driver call each, and looks at clusters.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::super::replay::{Recorded, Selection, Suite};
use super::differences::DIFFERENCES;
use super::{fixtures, words};

/// What the recordings are of: the begin of their files' names.
const RECORDING: &str = "k8s_fedora_coreos_v1.22.0.0";

const SUITE: Suite = Suite {
    folder: "fixtures/heat",
    has: |name| name.starts_with(RECORDING) && name.ends_with(".jsonl"),
    elsewhere: "MAGNUM_TESTS_HEAT_CASES",
};

const CREATE: &str = "heat.stacks.create";

/// A recorded case.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file, without its ending.
    pub file: String,
    /// The recording, with all that it takes over from other cases.
    pub recorded: Value,
}

impl Recorded for Case {
    fn title(&self) -> String {
        format!("{}/{}", self.file, self.name())
    }
}

impl Case {
    /// Its name in the file.
    pub fn name(&self) -> &str {
        self.recorded["case"].as_str().unwrap_or_default()
    }

    /// The operation; empty of a look.
    pub fn operation(&self) -> &str {
        self.recorded["op"].as_str().unwrap_or_default()
    }

    /// Whether the conductor looks at the cluster by itself.
    pub fn is_look(&self) -> bool {
        self.recorded["op"].is_null()
    }

    /// An argument of the operation.
    pub fn argument(&self, name: &str) -> &Value {
        &self.recorded["args"][name]
    }

    /// What differs from the fixtures.
    pub fn given(&self) -> &Value {
        &self.recorded["given"]
    }

    /// The cluster's status before the operation or the look.
    pub fn status(&self) -> String {
        let cluster = fixtures::cluster(self).unwrap_or_default();
        cluster["status"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether the conductor looks at the cluster: it is in progress, and its driver has begun.
    pub fn is_looked_at(&self) -> bool {
        let begun = fixtures::cluster(self).is_ok_and(|cluster| cluster["stack_id"].is_string());
        let status = self.status();
        status.ends_with("_IN_PROGRESS") && (status != "CREATE_IN_PROGRESS" || begun)
    }

    /// The class of the failure; empty where there was none.
    pub fn failure(&self) -> &str {
        self.recorded["error"]["class"].as_str().unwrap_or_default()
    }

    /// The calls, in order.
    pub fn calls(&self) -> Vec<Value> {
        self.recorded["calls"].as_array().cloned().unwrap_or_default()
    }

    /// The options of `magnum.conf` that it was recorded with, by section and name.
    pub fn options(&self) -> BTreeMap<(String, String), Value> {
        options(&self.given()["conf"])
    }
}

/// Options by section and name, which are told as `section.name`.
pub fn options(told: &Value) -> BTreeMap<(String, String), Value> {
    let options = told.as_object().into_iter().flatten();
    options
        .filter_map(|(name, value)| {
            let (section, option) = name.split_once('.')?;
            Some(((section.to_owned(), option.to_owned()), value.clone()))
        })
        .collect()
}

/// The operation of the checkout that has this name.
pub fn named(name: &str) -> Result<Case> {
    let mut cases = read(&SUITE.files()?)?.into_iter();
    cases
        .find(|case| case.name() == name)
        .with_context(|| format!("no recorded case is called {name}"))
}

/// The cases that the environment asks for.
pub fn selected() -> Result<Selection<Case>> {
    SUITE.select(read, DIFFERENCES)
}

/// Those of the files. Cases may be told by what differs from one of the checkout.
fn read(files: &[PathBuf]) -> Result<Vec<Case>> {
    let models = raw(&SUITE.files()?)?;
    let mut cases = Vec::new();
    for case in raw(files)?.into_iter().flat_map(with_each_label) {
        let model = |name: &str| models.iter().find(|model| model.name() == name);
        let recorded = whole(&case, model).with_context(|| case.title())?;
        cases.push(Case { recorded, ..case });
    }
    Ok(cases)
}

fn raw(files: &[PathBuf]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for path in files {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let file = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for line in text.lines() {
            let recorded = serde_json::from_str(line).with_context(|| path.display().to_string())?;
            let file = file.clone();
            cases.push(Case { file, recorded });
        }
    }
    Ok(cases)
}

/// Labels that change nothing are recorded in one line: each is a case of its own, which makes what the first create makes.
fn with_each_label(case: Case) -> Vec<Case> {
    let Some(labels) = case.recorded["labels"].as_array() else {
        return vec![case];
    };
    let labels = labels.iter().filter_map(Value::as_str);
    labels
        .map(|label| {
            let recorded = json!({
                "case": format!("{}/{label}", case.name()),
                "op": case.operation(),
                "given": {"cluster": {"labels": {label: value_of(label)}}},
                "calls": ["first calls of create/minimal", {"call": CREATE, "args like": "create/minimal", "but": {}}],
            });
            let file = case.file.clone();
            Case { file, recorded }
        })
        .collect()
}

/// The value that a label without effect was recorded with.
fn value_of(label: &str) -> &'static str {
    match label {
        // `true` needs an option.
        "cloud_provider_enabled" => "false",
        _ if label.ends_with("_type") => "fast",
        _ if label.ends_with("_enabled") => "true",
        _ => "v9",
    }
}

/// A recording in full: with the calls of the case that it is like, and with arguments told in one way.
fn whole<'a>(case: &Case, model: impl Fn(&str) -> Option<&'a Case>) -> Result<Value> {
    let mut recorded = case.recorded.clone();
    let mut calls = Vec::new();
    for call in case.calls() {
        if let Some(like) = call
            .as_str()
            .and_then(|text| text.strip_prefix("first calls of "))
        {
            let like = model(like).with_context(|| format!("there is no case {like}"))?;
            calls.extend(like.calls().into_iter().take_while(|call| call["call"] != CREATE));
        } else if let Some(like) = call["args like"].as_str() {
            let like = model(like).with_context(|| format!("there is no case {like}"))?;
            calls.push(like_another(like, &call["but"])?);
            if recorded["unsaved"].is_null() && recorded["error"].is_null() {
                recorded["unsaved"] = like.recorded["unsaved"].clone();
            }
        } else {
            calls.push(words::call(&call)?);
        }
    }
    for call in calls.iter_mut().filter(|call| call["args"].is_object()) {
        name_files(&mut call["args"])?;
    }
    recorded["calls"] = json!(calls);
    Ok(recorded)
}

/// The files of a stack are recorded as the name of a set: here they are told by their names and digests.
fn name_files(arguments: &mut Value) -> Result<()> {
    let told = arguments["files"]
        .as_str()
        .and_then(|told| told.strip_prefix("<set "));
    let Some(set) = told.and_then(|told| told.split(',').next()) else {
        return Ok(());
    };
    let path = format!(
        "{}/{}/{RECORDING}.files.json",
        env!("CARGO_MANIFEST_DIR"),
        SUITE.folder
    );
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    let mut sets: Value = serde_json::from_str(&text)?;
    let files = sets[set].take();
    ensure!(files.is_object(), "{path} has no set {set}");
    arguments["files"] = files;
    Ok(())
}

/// The creation of a stack as that of another case, but for some arguments.
fn like_another(model: &Case, but: &Value) -> Result<Value> {
    let calls = model.calls();
    let creation = calls.iter().find(|call| call["call"] == CREATE);
    let mut creation = creation
        .with_context(|| format!("{} creates no stack", model.name()))?
        .clone();
    for (name, value) in but.as_object().into_iter().flatten() {
        let parameters = &mut creation["args"]["parameters"];
        match name.as_str() {
            "parameters set" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    parameters[name] = value.clone();
                }
            }
            "parameters unset" => {
                let names = value.as_array().into_iter().flatten();
                for name in names.filter_map(Value::as_str) {
                    parameters.as_object_mut().context("parameters")?.remove(name);
                }
            }
            _ => creation["args"][name] = value.clone(),
        }
    }
    Ok(creation)
}
