//! The consumer: batches in, one transaction, then the acknowledgements.
//!
//! Guarantees: a message is acknowledged only after its operation is committed, or after it was answered or set
//! aside with a reason. While the database is away nothing is acknowledged and the broker is asked for no more;
//! the batch in hand is tried again until it succeeds or the process stops, which gives it back. A message that
//! cannot be carried out harms only itself, and so does one that cannot be recorded for now (`held_back.rs`).
//!
//! Batches form by themselves: what arrives while one transaction commits is decoded meanwhile, and is the next
//! batch.

use std::pin::pin;
use std::sync::Arc;

use magnum_rpc::Transport;
use magnum_rpc_server::RpcServer;
use tokio_util::sync::CancellationToken;

use super::direct::Direct;
use super::held_back::HeldBack;
use super::intake::{Intake, Recorder};
use crate::handlers::{Acceptor, Answerer};
use crate::operations::monitor::CallMonitors;
use crate::operations::replies::ReplyQueue;
use crate::operations::services::Signals;

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
            acceptor: self.acceptor,
            answers: self.answers,
            monitors: self.monitors,
            signals: self.signals,
        };
        let intake = Intake {
            flow: server.flow(),
            held_back: HeldBack::new(recorder.clone()),
            recorder,
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
                owed.extend(direct.sort(first));
            }
            while owed.len() < self.batch
                && let Some(next) = server.try_recv()
            {
                owed.extend(direct.sort(next));
            }
            let mut recording = pin!(intake.take(std::mem::take(&mut owed), &shutdown));
            let is_safe = loop {
                tokio::select! {
                    biased;
                    is_safe = &mut recording => break is_safe,
                    Some(next) = server.recv(), if owed.len() < self.batch => owed.extend(direct.sort(next)),
                }
            };
            if !is_safe {
                break;
            }
        }
        // Dropped deliveries go back to their queue.
        drop(owed);
        intake.held_back.finish().await;
        server.stop_consuming().await;
        direct.finish().await;
        server.stop().await;
    }
}
