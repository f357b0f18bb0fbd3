//! A quota: a row, or the limit that holds without one.

use magnum_common::model::Quota;
use serde_json::{Value, json};

use super::time;
use crate::validation::quota::CLUSTER;

/// A quota that was set.
pub fn show(quota: &Quota) -> Value {
    json!({
        "id": quota.id,
        "hard_limit": quota.hard_limit,
        "project_id": quota.project_id,
        "resource": quota.resource,
        "created_at": time(quota.created_at),
        "updated_at": time(quota.updated_at),
    })
}

/// What holds for a project without one.
pub fn default(project: &str, limit: u32) -> Value {
    json!({"hard_limit": limit, "project_id": project, "resource": CLUSTER})
}
