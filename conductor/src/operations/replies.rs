//! Sends the answers of calls.
//!
//! An answer is in the journal before it is sent; here it is published and then marked as sent. What a crash
//! leaves unsent is found by the sweep and sent by whoever finds it, so a caller may get an answer twice (Python
//! and our client take the first) but not never, as long as it waits. An answer that no queue takes belongs to a
//! caller that has gone: noted, and not tried again.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use magnum_common::ids::{ConductorId, OperationId};
use magnum_db::Database;
use magnum_rpc::{PublishError, ReplyAddress};
use magnum_telemetry::{field, trace};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing::field::Empty;

use super::crash_point::{self, CrashPoint};
use super::journal::{EventKind, JournalError, OperationRow, read, write};
use super::stored_reply::{Caller, Reply, StoredReply};

/// Answers on their way in this process. What does not fit is found by the sweep.
const QUEUE: usize = 4096;

/// Answers being published at once.
const PARALLEL: usize = 64;

/// How answers leave; implemented by the RPC side.
#[async_trait]
pub trait ReplySink: Send + Sync {
    /// Publishes one answer.
    async fn answer(&self, to: &ReplyAddress, answer: &Reply) -> Result<(), PublishError>;

    /// Publishes a sign of life.
    async fn alive(&self, to: &ReplyAddress) -> Result<(), PublishError>;
}

/// Where the rest of the conductor drops operations whose answer is due.
#[derive(Debug, Clone)]
pub struct ReplyQueue(mpsc::Sender<OperationId>);

impl ReplyQueue {
    /// Sends the answer soon. Never waits.
    pub fn send(&self, operation: &OperationId) {
        if self.0.try_send(operation.clone()).is_err() {
            tracing::debug!({ field::OPERATION } = %operation, "answer queue is full; the sweep will send it");
        }
    }
}

/// The part that sends.
pub struct Replies {
    db: Database,
    me: ConductorId,
    sink: Arc<dyn ReplySink>,
    due: mpsc::Receiver<OperationId>,
}

/// A queue and its other end.
pub fn queue() -> (ReplyQueue, mpsc::Receiver<OperationId>) {
    let (sender, receiver) = mpsc::channel(QUEUE);
    (ReplyQueue(sender), receiver)
}

impl Replies {
    /// Sends what `due` brings through `sink`.
    pub fn new(
        db: Database,
        me: ConductorId,
        sink: Arc<dyn ReplySink>,
        due: mpsc::Receiver<OperationId>,
    ) -> Self {
        Self { db, me, sink, due }
    }

    /// Runs until `shutdown`, then sends what is already queued.
    pub async fn run(self, shutdown: CancellationToken) {
        let Self { db, me, sink, due } = self;
        let due = futures::stream::unfold((due, shutdown), |(mut due, shutdown)| async move {
            let next = tokio::select! {
                biased;
                next = due.recv() => next,
                () = shutdown.cancelled() => due.try_recv().ok(),
            };
            next.map(|operation| (operation, (due, shutdown)))
        });
        due.for_each_concurrent(PARALLEL, |operation| {
            let (db, me, sink) = (db.clone(), me.clone(), Arc::clone(&sink));
            async move {
                if let Err(error) = send(&db, &me, sink.as_ref(), &operation).await {
                    tracing::warn!({ field::OPERATION } = %operation, %error, "the answer is not sent yet");
                }
            }
        })
        .await;
    }
}

#[derive(Debug, thiserror::Error)]
enum SendError {
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Publish(#[from] PublishError),
}

async fn send(
    db: &Database,
    me: &ConductorId,
    sink: &dyn ReplySink,
    operation: &OperationId,
) -> Result<(), SendError> {
    let id = operation.clone();
    let row = db
        .transaction::<_, JournalError, _>(move |conn| read::find(conn, id.as_str()))
        .await?;
    let Some(row) = row.filter(|row| row.reply_pending) else {
        return Ok(());
    };
    let span = tracing::info_span!(
        "reply",
        { field::SPAN_KIND } = "producer",
        { field::OPERATION } = row.uuid,
        { field::CLUSTER } = row.cluster_uuid,
        { field::REQUEST } = row.request_id,
        { field::PROJECT } = row.project_id,
        { field::TRACE } = Empty,
    );
    trace::begin(&span, row.trace());
    send_of(db, me, sink, row).instrument(span).await
}

async fn send_of(
    db: &Database,
    me: &ConductorId,
    sink: &dyn ReplySink,
    row: OperationRow,
) -> Result<(), SendError> {
    crash_point::reach(&row.kind, "reply", CrashPoint::BeforePublish).await;
    let (event, detail) = match parts(&row) {
        Ok((address, answer)) => match sink.answer(&address, &answer).await {
            Ok(()) => (EventKind::Answered, None),
            Err(
                error @ (PublishError::Unroutable { .. }
                | PublishError::TooLarge { .. }
                | PublishError::Encode(_)),
            ) => (EventKind::AnswerLost, Some(error.to_string())),
            Err(error) => return Err(error.into()),
        },
        Err(detail) => (EventKind::AnswerLost, Some(detail)),
    };
    crash_point::reach(&row.kind, "reply", CrashPoint::AfterPublish).await;
    let me = me.clone();
    db.transaction::<_, JournalError, _>(move |conn| {
        write::answered(conn, &row.uuid, event, me.as_str(), detail.as_deref())
    })
    .await?;
    Ok(())
}

fn parts(row: &OperationRow) -> Result<(ReplyAddress, Reply), String> {
    let (Some(address), Some(answer)) = (&row.reply, &row.answer) else {
        return Err("there is no reply address, or no answer".to_owned());
    };
    let caller: Caller =
        rmp_serde::from_slice(address).map_err(|error| format!("the reply address: {error}"))?;
    let answer = StoredReply::read(answer).map_err(|error| error.to_string())?;
    Ok((caller.address(), answer))
}
