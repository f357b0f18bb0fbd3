//! The way of a batch into the journal, and what is told of it afterwards.

use std::sync::Arc;
use std::time::Duration;

use magnum_common::retry::RetryPolicy;
use magnum_rpc::ConsumerControl;
use magnum_rpc_server::Delivery;
use magnum_telemetry::field;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use super::direct::PendingMessage;
use super::held_back::HeldBack;
use crate::handlers::accept::waves;
use crate::handlers::{Accepted, Acceptor, Incoming};
use crate::metric_definitions as metric;
use crate::operations::crash_point::{self, CrashPoint};
use crate::operations::monitor::CallMonitors;
use crate::operations::replies::ReplyQueue;
use crate::operations::services::Signals;
use crate::workflows::OperationKind;

/// An outage shorter than this is not worth a warning.
const QUIET_OUTAGE: Duration = Duration::from_secs(1);

/// Brings batches into the journal.
pub(super) struct Intake {
    pub(super) flow: ConsumerControl,
    pub(super) recorder: Recorder,
    /// Requests that cannot be recorded now, while others can.
    pub(super) held_back: HeldBack,
}

/// Records requests, and tells whom it concerns.
#[derive(Clone)]
pub(super) struct Recorder {
    pub(super) acceptor: Acceptor,
    pub(super) answers: ReplyQueue,
    pub(super) monitors: CallMonitors,
    pub(super) signals: Arc<Signals>,
}

impl Intake {
    /// Records a batch, wave by wave. `false`: the process stops and the rest was given back.
    pub(super) async fn take(&self, owed: Vec<PendingMessage>, shutdown: &CancellationToken) -> bool {
        let (incoming, deliveries): (Vec<_>, Vec<_>) = owed
            .into_iter()
            .map(|owed| (owed.incoming, owed.delivery))
            .unzip();
        let mut deliveries = deliveries.into_iter();
        for wave in waves(incoming) {
            let wave = wave
                .into_iter()
                .zip(deliveries.by_ref())
                .map(|(incoming, delivery)| PendingMessage { incoming, delivery });
            // What comes after a request of the same cluster stays behind it.
            let (behind, wave): (Vec<_>, Vec<_>) =
                wave.partition(|one| self.held_back.has(one.incoming.command.cluster()));
            for one in behind {
                if !self.held_back.add(one, shutdown).await {
                    return false;
                }
            }
            if !wave.is_empty() && !self.take_wave(wave, shutdown).await {
                return false;
            }
        }
        true
    }

    async fn take_wave(&self, wave: Vec<PendingMessage>, shutdown: &CancellationToken) -> bool {
        let (wave, deliveries): (Vec<_>, Vec<_>) =
            wave.into_iter().map(|one| (one.incoming, one.delivery)).unzip();
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
        let Some(accepted) = self.accept(&wave, shutdown).instrument(span).await else {
            // Dropped deliveries go back to their queue.
            return false;
        };
        drop(accepting);
        for (one, _) in wave
            .iter()
            .zip(&accepted)
            .filter(|(_, accepted)| accepted.is_some())
        {
            crash_point::reach(one.command.kind().as_str(), "accept", CrashPoint::AfterCommit).await;
        }
        for ((incoming, accepted), delivery) in wave.into_iter().zip(accepted).zip(deliveries) {
            let span = incoming.span.clone();
            let Some(accepted) = accepted else {
                let message = PendingMessage { incoming, delivery };
                if !self.held_back.add(message, shutdown).await {
                    return false;
                }
                continue;
            };
            self.recorder
                .settle(incoming, accepted, delivery)
                .instrument(span)
                .await;
        }
        self.recorder.signals.work.notify_one();
        true
    }

    /// Accepts one wave however long the database takes to come back. `None`: the process stops first.
    async fn accept(&self, wave: &[Incoming], shutdown: &CancellationToken) -> Option<Vec<Option<Accepted>>> {
        let mut delays = delays();
        let since = Instant::now();
        let (mut paused, mut told) = (false, false);
        loop {
            match self
                .recorder
                .acceptor
                .accept(wave.to_vec(), since.elapsed())
                .await
            {
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
}

/// Between attempts to record.
pub(super) fn delays() -> magnum_common::retry::Delays {
    RetryPolicy {
        initial: Duration::from_millis(100),
        max_interval: Duration::from_secs(5),
        multiplier: 2.0,
        jitter: 0.25,
    }
    .delays()
}

impl Recorder {
    /// Acknowledges what is in the journal, and sends what is ready to be answered.
    pub(super) async fn settle(&self, one: Incoming, accepted: Accepted, delivery: Delivery) {
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
        if one.command.kind() == OperationKind::ClusterDelete {
            self.signals.stops.notify_one();
        }
        delivery.ack().await;
        if answered {
            self.answers.send(&operation);
        } else if let (Some(caller), Some(timeout)) = (&one.reply, one.monitor) {
            self.monitors.watch(&operation, caller, timeout);
        }
    }
}
