//! The journal's rows and what they mean.

use diesel::prelude::*;
use magnum_common::ids::{ClusterUuid, Epoch, MessageId, OperationId, RequestId};
use magnum_db::MultiBackend;
use magnum_db::schema::{conductor_operation, conductor_operation_event};
use magnum_telemetry::field;
use magnum_telemetry::trace::{self, TraceContext};
use tracing::Span;
use tracing::field::Empty;

use crate::operations::state::State;
use crate::operations::stored_reply::Caller;
use crate::workflows::{Args, DriverRef, OperationKind, Step, format};

/// A row of `conductor_operation`.
#[derive(Clone, Queryable, Selectable)]
#[diesel(table_name = conductor_operation, check_for_backend(MultiBackend))]
#[expect(missing_docs, reason = "the columns are explained in docs/DURABILITY.md")]
pub struct OperationRow {
    pub id: i64,
    pub uuid: String,
    pub message_id: Option<String>,
    pub kind: String,
    pub cluster_uuid: String,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub request_id: Option<String>,
    pub state: String,
    pub step: Option<String>,
    pub stop_requested: bool,
    pub args: Vec<u8>,
    pub context: Option<Vec<u8>>,
    pub driver: Option<String>,
    pub driver_version: Option<String>,
    pub reply: Option<Vec<u8>>,
    pub answer: Option<Vec<u8>>,
    pub reply_pending: bool,
    pub attempts: i32,
    pub failures: i32,
    pub next_attempt_ms: Option<i64>,
    pub owner: Option<String>,
    pub lease_epoch: i64,
    pub lease_expires_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub progress_text: Option<String>,
    pub reason: Option<String>,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub ended_ms: Option<i64>,
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
    pub lost_claims: i32,
    pub format: i32,
}

impl OperationRow {
    /// The trace that the operation belongs to; none in rows of older releases.
    pub fn trace(&self) -> Option<TraceContext> {
        TraceContext::parse(self.traceparent.as_deref()?, self.tracestate.as_deref())
    }

    /// A span in the operation's trace: every line inside of it names operation, cluster, request and project.
    pub fn span(&self) -> Span {
        let span = tracing::info_span!(
            "operation",
            { field::OPERATION } = self.uuid,
            { field::OPERATION_KIND } = self.kind,
            { field::CLUSTER } = self.cluster_uuid,
            { field::REQUEST } = self.request_id,
            { field::PROJECT } = self.project_id,
            { field::TRACE } = Empty,
        );
        trace::begin(&span, self.trace());
        span
    }
}

/// A new row.
#[derive(Clone, Insertable)]
#[diesel(table_name = conductor_operation, treat_none_as_default_value = false)]
#[expect(missing_docs, reason = "the columns are explained in docs/DURABILITY.md")]
pub struct NewOperation {
    pub uuid: String,
    pub message_id: Option<String>,
    pub kind: String,
    pub cluster_uuid: String,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub request_id: Option<String>,
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
    pub state: String,
    pub step: Option<String>,
    pub stop_requested: bool,
    pub args: Vec<u8>,
    pub context: Option<Vec<u8>>,
    pub driver: Option<String>,
    pub driver_version: Option<String>,
    pub reply: Option<Vec<u8>>,
    pub answer: Option<Vec<u8>>,
    pub reply_pending: bool,
    pub attempts: i32,
    pub failures: i32,
    pub lease_epoch: i64,
    pub turn: i64,
    pub reason: Option<String>,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub ended_ms: Option<i64>,
    pub format: i32,
}

/// A new event, time included: for writing many at once.
#[derive(Clone, Insertable)]
#[diesel(table_name = conductor_operation_event, treat_none_as_default_value = false)]
pub(super) struct NewEvent {
    pub operation_uuid: String,
    pub at_ms: i64,
    pub attempt: i32,
    pub epoch: i64,
    pub kind: String,
    pub step: Option<String>,
    pub conductor: Option<String>,
    pub detail: Option<String>,
}

/// A row of `conductor_operation_event`.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = conductor_operation_event, check_for_backend(MultiBackend))]
#[expect(missing_docs, reason = "the names say it")]
pub struct EventRow {
    pub at_ms: i64,
    pub attempt: i32,
    pub epoch: i64,
    pub kind: String,
    pub step: Option<String>,
    pub conductor: Option<String>,
    pub detail: Option<String>,
}

/// What an event records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum EventKind {
    Accepted,
    Refused,
    Merged,
    Claimed,
    Intent,
    Result,
    Failed,
    Panicked,
    StopRequested,
    Hastened,
    Observing,
    Ended,
    Released,
    Answered,
    AnswerLost,
    Retried,
    Discarded,
    Unread,
}

impl EventKind {
    /// The text in the journal.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Merged => "merged",
            Self::Claimed => "claimed",
            Self::Intent => "intent",
            Self::Result => "result",
            Self::Failed => "failed",
            Self::Panicked => "panicked",
            Self::StopRequested => "stop_requested",
            Self::Hastened => "hastened",
            Self::Observing => "observing",
            Self::Ended => "ended",
            Self::Released => "released",
            Self::Answered => "answered",
            Self::AnswerLost => "answer_lost",
            Self::Retried => "retried",
            Self::Discarded => "discarded",
            Self::Unread => "unread",
        }
    }
}

/// A record that this program cannot read: damaged, or of a newer release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation}: column {column} cannot be read: {detail}")]
pub struct Unreadable {
    /// Which operation.
    pub operation: String,
    /// Which column.
    pub column: &'static str,
    /// Why.
    pub detail: String,
}

/// An operation as the executor works with it.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct Operation {
    pub row: i64,
    pub id: OperationId,
    pub message_id: Option<MessageId>,
    pub kind: OperationKind,
    pub cluster: ClusterUuid,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub request_id: Option<RequestId>,
    pub state: State,
    /// The step that is being done, or is to be done next.
    pub step: Step,
    pub args: Args,
    /// Sealed.
    pub context: Option<Vec<u8>>,
    pub driver: Option<DriverRef>,
    pub reply: Option<Caller>,
    pub attempts: u32,
    pub failures: u32,
    pub lost_claims: u32,
    pub epoch: Epoch,
    pub deadline_ms: Option<i64>,
    pub created_ms: i64,
}

impl TryFrom<OperationRow> for Operation {
    type Error = Unreadable;

    fn try_from(row: OperationRow) -> Result<Self, Unreadable> {
        let unreadable = |column, detail: String| Unreadable {
            operation: row.uuid.clone(),
            column,
            detail,
        };
        if row.format > format::KNOWN {
            let (needed, known) = (row.format, format::KNOWN);
            let detail = format!("the operation needs {needed}, this release knows formats up to {known}");
            return Err(unreadable("format", detail));
        }
        let kind: OperationKind = row
            .kind
            .parse()
            .map_err(|error| unreadable("kind", text(&error)))?;
        let args = Args::from_bytes(&row.args).map_err(|error| unreadable("args", text(&error)))?;
        if args.kind() != kind {
            return Err(unreadable("args", format!("they belong to {}", args.kind())));
        }
        let step: Step = match row.step.as_deref() {
            Some(step) => step.parse().map_err(|error| unreadable("step", text(&error)))?,
            None => return Err(unreadable("step", "it is empty".to_owned())),
        };
        if !kind.steps().contains(&step) {
            return Err(unreadable("step", format!("{kind} has no step {step}")));
        }
        let reply = row
            .reply
            .as_deref()
            .map(rmp_serde::from_slice)
            .transpose()
            .map_err(|error: rmp_serde::decode::Error| unreadable("reply", text(&error)))?;
        let state = row
            .state
            .parse()
            .map_err(|error| unreadable("state", text(&error)))?;
        Ok(Self {
            row: row.id,
            id: row.uuid.into(),
            message_id: row.message_id.map(MessageId::from),
            kind,
            cluster: row.cluster_uuid.into(),
            project_id: row.project_id,
            user_id: row.user_id,
            request_id: row.request_id.map(RequestId::from),
            state,
            step,
            args,
            context: row.context,
            driver: row.driver.map(|name| DriverRef {
                name,
                version: row.driver_version.unwrap_or_default(),
            }),
            reply,
            attempts: row.attempts.unsigned_abs(),
            failures: row.failures.unsigned_abs(),
            lost_claims: row.lost_claims.unsigned_abs(),
            epoch: Epoch(row.lease_epoch),
            deadline_ms: row.deadline_ms,
            created_ms: row.created_ms,
        })
    }
}

fn text(error: &impl ToString) -> String {
    error.to_string()
}
