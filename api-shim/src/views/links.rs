//! Links: where a resource is, with and without the version prefix.

use serde_json::{Value, json};

/// The pair of links of one resource: `self` under `/v1`, `bookmark` without it. `path` has no leading slash.
pub fn pair(base: &str, path: &str) -> Value {
    json!([
        {"href": format!("{base}/v1/{path}"), "rel": "self"},
        {"href": format!("{base}/{path}"), "rel": "bookmark"},
    ])
}
