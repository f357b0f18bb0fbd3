//! The words of the recordings: calls as they are told, and uuids that all cases share.

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// In the middle of each uuid of the recordings.
const SHARED: &str = "-0000-4000-8000-";

/// A value with uuids of its own, so that cases can be beside each other in one database.
pub fn own(number: usize, value: &Value) -> Result<Value> {
    replace(value, SHARED, &of_case(number))
}

/// The reverse.
pub fn shared(number: usize, value: &Value) -> Result<Value> {
    replace(value, &of_case(number), SHARED)
}

fn of_case(number: usize) -> String {
    format!("-{number:04}-4fff-8000-")
}

fn replace(value: &Value, from: &str, to: &str) -> Result<Value> {
    Ok(serde_json::from_str(&value.to_string().replace(from, to))?)
}

/// A call as it is told in full; looks are recorded with short texts.
pub fn call(told: &Value) -> Result<Value> {
    let Some(text) = told.as_str() else {
        return Ok(told.clone());
    };
    let (call, rest) = text.split_once(' ').context("a call with arguments")?;
    if call == "heat.stacks.get" {
        return Ok(match rest.strip_suffix(" without outputs") {
            Some(stack) => json!({"call": call, "args": {"stack_id": stack, "resolve_outputs": false}}),
            None => json!({"call": call, "args": {"stack_id": rest}}),
        });
    }
    let arguments: Value = serde_json::from_str(rest).with_context(|| text.to_owned())?;
    Ok(if arguments == json!({}) {
        json!({"call": call})
    } else {
        json!({"call": call, "args": arguments})
    })
}
