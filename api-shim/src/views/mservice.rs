//! A service, as administrators see it.

use magnum_common::model::{MagnumService, Timestamp};
use serde_json::Value;

use super::attribute::{self, Shown, View, attributes};
use crate::microversion::Version;

/// The only form.
pub const FULL: View = 1;

/// What a row of the table reads.
#[derive(Debug)]
pub struct MserviceSource<'a> {
    service: &'a MagnumService,
    is_up: bool,
}

/// A service as it is shown.
#[derive(Debug)]
pub struct ServiceView;

impl Shown for ServiceView {
    type Source<'a> = MserviceSource<'a>;
    attributes! { Self, seen;
        "host" or null: Text => &seen.service.host;
        "binary" or null: Text => &seen.service.binary;
        "state": Choice(&["up", "down"]) => if seen.is_up { "up" } else { "down" };
        "id" or null: Integer => &seen.service.id;
        "report_count": Integer => &seen.service.report_count;
        "disabled" or null: Boolean => &seen.service.disabled;
        "disabled_reason" or null: Text => &seen.service.disabled_reason;
        "created_at" or null: Time => &seen.service.created_at;
        "updated_at" or null: Time => &seen.service.updated_at;
    }
}

/// The service at `now`; it counts as down when it was not seen for `down_after` seconds.
pub fn show(service: &MagnumService, now: Timestamp, down_after: i64) -> Value {
    let seen = MserviceSource {
        service,
        is_up: service.is_up(now, down_after),
    };
    attribute::render::<ServiceView>(seen, FULL, Version::MAX)
}
