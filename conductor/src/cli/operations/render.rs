//! Operations as text and as JSON. Neither shows a context, an answer or a reply address.

use chrono::DateTime;
use serde_json::{Value, json};

use super::list::Listed;
use crate::operations::journal::OperationRow;
use crate::operations::journal::rows::EventRow;

/// Names of clusters are cut to this many characters: as wide as a uuid.
const CLUSTER_WIDTH: usize = 36;

pub(super) fn time(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms).map_or_else(
        || ms.to_string(),
        |time| time.format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
    )
}

pub(super) fn summary(row: &OperationRow) -> Value {
    json!({
        "id": row.uuid,
        "kind": row.kind,
        "cluster": row.cluster_uuid,
        "state": row.state,
        "step": row.step,
        "driver": row.driver,
        "driver_version": row.driver_version,
        "format": row.format,
        "attempts": row.attempts,
        "failures": row.failures,
        "next_attempt": row.next_attempt_ms.map(time),
        "owner": row.owner,
        "lease_expires": row.lease_expires_ms.filter(|ms| *ms > 0).map(time),
        "deadline": row.deadline_ms.map(time),
        "stop_requested": row.stop_requested,
        "progress": row.progress_text,
        "reason": row.reason,
        "request_id": row.request_id,
        "trace_id": row.trace().map(|trace| trace.trace_id()),
        "message_id": row.message_id,
        "project_id": row.project_id,
        "user_id": row.user_id,
        "is_call": row.reply.is_some(),
        "answer_pending": row.reply_pending,
        "created": time(row.created_ms),
        "updated": time(row.updated_ms),
        "ended": row.ended_ms.map(time),
    })
}

pub(super) fn details(row: &OperationRow, events: &[EventRow]) -> Value {
    let mut value = summary(row);
    value["events"] = events
        .iter()
        .map(|event| {
            json!({
                "at": time(event.at_ms), "event": event.kind, "step": event.step, "attempt": event.attempt,
                "epoch": event.epoch, "by": event.conductor, "detail": event.detail,
            })
        })
        .collect();
    value
}

pub(super) fn as_json(value: &Value) -> String {
    format!("{value:#}\n")
}

/// The list for a terminal. Of a cluster that is there still its name is shown, else its uuid.
pub(super) fn table(listed: &Listed) -> String {
    if listed.rows.is_empty() {
        return "no operations\n".to_owned();
    }
    let cluster_of = |row: &OperationRow| match listed.names.get(&row.cluster_uuid) {
        Some(name) => name.chars().take(CLUSTER_WIDTH).collect(),
        None => row.cluster_uuid.clone(),
    };
    let widest = listed
        .rows
        .iter()
        .map(|row| cluster_of(row).chars().count())
        .max();
    let width = widest.unwrap_or_default().max("CLUSTER".len());
    let mut text = format!(
        "{:36}  {:21}  {:width$}  {:9}  {:>8}  {:19}  {}\n",
        "ID", "KIND", "CLUSTER", "STATE", "ATTEMPTS", "UPDATED (UTC)", "REASON"
    );
    for row in &listed.rows {
        let reason: String = row
            .reason
            .as_deref()
            .or_else(|| row.progress_text.as_deref().filter(|_| row.ended_ms.is_none()))
            .unwrap_or_default()
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(80)
            .collect();
        let line = format!(
            "{:36}  {:21}  {:width$}  {:9}  {:>8}  {:19}  {reason}",
            row.uuid,
            row.kind,
            cluster_of(row),
            row.state,
            row.attempts,
            time(row.updated_ms).chars().take(19).collect::<String>(),
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

pub(super) fn timeline(row: &OperationRow, events: &[EventRow]) -> String {
    let mut text = String::new();
    if let Value::Object(fields) = summary(row) {
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            text.push_str(&format!("{name:15} {shown}\n"));
        }
    }
    text.push_str("\nTIME (UTC)               EVENT           STEP            ATTEMPT  BY\n");
    for event in events {
        text.push_str(&format!(
            "{:24} {:15} {:15} {:>7}  {}\n",
            time(event.at_ms),
            event.kind,
            event.step.as_deref().unwrap_or("-"),
            event.attempt,
            event.conductor.as_deref().unwrap_or("-"),
        ));
        if let Some(detail) = &event.detail {
            text.push_str(&format!(
                "{:25}{}\n",
                "",
                detail.replace('\n', "\n                         ")
            ));
        }
    }
    text
}
