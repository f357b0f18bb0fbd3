//! What needs no journal: pings, and requests that cannot be carried out. They are answered at once; everything
//! else is handed on to be recorded.

use std::sync::Arc;

use magnum_common::error::Fault;
use magnum_common::rpc::{Delivery, Incoming as Message, ReplyAddress, Transport, reply};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::dispatch::{Routed, route};
use crate::handlers::Incoming;

/// Direct answers being sent at once; more make the consumer wait.
const MOST: usize = 256;

/// A message that is to be recorded, and its delivery.
pub(super) struct Owed {
    pub(super) incoming: Incoming,
    pub(super) delivery: Delivery,
}

/// Answers that need no journal, sent beside the consumer.
pub(super) struct Direct {
    transport: Arc<dyn Transport>,
    permits: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Direct {
    /// Through this transport.
    pub(super) fn new(transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            permits: Arc::new(Semaphore::new(MOST)),
            tasks: TaskTracker::new(),
        }
    }

    /// Waits until all are sent.
    pub(super) async fn finish(self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// What needs no journal is dealt with; what does comes back.
    pub(super) async fn sort(&self, message: Message) -> Option<Owed> {
        let Message { request, delivery } = message;
        let (method, address) = (request.method.clone(), request.reply.clone());
        match route(request) {
            Routed::Record(incoming) => {
                return Some(Owed {
                    incoming: *incoming,
                    delivery,
                });
            }
            Routed::Answer(value) => self.send(address, Ok(value), delivery).await,
            Routed::Fault(fault) => {
                tracing::warn!(rpc.method = method, reason = %fault, "a message cannot be carried out");
                self.send(address, Err(fault), delivery).await;
            }
        }
        None
    }

    /// Answers a call and acknowledges; a cast that failed goes to the dead letters. Waits only when very many
    /// are on their way.
    async fn send(&self, address: Option<ReplyAddress>, outcome: Result<Value, Fault>, delivery: Delivery) {
        let transport = Arc::clone(&self.transport);
        // Never closed; without a permit the answer is sent all the same.
        let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
        self.tasks.spawn(async move {
            let _permit = permit;
            match (address, outcome) {
                (Some(address), outcome) => {
                    let sent = match outcome {
                        Ok(value) => reply(transport.as_ref(), &address, Ok(value)).await,
                        Err(fault) => reply(transport.as_ref(), &address, Err(&fault)).await,
                    };
                    if let Err(error) = sent {
                        tracing::warn!(%error, "a caller could not be answered");
                    }
                    delivery.ack().await;
                }
                (None, Ok(_)) => delivery.ack().await,
                (None, Err(fault)) => delivery.dead_letter(&fault.message).await,
            }
        });
    }
}
