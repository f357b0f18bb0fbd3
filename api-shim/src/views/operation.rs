//! An operation: for the cluster's project, and for administrators.
//!
//! Owners see what was asked for, how far it is and how it ended, in the words that the cluster's `status_reason` has.
//! Failures of attempts are shown to administrators only, with the conductor and its lease: such texts name hosts and
//! files of the cloud.

use chrono::DateTime;
use magnum_db::read::operations::{Operation, OperationEvent};
use serde_json::Value;

use super::attribute::{self, Shown, View, attributes};
use super::cell::Cell;
use crate::microversion::Version;

/// For callers who may see the cluster.
pub const FOR_OWNERS: View = 1;
/// For administrators.
pub const FOR_ADMINISTRATORS: View = 2;
/// What stands in the one view only. The API's document describes both, so it may be absent.
const ADMIN: View = FOR_ADMINISTRATORS;

/// What a row of the table reads.
#[derive(Debug)]
pub struct OperationSource<'a> {
    operation: &'a Operation,
    events: &'a [OperationEvent],
    view: View,
    version: Version,
}

impl OperationSource<'_> {
    fn reason(&self) -> Option<&str> {
        let is_final = self.operation.ended_ms.is_some();
        let reason = self.operation.reason.as_deref();
        reason.filter(|_| is_final || self.view == FOR_ADMINISTRATORS)
    }

    /// A time that means something only until the end.
    fn ahead(&self, ms: Option<i64>) -> Cell<'_> {
        at(ms.filter(|_| self.operation.ended_ms.is_none()))
    }

    fn events(&self) -> Value {
        let shown = |event| attribute::render::<EventView>(event, self.view, self.version);
        self.events.iter().map(shown).collect()
    }
}

/// An operation as it is shown.
#[derive(Debug)]
pub struct OperationView;

impl Shown for OperationView {
    type Source<'a> = OperationSource<'a>;
    attributes! { Self, seen;
        "uuid": Uuid => &seen.operation.uuid;
        "kind": Text => &seen.operation.kind;
        "cluster_uuid": Uuid => &seen.operation.cluster_uuid;
        "state": Text => &seen.operation.state;
        "step" or null: Text => &seen.operation.step;
        "attempts": Integer => &seen.operation.attempts;
        "failures": Integer => &seen.operation.failures;
        "reason" or null: Text => seen.reason();
        "progress" or null: Text => &seen.operation.progress_text;
        "stop_requested": Boolean => &seen.operation.stop_requested;
        "request_id" or null: Text => &seen.operation.request_id;
        "project_id" or null: Text => &seen.operation.project_id;
        "user_id" or null: Text => &seen.operation.user_id;
        "driver" or null: Text => &seen.operation.driver;
        "driver_version" or null: Text => &seen.operation.driver_version;
        "created_at": Time => at(Some(seen.operation.created_ms));
        "updated_at": Time => at(Some(seen.operation.updated_ms));
        "ended_at" or null: Time => at(seen.operation.ended_ms);
        "next_attempt_at" or null: Time => seen.ahead(seen.operation.next_attempt_ms);
        "deadline_at" or null: Time => seen.ahead(seen.operation.deadline_ms);
        "events": Events => seen.events();
        "conductor" or null: Text, in ADMIN, maybe ADMIN => Some(&seen.operation.owner);
        "lease_epoch": Integer, in ADMIN, maybe ADMIN => Some(&seen.operation.lease_epoch);
        "lease_expires_at" or null: Time, in ADMIN, maybe ADMIN
            => Some(at(seen.operation.lease_expires_ms.filter(|ms| *ms > 0)));
        "message_id" or null: Text, in ADMIN, maybe ADMIN => Some(&seen.operation.message_id);
        "answer_pending": Boolean, in ADMIN, maybe ADMIN => Some(&seen.operation.reply_pending);
    }
}

/// What happened, as far as the audience is concerned.
#[derive(Debug)]
pub struct EventView;

impl Shown for EventView {
    type Source<'a> = &'a OperationEvent;
    attributes! { Self, event;
        "event": Text => &event.kind;
        "step" or null: Text => &event.step;
        "attempt": Integer => &event.attempt;
        "at": Time => at(Some(event.at_ms));
        "conductor" or null: Text, in ADMIN, maybe ADMIN => Some(&event.conductor);
        "lease_epoch": Integer, in ADMIN, maybe ADMIN => Some(&event.epoch);
        "detail" or null: Text, in ADMIN, maybe ADMIN => Some(&event.detail);
    }
}

/// One operation with what happened to it, in one of the two views.
pub fn show(operation: &Operation, events: &[OperationEvent], view: View, version: Version) -> Value {
    let seen = OperationSource {
        operation,
        events,
        view,
        version,
    };
    attribute::render::<OperationView>(seen, view, version)
}

fn at<'c>(ms: Option<i64>) -> Cell<'c> {
    let at = ms.and_then(DateTime::from_timestamp_millis);
    at.map_or(Cell::Null, |at| Cell::Time(at.naive_utc()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn operation() -> Operation {
        Operation {
            id: 1,
            uuid: "o".into(),
            message_id: Some("m".into()),
            kind: "cluster_update".into(),
            cluster_uuid: "c".into(),
            project_id: Some("p".into()),
            user_id: Some("u".into()),
            request_id: Some("req-1".into()),
            state: "retrying".into(),
            step: Some("drive".into()),
            stop_requested: false,
            driver: Some("disk".into()),
            driver_version: Some("1.0.0".into()),
            reply_pending: false,
            attempts: 2,
            failures: 2,
            next_attempt_ms: Some(1_700_000_000_000),
            owner: Some("ctl1:77".into()),
            lease_epoch: 4,
            lease_expires_ms: Some(1_700_000_000_000),
            deadline_ms: None,
            progress_text: None,
            reason: Some("ctl1 refused /var/lib/secret".into()),
            created_ms: 1_700_000_000_000,
            updated_ms: 1_700_000_000_500,
            ended_ms: None,
        }
    }

    fn event() -> OperationEvent {
        OperationEvent {
            id: 1,
            operation_uuid: "o".into(),
            at_ms: 1_700_000_000_000,
            attempt: 1,
            epoch: 3,
            kind: "failed".into(),
            step: Some("drive".into()),
            conductor: Some("ctl1:77".into()),
            detail: Some("ctl1 refused /var/lib/secret".into()),
        }
    }

    #[test]
    fn owners_see_no_host_and_nothing_of_a_failure_that_is_not_final() {
        let shown = show(&operation(), &[event()], FOR_OWNERS, Version::MAX);
        let text = shown.to_string();
        assert!(!text.contains("ctl1") && !text.contains("secret"), "{text}");
        assert_eq!(shown["created_at"], "2023-11-14T22:13:20+00:00");
        assert_eq!(shown["events"][0]["event"], "failed");
        let ended = Operation {
            ended_ms: Some(1),
            ..operation()
        };
        assert_eq!(
            show(&ended, &[], FOR_OWNERS, Version::MAX)["reason"],
            json!(operation().reason)
        );
    }

    #[test]
    fn administrators_see_the_owner_and_each_failure() {
        let shown = show(&operation(), &[event()], FOR_ADMINISTRATORS, Version::MAX);
        assert_eq!(shown["conductor"], "ctl1:77");
        assert_eq!(shown["reason"], json!(operation().reason));
        assert_eq!(shown["events"][0]["detail"], json!(event().detail));
    }
}
