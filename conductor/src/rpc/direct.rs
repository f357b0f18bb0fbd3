//! What needs no journal: questions, and requests that cannot be carried out. They are answered at once, beside
//! the consumer; everything else is handed on to be recorded.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use magnum_common::error::Fault;
use magnum_common::ids::MessageId;
use magnum_rpc::{ReplyAddress, Request, Transport};
use magnum_rpc_server::{Delivery, Incoming as Message, reply};
use magnum_telemetry::{field, trace};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::dispatch::{Routed, route};
use crate::handlers::Incoming;
use crate::handlers::question::{Answerer, Question};
use crate::operations::Signals;

/// Questions being answered at once. More wait their turn.
const AT_ONCE: usize = 256;

/// Questions that keep their place among the messages which the broker lets us hold ([`magnum_rpc::DEFAULT_PREFETCH`]), so that
/// another conductor answers them if this one dies. More are acknowledged when they come, as oslo.messaging does with all: the
/// places are for requests that have to be recorded.
const KEPT: usize = 128;

/// Questions that wait here. More keep their place, and make the broker wait.
const MOST_WAITING: usize = 10_000;

/// A message that is to be recorded, and its delivery.
pub(super) struct PendingMessage {
    pub(super) incoming: Incoming,
    pub(super) delivery: Delivery,
}

/// Answers that need no journal, sent beside the consumer.
pub(super) struct Direct {
    transport: Arc<dyn Transport>,
    answerer: Answerer,
    signals: Arc<Signals>,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Direct {
    /// Answers of `answerer`, through this transport.
    pub(super) fn new(transport: Arc<dyn Transport>, answerer: Answerer, signals: Arc<Signals>) -> Self {
        Self {
            transport,
            answerer,
            signals,
            permits: Arc::new(Semaphore::new(AT_ONCE)),
            tasks: TaskTracker::new(),
        }
    }

    /// Waits until all are sent.
    pub(super) async fn finish(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// What needs no journal is dealt with; what does comes back.
    pub(super) fn sort(&self, message: Message) -> Option<PendingMessage> {
        let Message { request, delivery } = message;
        self.signals.messages.fetch_add(1, Ordering::Relaxed);
        let address = request.reply.clone();
        let span = span_of(&request);
        let trace = trace::begin(&span, delivery.message().trace.clone());
        match route(request) {
            Routed::Record(incoming) => {
                span.record(field::CLUSTER, incoming.command.cluster().as_str());
                let incoming = Incoming {
                    trace: Some(trace),
                    span,
                    ..*incoming
                };
                return Some(PendingMessage { incoming, delivery });
            }
            Routed::Ask(question) => span.in_scope(|| self.ask(address, question, delivery)),
            Routed::Fault(fault) => span.in_scope(|| self.refuse(address, fault, delivery)),
        }
        None
    }

    fn ask(&self, address: Option<ReplyAddress>, question: Box<Question>, delivery: Delivery) {
        let (transport, answerer) = (Arc::clone(&self.transport), self.answerer.clone());
        let permits = Arc::clone(&self.permits);
        let is_kept = address.is_none() || !(KEPT..MOST_WAITING).contains(&self.tasks.len());
        self.spawn(async move {
            let delivery = if is_kept {
                Some(delivery)
            } else {
                delivery.ack().await;
                None
            };
            // Never closed; without a permit the work is done all the same.
            let _permit = permits.acquire().await.ok();
            let outcome = answerer.answer(*question).await;
            if let Err(fault) = &outcome {
                tracing::debug!(reason = %fault, "a question is answered with an exception");
            }
            settle(transport.as_ref(), address, outcome, delivery).await;
        });
    }

    fn refuse(&self, address: Option<ReplyAddress>, fault: Fault, delivery: Delivery) {
        tracing::warn!(reason = %fault, "a message cannot be carried out");
        let transport = Arc::clone(&self.transport);
        self.spawn(async move { settle(transport.as_ref(), address, Err(fault), Some(delivery)).await });
    }

    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work.in_current_span());
    }
}

/// The span of everything that is done with a message.
fn span_of(request: &Request) -> Span {
    tracing::info_span!(
        "message",
        { field::SPAN_KIND } = "consumer",
        { field::RPC_METHOD } = request.method,
        { field::MESSAGE } = request.unique_id.as_ref().map(MessageId::as_str),
        { field::REQUEST } = request.context.request_id(),
        { field::PROJECT } = request.context.project_id(),
        { field::TRACE } = Empty,
        { field::CLUSTER } = Empty,
        { field::OPERATION } = Empty,
    )
}

/// Answers a call and acknowledges, where that was not done before; a cast that failed goes to the dead letters.
async fn settle(
    transport: &dyn Transport,
    address: Option<ReplyAddress>,
    outcome: Result<Value, Fault>,
    delivery: Option<Delivery>,
) {
    let Some(delivery) = delivery else {
        if let Some(address) = address {
            answer(transport, &address, outcome).await;
        }
        return;
    };
    match (address, outcome) {
        (Some(address), outcome) => {
            answer(transport, &address, outcome).await;
            delivery.ack().await;
        }
        (None, Ok(_)) => delivery.ack().await,
        (None, Err(fault)) => delivery.dead_letter(&fault.message).await,
    }
}

async fn answer(transport: &dyn Transport, address: &ReplyAddress, outcome: Result<Value, Fault>) {
    let sent = match outcome {
        Ok(value) => reply(transport, address, Ok(value)).await,
        Err(fault) => reply(transport, address, Err(&fault)).await,
    };
    if let Err(error) = sent {
        tracing::warn!(%error, "a caller could not be answered");
    }
}
