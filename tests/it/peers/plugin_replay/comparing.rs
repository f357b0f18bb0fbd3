//! What came of a case beside what was to come of it.

use serde_json::{Value, json};

use super::expected::Expected;
use super::playing::Outcome;
use super::rows::Columns;

impl Expected {
    /// What differs from what was.
    pub fn differences(&self, outcome: &Outcome) -> Vec<String> {
        let mut differences = Vec::new();
        let mut compare = |what: String, expected: &Value, found: &Value| {
            differ(&what, expected, found, &mut differences);
        };
        compare("state".to_owned(), &json!(self.state), &json!(outcome.state));
        compare("reason".to_owned(), &self.reason, &outcome.reason);
        let steps: Vec<Value> = outcome
            .steps
            .iter()
            .enumerate()
            .map(|(number, step)| like(step.clone(), self.steps.get(number)))
            .collect();
        for number in 0..self.steps.len().max(steps.len()) {
            let nothing = Value::Null;
            let expected = self.steps.get(number).unwrap_or(&nothing);
            let found = steps.get(number).unwrap_or(&nothing);
            compare(format!("step {number}"), expected, found);
        }
        compare(
            "cloud reads".to_owned(),
            &json!(self.cloud_reads),
            &json!(outcome.cloud_reads),
        );
        let after = Columns::of_json(&outcome.after);
        compare(
            "cluster".to_owned(),
            &json!(self.after.cluster),
            &json!(after.cluster),
        );
        compare(
            "groups".to_owned(),
            &json!(self.after.groups),
            &json!(after.groups),
        );
        differences
    }
}

/// The places at which two values differ.
fn differ(place: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(left), Value::Object(right)) => {
            for name in left
                .keys()
                .chain(right.keys().filter(|name| !left.contains_key(*name)))
            {
                differ(
                    &format!("{place}.{name}"),
                    &expected[name],
                    &found[name],
                    differences,
                );
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (number, (left, right)) in left.iter().zip(right).enumerate() {
                differ(&format!("{place}[{number}]"), left, right, differences);
            }
        }
        _ if expected == found => {}
        _ => differences.push(format!("{place}: expected {expected}, found {found}")),
    }
}

/// The recordings name the variables and patches of the ClusterClass once.
fn like(mut step: Value, recorded: Option<&Value>) -> Value {
    let is_told = recorded.is_some_and(|step| !step["kubernetes"]["body"]["spec"]["variables"].is_null());
    if !is_told
        && step["kubernetes"]["body"]["kind"] == "ClusterClass"
        && let Some(spec) = step["kubernetes"]["body"]["spec"].as_object_mut()
    {
        spec.remove("variables");
        spec.remove("patches");
    }
    step
}
