//! A federation, in its short form for lists and its long form.

use magnum_common::model::Federation;
use serde_json::{Value, json};

use super::{links, time};

/// The short form.
pub fn brief(federation: &Federation, base: &str) -> Value {
    let uuid = federation.uuid.as_deref().unwrap_or_default();
    json!({
        "uuid": uuid,
        "name": federation.name,
        "hostcluster_id": federation.hostcluster_id,
        "member_ids": federation.member_ids,
        "status": federation.status,
        "properties": federation.properties,
        "links": links::pair(base, &format!("federations/{uuid}")),
    })
}

/// The long form.
pub fn full(federation: &Federation, base: &str) -> Value {
    let mut view = brief(federation, base);
    view["status_reason"] = json!(federation.status_reason);
    view["created_at"] = time(federation.created_at);
    view["updated_at"] = time(federation.updated_at);
    view
}
