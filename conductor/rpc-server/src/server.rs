//! The answering side: consumes the topic, decodes, hands out requests with their deliveries.
//!
//! Differs from oslo.messaging in one thing that decides all others: a message is acknowledged by the code that
//! handles it, *after* the work is safe, not on arrival. So a crash loses nothing, a delivery can come twice,
//! and the number of unacknowledged deliveries is limited (see [`DEFAULT_PREFETCH`]).
//!
//! What cannot be decoded never reaches a handler and never comes back: it moves to the dead-letter queue with
//! its reason, or is rejected where there is none. What can be decoded but not dispatched (a wrong version, a
//! mistyped part) is answered with the exception that a Python server raises.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::delivery::{DeadLetterQueue, Delivery};
use magnum_common::error::Fault;
use magnum_rpc::{
    Addressing, ConsumerControl, DEFAULT_PREFETCH, ListenSpec, Listener, MAX_BODY_BYTES, Malformed, Origin,
    OwnQueues, PublishDeadlines, PublishError, RawMessage, ReplyAddress, Request, Seldom, Transport,
    TransportError, UniqueName, WireReply, WireRequest, publish_until, topology,
};
use magnum_telemetry::field;

/// How long a reply that the broker does not confirm is retried.
const REPLY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// What anybody may ask a server with `rpc_ping_enabled`, whatever its topic, with any arguments.
const PING: &str = "oslo_rpc_server_ping";

/// A request and the message that carried it.
#[derive(Debug)]
pub struct Incoming {
    /// The decoded request.
    pub request: Request,
    /// To be settled once the request is safe.
    pub delivery: Delivery,
}

/// Consumes the topic queue, this server's own queue, and its fanout queue.
pub struct RpcServer {
    transport: Arc<dyn Transport>,
    listener: Listener,
    dead_letters: Option<Arc<DeadLetterQueue>>,
    ping_enabled: bool,
    strangers: Arc<Strangers>,
    /// Ours as long as we consume.
    _queue_name: Option<UniqueName>,
}

impl RpcServer {
    /// Declares and consumes, and returns when messages can arrive. Waits for an unreachable broker without limit.
    ///
    /// # Errors
    /// The transport is closed, or a queue name cannot be reserved in `[oslo_concurrency] lock_path`.
    pub async fn start(
        transport: Arc<dyn Transport>,
        addressing: impl Into<Addressing>,
        server_id: &str,
    ) -> Result<Self, TransportError> {
        let addressing = addressing.into();
        let names = &addressing.names;
        let options = transport.options();
        let mut own_queues = vec![names.server_queue(server_id)];
        let (fanout_queue, is_random, unique) = if options.rabbit_stream_fanout {
            (names.fanout_exchange(), false, None)
        } else {
            let unique = UniqueName::new(options).await?;
            let queue = names.fanout_queue(unique.as_str());
            own_queues.push(queue.clone());
            (queue, !options.use_queue_manager, Some(unique))
        };
        let spec = ListenSpec {
            purpose: "requests",
            declarations: topology::server(names, server_id, &fanout_queue, options),
            default_prefetch: DEFAULT_PREFETCH,
            heartbeat: addressing.heartbeat,
            // One that is found again by its name, or that others read too, stays.
            delete_at_stop: is_random.then_some(fanout_queue),
            own_queues: OwnQueues::new(own_queues),
        };
        let dead_letters = addressing.dead_letter_queue.as_ref().map(|queue| {
            Arc::new(DeadLetterQueue {
                transport: Arc::clone(&transport),
                declaration: topology::dead_letter_queue(queue, options),
                queue: queue.clone(),
            })
        });
        let listener = transport.listen(spec).await?;
        Ok(Self {
            transport,
            listener,
            dead_letters,
            ping_enabled: addressing.ping_enabled,
            strangers: Arc::default(),
            _queue_name: unique,
        })
    }

    /// Has `told` learn of each message that is not signed by a holder of the key, where messages are: whether it was refused.
    #[must_use]
    pub fn on_stranger(self, told: impl Fn(bool) + Send + Sync + 'static) -> Self {
        Self {
            strangers: Arc::new(Strangers {
                told: Some(Box::new(told)),
                lines: Seldom::default(),
            }),
            ..self
        }
    }

    /// The next request; none after [`Self::stop`] or the transport's end. Safe to cancel.
    pub async fn recv(&mut self) -> Option<Incoming> {
        loop {
            let delivery = self.listener.recv().await?;
            if let Some(incoming) = self.take_in(delivery) {
                return Some(incoming);
            }
        }
    }

    /// A request that has arrived already, to fill a batch.
    pub fn try_recv(&mut self) -> Option<Incoming> {
        loop {
            let delivery = self.listener.try_recv()?;
            if let Some(incoming) = self.take_in(delivery) {
                return Some(incoming);
            }
        }
    }

    /// Takes no more messages from the broker until [`Self::resume`]. Those here already still come out.
    pub async fn stop_consuming(&self) {
        self.flow().pause().await;
    }

    /// Resumes consumption.
    pub async fn resume(&self) {
        self.flow().resume().await;
    }

    /// A handle that pauses and resumes consumption.
    pub fn flow(&self) -> ConsumerControl {
        self.listener.flow()
    }

    /// Stops for good: deletes the fanout queue, returns what is unsettled to its queues.
    pub async fn stop(self) {
        self.listener.stop().await;
    }

    /// Decodes; deals with what cannot be handled, beside the caller, so that it never waits for the broker.
    fn take_in(&self, delivery: magnum_rpc::Delivery) -> Option<Incoming> {
        let delivery = Delivery::new(delivery, self.dead_letters.clone());
        // Before anything of it is decoded. A caller that is none of ours gets no reply: it chose where that would go.
        match self.transport.authentication().check(delivery.message()) {
            Ok(Origin::Trusted) => {}
            Ok(Origin::Unknown) => self.strangers.tell(false),
            Err(reason) => {
                self.strangers.tell(true);
                if let Some(left_out) = self.strangers.lines.next() {
                    tracing::error!(
                        { field::QUEUE } = %delivery.message().queue,
                        %reason,
                        left_out,
                        "a message was refused, unread; it goes to the dead-letter queue"
                    );
                }
                tokio::spawn(async move { delivery.dead_letter_quietly(&reason.to_string()).await });
                return None;
            }
        }
        match decode(delivery.message()) {
            Ok(request) if self.ping_enabled && request.method == PING => {
                let transport = Arc::clone(&self.transport);
                tokio::spawn(async move {
                    if let Some(address) = &request.reply
                        && let Err(error) = reply(transport.as_ref(), address, Ok("pong".into())).await
                    {
                        tracing::debug!(%error, "a ping could not be answered");
                    }
                    delivery.ack().await;
                });
                None
            }
            Ok(request) => Some(Incoming { request, delivery }),
            Err(Refusal::Undecodable(reason)) => {
                tokio::spawn(async move { delivery.dead_letter(&reason).await });
                None
            }
            Err(Refusal::Malformed(Malformed { fault, reply: None })) => {
                tokio::spawn(async move { delivery.dead_letter(&fault.message).await });
                None
            }
            Err(Refusal::Malformed(Malformed {
                fault,
                reply: Some(address),
            })) => {
                let transport = Arc::clone(&self.transport);
                tokio::spawn(async move {
                    if let Err(error) = reply(transport.as_ref(), &address, Err(&fault)).await {
                        tracing::warn!(%error, refusal = %fault, "a refused caller could not be told");
                    }
                    delivery.ack().await;
                });
                None
            }
        }
    }
}

/// Messages that nobody of ours has sent.
#[derive(Default)]
struct Strangers {
    told: Option<Box<dyn Fn(bool) + Send + Sync>>,
    lines: Seldom,
}

impl Strangers {
    fn tell(&self, is_refused: bool) {
        if let Some(told) = &self.told {
            told(is_refused);
        }
    }
}

#[derive(Debug)]
enum Refusal {
    Undecodable(String),
    Malformed(Malformed),
}

fn decode(message: &RawMessage) -> Result<Request, Refusal> {
    let (wire, format) = magnum_rpc::decode::<WireRequest>(message, MAX_BODY_BYTES)
        .map_err(|error| Refusal::Undecodable(error.to_string()))?;
    wire.check(format).map_err(Refusal::Malformed)
}

/// Answers a call, with bounded retries.
///
/// A caller whose queue is not there may be reconnecting: it has `kombu_missing_consumer_retry_timeout`, unless it
/// let such a time pass just before. An error means that the caller is gone or the broker is; the journal decides
/// whether to try again later.
///
/// # Errors
/// The broker has not confirmed the message: see [`PublishError`].
pub async fn reply(
    transport: &dyn Transport,
    address: &ReplyAddress,
    outcome: Result<Value, &Fault>,
) -> Result<(), PublishError> {
    let options = transport.options();
    let mut message = WireReply::new(address, outcome).into_message(address, options)?;
    transport.authentication().sign(&mut message);
    let gone = transport.gone_callers();
    let now = Instant::now();
    let deadlines = PublishDeadlines {
        unconfirmed: now + REPLY_TIMEOUT,
        unroutable: if gone.contains(&address.queue, now) {
            now
        } else {
            now + options.kombu_missing_consumer_retry_timeout
        },
    };
    let outcome = publish_until(transport, &message, deadlines).await;
    match &outcome {
        Ok(()) => gone.forget(&address.queue),
        Err(PublishError::Unroutable { .. }) => gone.remember(&address.queue),
        Err(_) => {}
    }
    outcome
}
