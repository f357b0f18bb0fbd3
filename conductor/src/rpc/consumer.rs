//! The consumer: batches in, one transaction, then the acknowledgements.
//!
//! Guarantees: a message is acknowledged only after its operation is committed, or after it was answered or set
//! aside with a reason. While the database is away nothing is acknowledged and the broker is asked for no more;
//! the batch in hand is tried again until it succeeds or the process stops, which gives it back. A message that
//! cannot be carried out harms only itself.
//!
//! Batches form by themselves: what arrives while one transaction commits is decoded meanwhile, and is the next
//! batch.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use magnum_common::retry::RetryPolicy;
use magnum_rpc::{ConsumerControl, Transport};
use magnum_rpc_server::{Delivery, RpcServer};
use magnum_telemetry::field;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::direct::{Direct, PendingMessage};
use crate::handlers::accept::waves;
use crate::handlers::{Accepted, Acceptor, Answerer, Incoming};
use crate::metric_definitions as metric;
use crate::operations::crash_point::{self, CrashPoint};
use crate::operations::monitor::CallMonitors;
use crate::operations::replies::ReplyQueue;
use crate::operations::services::Signals;

/// An outage shorter than this is not worth a warning.
const QUIET_OUTAGE: Duration = Duration::from_secs(1);

/// Takes requests from the queue until it is told to stop.
pub struct Consumer {
    /// The queue.
    pub server: RpcServer,
    /// For direct answers.
    pub transport: Arc<dyn Transport>,
    /// Answers what needs no journal.
    pub answerer: Answerer,
    /// The way into the journal.
    pub acceptor: Acceptor,
    /// Answers of recorded calls.
    pub answers: ReplyQueue,
    /// Signs of life until then.
    pub monitors: CallMonitors,
    /// Wakes the executor, and counts messages.
    pub signals: Arc<Signals>,
    /// Most messages in one transaction.
    pub batch: usize,
}

impl Consumer {
    /// Runs until `shutdown`: then takes nothing new, and gives back what is not safe.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut server = self.server;
        let direct = Direct::new(self.transport, self.answerer, Arc::clone(&self.signals));
        let recorder = Recorder {
            flow: server.flow(),
            acceptor: self.acceptor,
            answers: self.answers,
            monitors: self.monitors,
            signals: self.signals,
        };
        let mut owed = Vec::new();
        loop {
            if owed.is_empty() {
                let first = tokio::select! {
                    biased;
                    () = shutdown.cancelled() => break,
                    first = server.recv() => first,
                };
                let Some(first) = first else { break };
                owed.extend(direct.sort(first).await);
            }
            while owed.len() < self.batch
                && let Some(next) = server.try_recv()
            {
                owed.extend(direct.sort(next).await);
            }
            let mut recording = pin!(recorder.accept(std::mem::take(&mut owed), &shutdown));
            let is_safe = loop {
                tokio::select! {
                    biased;
                    is_safe = &mut recording => break is_safe,
                    Some(next) = server.recv(), if owed.len() < self.batch => owed.extend(direct.sort(next).await),
                }
            };
            if !is_safe {
                break;
            }
        }
        // Dropped deliveries go back to their queue.
        drop(owed);
        server.stop_consuming().await;
        direct.finish().await;
        server.stop().await;
    }
}

/// Brings batches into the journal.
struct Recorder {
    flow: ConsumerControl,
    acceptor: Acceptor,
    answers: ReplyQueue,
    monitors: CallMonitors,
    signals: Arc<Signals>,
}

impl Recorder {
    /// Records a batch, wave by wave. `false`: the process stops and the rest was given back.
    async fn accept(&self, owed: Vec<PendingMessage>, shutdown: &CancellationToken) -> bool {
        let (incoming, deliveries): (Vec<_>, Vec<_>) = owed
            .into_iter()
            .map(|owed| (owed.incoming, owed.delivery))
            .unzip();
        let mut deliveries = deliveries.into_iter();
        for wave in waves(incoming) {
            for one in &wave {
                crash_point::reach(
                    one.command.kind().as_str(),
                    "accept",
                    CrashPoint::BeforeTransaction,
                )
                .await;
            }
            let accepting: Vec<Span> = wave
                .iter()
                .map(|one| tracing::info_span!(parent: &one.span, "accept"))
                .collect();
            // What concerns several messages at once belongs to none of them.
            let span = match accepting.as_slice() {
                [only] => only.clone(),
                _ => Span::none(),
            };
            let Some(accepted) = self.accept_wave(&wave, shutdown).instrument(span).await else {
                // Dropped deliveries go back to their queue.
                return false;
            };
            drop(accepting);
            for one in &wave {
                crash_point::reach(one.command.kind().as_str(), "accept", CrashPoint::AfterCommit).await;
            }
            for ((one, accepted), delivery) in wave.into_iter().zip(accepted).zip(deliveries.by_ref()) {
                let span = one.span.clone();
                self.settle(one, accepted, delivery).instrument(span).await;
            }
            self.signals.work.notify_one();
        }
        true
    }

    /// Accepts one wave however long the database takes to come back. `None`: the process stops first.
    async fn accept_wave(&self, wave: &[Incoming], shutdown: &CancellationToken) -> Option<Vec<Accepted>> {
        let mut delays = RetryPolicy {
            initial: Duration::from_millis(100),
            max_interval: Duration::from_secs(5),
            multiplier: 2.0,
            jitter: 0.25,
        }
        .delays();
        let since = Instant::now();
        let (mut paused, mut told) = (false, false);
        loop {
            match self.acceptor.accept(wave.to_vec(), since.elapsed()).await {
                Ok(accepted) => {
                    if paused {
                        tracing::info!(outage = ?since.elapsed(), "the database is back; taking messages again");
                        self.flow.resume().await;
                    }
                    return Some(accepted);
                }
                Err(error) => {
                    if !told && since.elapsed() > QUIET_OUTAGE {
                        told = true;
                        tracing::warn!(
                            %error, messages = wave.len(),
                            "requests cannot be recorded; keeping them unacknowledged and taking no more"
                        );
                    }
                    if !paused {
                        self.flow.pause().await;
                        paused = true;
                    }
                    tracing::debug!(%error, "requests cannot be recorded yet");
                    tokio::select! {
                        () = tokio::time::sleep(delays.next_delay()) => {}
                        () = shutdown.cancelled() => return None,
                    }
                }
            }
        }
    }

    async fn settle(&self, one: Incoming, accepted: Accepted, delivery: Delivery) {
        let (operation, answered) = match accepted {
            Accepted::Recorded {
                operation,
                state,
                answered,
            } => {
                one.span.record(field::OPERATION, operation.as_str());
                tracing::info!({ field::OPERATION_STATE } = %state, "request recorded");
                metrics::counter!(
                    metric::OPERATIONS_ACCEPTED,
                    "kind" => one.command.kind().as_str(), "state" => state.as_str()
                )
                .increment(1);
                (operation, answered)
            }
            Accepted::Known { operation, answered } => {
                one.span.record(field::OPERATION, operation.as_str());
                tracing::info!("message was recorded before");
                (operation, answered)
            }
            Accepted::Done => {
                tracing::debug!("done at once");
                return delivery.ack().await;
            }
        };
        delivery.ack().await;
        if answered {
            self.answers.send(&operation);
        } else if let (Some(caller), Some(timeout)) = (&one.reply, one.monitor) {
            self.monitors.watch(&operation, caller, timeout);
        }
    }
}
