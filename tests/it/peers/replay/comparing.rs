//! Two values beside each other.

use serde_json::Value;

/// Adds the places at which two values differ.
pub fn differ(place: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
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
