//! `magnum-conductor operations list | show | retry | discard`: the journal for operators.
//!
//! Works on the database alone, with no conductor running. Never prints a context, an answer or a reply address.

use std::io::Write;

use anyhow::{Context, bail};
use chrono::DateTime;
use clap::{Args, Subcommand};
use magnum_config::Settings;
use magnum_db::Database;
use serde_json::{Value, json};

use crate::operations::State;
use crate::operations::admin::{self, AdminError};
use crate::operations::journal::rows::EventRow;
use crate::operations::journal::{JournalError, OperationRow, read};

/// Looks at recorded operations, and acts on them.
#[derive(Debug, Args)]
pub struct OperationsArgs {
    #[command(subcommand)]
    command: OperationsCommand,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum OperationsCommand {
    /// Lists operations, newest first.
    List {
        /// Only those of this cluster (uuid).
        #[arg(long)]
        cluster: Option<String>,
        /// Only those in this state: queued, running, retrying, observing, succeeded, failed, refused, cancelled.
        #[arg(long, value_parser = parse_state)]
        state: Option<State>,
        /// At most so many.
        #[arg(long, default_value_t = 50)]
        limit: u32,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Shows one operation with everything that happened to it.
    Show {
        /// The operation's id.
        id: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tries again: now, if the operation waits for its next attempt; from the start, if it failed.
    Retry {
        /// The operation's id.
        id: String,
    },
    /// Gives an operation up; its cluster becomes *_FAILED. A running one stops at its next step.
    Discard {
        /// The operation's id.
        id: String,
        /// Why: becomes the reason of the operation and of the cluster's status.
        #[arg(long)]
        reason: String,
    },
}

/// Runs the sub-command.
///
/// # Errors
/// The database cannot be reached or read, there is no such operation, its state does not allow the action, `--reason` is
/// blank, or standard output cannot be written.
pub async fn run(settings: &Settings, args: OperationsArgs) -> anyhow::Result<()> {
    let db = Database::connect(&settings.database)
        .await
        .context("the journal is in the database of [database] connection")?;
    match args.command {
        OperationsCommand::List {
            cluster,
            state,
            limit,
            json,
        } => {
            let rows = db
                .transaction::<_, JournalError, _>(move |conn| {
                    let wanted = read::Wanted {
                        cluster: cluster.as_deref(),
                        state,
                        limit: i64::from(limit),
                    };
                    read::list(conn, &wanted)
                })
                .await?;
            print(&if json {
                as_json(&Value::Array(rows.iter().map(summary).collect()))
            } else {
                table(&rows)
            })
        }
        OperationsCommand::Show { id, json } => {
            let (row, events) = db
                .transaction::<_, AdminError, _>(move |conn| admin::show(conn, &id))
                .await?;
            print(&if json {
                as_json(&details(&row, &events))
            } else {
                timeline(&row, &events)
            })
        }
        OperationsCommand::Retry { id } => {
            let shown = id.clone();
            let done = db
                .transaction::<_, AdminError, _>(move |conn| admin::retry(conn, &id, &operator()))
                .await?;
            print(&format!("{shown}: {done}\n"))
        }
        OperationsCommand::Discard { id, reason } => {
            if reason.trim().is_empty() {
                bail!("--reason must say why: users read it in status_reason");
            }
            let shown = id.clone();
            let done = db
                .transaction::<_, AdminError, _>(move |conn| admin::discard(conn, &id, &reason, &operator()))
                .await?;
            print(&format!("{shown}: {done}\n"))
        }
    }
}

/// The state of this name; the error lists all names.
fn parse_state(text: &str) -> Result<State, String> {
    text.parse().map_err(|_| {
        let names: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
        format!("there is no such state; use one of {}", names.join(", "))
    })
}

/// The operator's user name, for the journal's events.
fn operator() -> String {
    let user = std::env::var("SUDO_USER")
        .or_else(|_| std::env::var("USER"))
        .unwrap_or_else(|_| "unknown".to_owned());
    format!("operator {user}")
}

fn time(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms).map_or_else(
        || ms.to_string(),
        |time| time.format("%Y-%m-%d %H:%M:%S%.3f").to_string(),
    )
}

fn summary(row: &OperationRow) -> Value {
    json!({
        "id": row.uuid,
        "kind": row.kind,
        "cluster": row.cluster_uuid,
        "state": row.state,
        "step": row.step,
        "driver": row.driver,
        "driver_version": row.driver_version,
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

fn details(row: &OperationRow, events: &[EventRow]) -> Value {
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

fn as_json(value: &Value) -> String {
    format!("{value:#}\n")
}

fn table(rows: &[OperationRow]) -> String {
    if rows.is_empty() {
        return "no operations\n".to_owned();
    }
    let mut text = format!(
        "{:36}  {:14}  {:36}  {:9}  {:>8}  {:19}  {}\n",
        "ID", "KIND", "CLUSTER", "STATE", "ATTEMPTS", "UPDATED (UTC)", "REASON"
    );
    for row in rows {
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
        text.push_str(&format!(
            "{:36}  {:14}  {:36}  {:9}  {:>8}  {:19}  {reason}\n",
            row.uuid,
            row.kind,
            row.cluster_uuid,
            row.state,
            row.attempts,
            time(row.updated_ms).chars().take(19).collect::<String>(),
        ));
    }
    text
}

fn timeline(row: &OperationRow, events: &[EventRow]) -> String {
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

pub(super) fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        // The reader has closed the pipe: `operations list | head`.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_state_is_refused_with_the_list_of_states() {
        assert_eq!(parse_state("failed"), Ok(State::Failed));
        let error = parse_state("broken").unwrap_err();
        for state in State::ALL {
            assert!(error.contains(state.as_str()), "{error}");
        }
    }
}
