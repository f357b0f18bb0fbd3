//! A service, as administrators see it.

use magnum_common::model::{MagnumService, Timestamp};
use serde_json::{Value, json};

use super::time;

/// The service at `now`; it counts as down when it was not seen for `down_after` seconds.
pub fn show(service: &MagnumService, now: Timestamp, down_after: i64) -> Value {
    json!({
        "host": service.host,
        "binary": service.binary,
        "state": if service.is_up(now, down_after) { "up" } else { "down" },
        "id": service.id,
        "report_count": service.report_count,
        "disabled": service.disabled,
        "disabled_reason": service.disabled_reason,
        "created_at": time(service.created_at),
        "updated_at": time(service.updated_at),
    })
}
