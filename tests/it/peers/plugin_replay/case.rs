//! Recorded cases: their files, and which of them run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::differences::{DIFFERENCES, Difference};

/// Recordings that run instead of those of the checkout: a file, or a folder of files.
const FILES: &str = "MAGNUM_TESTS_PLUGIN_CASES";
/// Which of them run: `all`, or a part of the name of a case (`file/name`). Unset: a sample.
const WHICH: &str = "MAGNUM_TESTS_PLUGIN_RUN";

/// One case in so many is in the sample.
const SAMPLE: usize = 9;

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

impl Case {
    /// Its name with that of its file.
    pub fn title(&self) -> String {
        format!("{}/{}", self.file, self.name())
    }

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

/// What is to be run.
pub struct Selection {
    /// The cases.
    pub cases: Vec<Case>,
    /// Whether these are all cases of the checkout.
    pub is_complete: bool,
}

/// The case of that title.
pub fn titled(title: &str) -> Result<Case> {
    let mut cases = read(&own())?.into_iter();
    cases
        .find(|case| case.title() == title)
        .with_context(|| format!("no recorded case is called {title}"))
}

fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/plugins")
}

/// The cases that the environment asks for.
pub fn selected() -> Result<Selection> {
    let elsewhere = std::env::var_os(FILES).map(PathBuf::from);
    let cases = read(&elsewhere.clone().unwrap_or_else(own))?;
    let which = std::env::var(WHICH).unwrap_or_default();
    let cases: Vec<Case> = match which.as_str() {
        "all" => cases,
        "" if elsewhere.is_some() => cases,
        "" => sample(cases),
        part => cases
            .into_iter()
            .filter(|case| case.title().contains(part))
            .collect(),
    };
    ensure!(!cases.is_empty(), "no recorded case is called {which:?}");
    Ok(Selection {
        cases,
        is_complete: which == "all" && elsewhere.is_none(),
    })
}

/// One of so many, and one for each difference from the recordings.
fn sample(cases: Vec<Case>) -> Vec<Case> {
    let mut unseen: Vec<&Difference> = DIFFERENCES.iter().collect();
    let mut is_wanted = |number: usize, case: &Case| {
        let before = unseen.len();
        unseen.retain(|difference| !(difference.is_in)(case));
        number.is_multiple_of(SAMPLE) || unseen.len() < before
    };
    let numbered = cases.into_iter().enumerate();
    numbered
        .filter(|(number, case)| is_wanted(*number, case))
        .map(|(_, case)| case)
        .collect()
}

fn read(place: &Path) -> Result<Vec<Case>> {
    let mut files = vec![place.to_path_buf()];
    if place.is_dir() {
        let entries = fs::read_dir(place)?.collect::<Result<Vec<_>, _>>()?;
        files = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        files.sort();
    }
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
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
