//! What came of a case beside what was to come of it.

use serde_json::{Value, json};

use super::super::replay::differ;
use super::expected::Expected;
use super::stage::Outcome;

/// Instead of the digest of a file that names where it lies.
const NAMES_PLACES: &str = "<names places>";

impl Expected {
    /// What differs from what was.
    pub fn differences(&self, outcome: &Outcome) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, expected: &Value, found: &Value| {
            differ(what, expected, found, &mut differences);
        };
        compare("state", &json!(self.state), &json!(outcome.state));
        compare("reason", &self.reason, &outcome.reason);
        for number in 0..self.calls.len().max(outcome.calls.len()) {
            let nothing = Value::Null;
            let expected = self.calls.get(number).unwrap_or(&nothing);
            let found = outcome.calls.get(number).unwrap_or(&nothing);
            let found = told_alike(expected, found);
            compare(&format!("call {number}"), &wherever(expected, &found), &found);
        }
        compare("rows", &self.after.json(), &outcome.after.json());
        differences
    }
}

/// What was found, without what the recording does not tell: in a look as whom others than Heat were asked.
fn told_alike(expected: &Value, found: &Value) -> Value {
    let mut found = found.clone();
    if expected["as"].is_null()
        && expected["call"].is_string()
        && let Some(call) = found.as_object_mut()
    {
        call.remove("as");
    }
    found
}

/// What is expected, without the digests of files that are different wherever Magnum lies.
fn wherever(expected: &Value, found: &Value) -> Value {
    let mut expected = expected.clone();
    if let Some(files) = expected.pointer_mut("/args/files").and_then(Value::as_object_mut) {
        for (name, digest) in files {
            if found["args"]["files"][name] == NAMES_PLACES {
                *digest = json!(NAMES_PLACES);
            }
        }
    }
    expected
}
