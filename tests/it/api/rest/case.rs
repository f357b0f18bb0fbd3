//! A recorded request with its answer.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// One line of a transcript.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    pub case: String,
    pub profile: String,
    #[serde(default)]
    pub setup: Vec<Setup>,
    pub request: Recorded,
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    pub response: Response,
}

/// What has to be done before.
#[derive(Debug, Clone, Deserialize)]
pub struct Setup {
    pub sql: Option<String>,
    pub wait: Option<Wait>,
}

/// Until an answer has one of these values at a place.
#[derive(Debug, Clone, Deserialize)]
pub struct Wait {
    #[serde(rename = "as")]
    pub user: String,
    pub path: String,
    pub version: String,
    pub pointer: String,
    pub until: Vec<Value>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Recorded {
    #[serde(rename = "as")]
    pub user: Option<String>,
    pub method: String,
    pub path: String,
    pub version: Option<String>,
    /// Null for one that is not sent.
    #[serde(default)]
    pub headers: BTreeMap<String, Option<String>>,
    pub body: Option<Value>,
    pub raw: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Response {
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub body: Option<Value>,
}

impl Case {
    /// Whether it shows what a conductor has done, or its answer.
    pub fn needs_a_conductor(&self) -> bool {
        let is_answered = ["/certificates", "/credentials", "/actions/upgrade"]
            .iter()
            .any(|part| self.request.path.contains(part));
        is_answered || self.setup.iter().any(|setup| setup.wait.is_some())
    }

    /// Whether it wants a signature.
    pub fn signs(&self) -> bool {
        self.request.method == "POST" && self.request.path.starts_with("/v1/certificates")
    }

    /// `group/scenario`, and the profile.
    pub fn scenario(&self) -> String {
        let end = self.case.rfind('/').unwrap_or(self.case.len());
        format!("{} {}", &self.case[..end], self.profile)
    }
}

/// All cases of a file, in order.
pub fn load(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/rest/{file}.jsonl"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{file}: {error}: {line}")))
        .collect()
}
