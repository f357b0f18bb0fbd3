//! Recorded cases, and their files.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::super::replay::{Recorded, Selection, Suite};
use super::differences::DIFFERENCES;
use super::our_differences::OUR_DIFFERENCES;

const SUITE: Suite = Suite {
    folder: "fixtures/plugins",
    has: |name| name.ends_with(".json"),
    elsewhere: "MAGNUM_TESTS_PLUGIN_CASES",
};

/// A recorded case.
#[derive(Debug, Clone)]
pub struct Case {
    /// The file, without its ending.
    pub file: String,
    /// The package, without its version.
    pub package: String,
    /// The version of the package.
    pub version: String,
    /// The driver that the file is about.
    pub driver: String,
    /// The recording.
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
        self.recorded["name"].as_str().unwrap_or_default()
    }

    /// The driver's method.
    pub fn call(&self) -> &str {
        self.recorded["call"].as_str().unwrap_or_default()
    }

    /// Rows and options at the beginning.
    pub fn given(&self) -> &Value {
        &self.recorded["given"]
    }

    /// An argument of the call.
    pub fn argument(&self, name: &str) -> &Value {
        &self.given()["arguments"][name]
    }

    /// Whether the driver's method returned.
    pub fn is_done(&self) -> bool {
        self.recorded["result"]["outcome"] == "done"
    }

    /// The class of the failure; empty where there was none.
    pub fn class(&self) -> &str {
        self.recorded["result"]["class"].as_str().unwrap_or_default()
    }

    /// The message of the failure.
    pub fn message(&self) -> &str {
        self.recorded["result"]["message"].as_str().unwrap_or_default()
    }

    /// Whether it looks at a cluster, rather than changes one.
    pub fn is_look(&self) -> bool {
        self.recorded["rows_after"].is_object()
    }

    /// The steps: all but `save`.
    pub fn effects(&self) -> Vec<Value> {
        let steps = self.recorded["steps"].as_array().cloned().unwrap_or_default();
        steps.into_iter().filter(|step| step["save"].is_null()).collect()
    }

    /// The steps `save`: what the driver wrote to its rows, in order.
    pub fn saves(&self) -> impl Iterator<Item = &Value> {
        let steps = self.recorded["steps"].as_array().into_iter().flatten();
        steps.map(|step| &step["save"]).filter(|save| !save.is_null())
    }

    /// The options of `magnum.conf` that it was recorded with: section, name, value.
    pub fn options(&self) -> Vec<(String, String, String)> {
        let mut section = String::new();
        let mut options = Vec::new();
        for line in self.given()["options"].as_array().into_iter().flatten() {
            let line = line.as_str().unwrap_or_default().trim();
            if let Some(name) = line.strip_prefix('[') {
                section = name.trim_end_matches(']').to_owned();
            } else if let Some((name, value)) = line.split_once('=') {
                options.push((section.clone(), name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        options
    }
}

/// The case of that title.
pub fn titled(title: &str) -> Result<Case> {
    let mut cases = read(&SUITE.files()?)?.into_iter();
    cases
        .find(|case| case.title() == title)
        .with_context(|| format!("no recorded case is called {title}"))
}

/// The cases that the environment asks for.
pub fn selected() -> Result<Selection<Case>> {
    SUITE.select(read, DIFFERENCES)
}

/// Those of magnum-capi-helm, which our driver plays, too.
pub fn of_capi_helm() -> Result<Selection<Case>> {
    let suite = Suite {
        has: |name| name.starts_with("capi-helm") && name.ends_with(".json"),
        ..SUITE
    };
    suite.select(read, OUR_DIFFERENCES)
}

fn read(files: &[PathBuf]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let recording: Value = serde_json::from_str(&text).with_context(|| file.display().to_string())?;
        let text_of = |name: &str| {
            let text = recording[name].as_str();
            text.with_context(|| format!("{}: no {name}", file.display()))
        };
        let (package, version) = text_of("package")?.split_once(' ').context("a version")?;
        let driver = text_of("driver")?;
        let recorded = recording["cases"].as_array().context("no cases")?;
        cases.extend(recorded.iter().map(|case| {
            Case {
                file: file
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                package: package.to_owned(),
                version: version.to_owned(),
                driver: driver.to_owned(),
                recorded: case.clone(),
            }
        }));
    }
    Ok(cases)
}
