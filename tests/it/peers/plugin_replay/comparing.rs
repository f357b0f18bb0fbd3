//! What came of a case beside what was to come of it.

use serde_json::{Value, json};

use super::super::replay::{Columns, differ};
use super::expected::Expected;
use super::playing::Outcome;

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
