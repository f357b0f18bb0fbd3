//! The in-process broker behind the transport seam.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::broker::{Broker, ConsumerId, Lent, Tag};
use crate::authentication::Authentication;
use crate::delivery::{Delivery, Settle};
use crate::error::{PublishError, TransportError};
use crate::gone::GoneCallers;
use crate::message::OutgoingMessage;
use crate::options::RabbitOptions;
use crate::topology::Declaration;
use crate::transport::{Health, ListenCommand, ListenSpec, Listener, QueueState, Transport};

pub(super) struct FakeTransport {
    broker: Arc<Broker>,
    options: RabbitOptions,
    authentication: Authentication,
    gone: GoneCallers,
    closed: AtomicBool,
    stop: CancellationToken,
}

impl FakeTransport {
    pub(super) fn new(broker: Arc<Broker>, options: RabbitOptions, authentication: Authentication) -> Self {
        Self {
            broker,
            options,
            authentication,
            gone: GoneCallers::default(),
            closed: AtomicBool::new(false),
            stop: CancellationToken::new(),
        }
    }
}

#[async_trait]
impl Transport for FakeTransport {
    async fn publish(&self, message: OutgoingMessage) -> Result<(), PublishError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(PublishError::Disconnected("the transport is closed".to_owned()));
        }
        for declaration in &message.declare {
            self.broker.declare(declaration);
        }
        if self.broker.publish(&message) || !message.mandatory {
            Ok(())
        } else {
            Err(PublishError::Unroutable {
                exchange: message.route.exchange,
                routing_key: message.route.routing_key,
            })
        }
    }

    async fn listen(&self, spec: ListenSpec) -> Result<Listener, TransportError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(TransportError::Closed);
        }
        let (to_listener, deliveries) = mpsc::unbounded_channel();
        let (commands, orders) = mpsc::unbounded_channel();
        let listening = Listening::begin(Arc::clone(&self.broker), spec);
        tokio::spawn(listening.run(to_listener, orders, self.stop.clone()));
        Ok(Listener { deliveries, commands })
    }

    fn options(&self) -> &RabbitOptions {
        &self.options
    }

    fn authentication(&self) -> &Authentication {
        &self.authentication
    }

    fn gone_callers(&self) -> &GoneCallers {
        &self.gone
    }

    async fn reach(&self) -> Result<(), PublishError> {
        if self.closed.load(Ordering::Acquire) {
            return Err(PublishError::Disconnected("the transport is closed".to_owned()));
        }
        Ok(())
    }

    async fn queue(&self, name: &str) -> Result<Option<QueueState>, PublishError> {
        self.reach().await?;
        Ok(self.broker.queue(name))
    }

    fn health(&self) -> Health {
        if self.closed.load(Ordering::Acquire) {
            Health::Closed
        } else {
            Health::Connected
        }
    }

    async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.stop.cancel();
    }
}

impl Drop for FakeTransport {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// One listener's consumers.
struct Listening {
    broker: Arc<Broker>,
    spec: ListenSpec,
    active: Vec<ConsumerId>,
    /// Every consumer there ever was: cancelled ones may still hold deliveries.
    all: Vec<ConsumerId>,
    lent: mpsc::UnboundedReceiver<Lent>,
    lend: mpsc::UnboundedSender<Lent>,
}

impl Listening {
    fn begin(broker: Arc<Broker>, spec: ListenSpec) -> Self {
        let (lend, lent) = mpsc::unbounded_channel();
        for declaration in &spec.declarations {
            broker.declare(declaration);
        }
        let mut listening = Self {
            broker,
            spec,
            active: Vec::new(),
            all: Vec::new(),
            lent,
            lend,
        };
        listening.consume();
        listening
    }

    fn consume(&mut self) {
        if !self.active.is_empty() {
            return;
        }
        let mut prefetch = self.spec.default_prefetch;
        for declaration in &self.spec.declarations {
            match declaration {
                Declaration::Prefetch(count) => prefetch = *count,
                Declaration::Consume { queue, .. } => {
                    let id = self.broker.consume(queue, prefetch, self.lend.clone());
                    self.active.push(id);
                    self.all.push(id);
                }
                _ => {}
            }
        }
    }

    async fn run(
        mut self,
        to_listener: mpsc::UnboundedSender<Delivery>,
        mut orders: mpsc::UnboundedReceiver<ListenCommand>,
        stop: CancellationToken,
    ) {
        let done: Option<oneshot::Sender<()>> = loop {
            tokio::select! {
                () = stop.cancelled() => break None,
                order = orders.recv() => match order {
                    None => break None,
                    Some(ListenCommand::Stop(done)) => break Some(done),
                    Some(ListenCommand::Pause(done)) => {
                        for id in self.active.drain(..) {
                            self.broker.cancel(id);
                        }
                        let _gone = done.send(());
                    }
                    Some(ListenCommand::Resume(done)) => {
                        self.consume();
                        let _gone = done.send(());
                    }
                },
                lent = self.lent.recv() => {
                    let Some(lent) = lent else { break None };
                    let settle = Settler { broker: Arc::clone(&self.broker), tag: lent.tag };
                    let delivery = Delivery::new(Box::new(settle), lent.message);
                    if to_listener.send(delivery).is_err() {
                        break None;
                    }
                }
            }
        };
        self.broker.disconnect(&self.all);
        if let Some(queue) = &self.spec.delete_at_stop {
            self.broker.delete_queue(queue);
        }
        if let Some(done) = done {
            let _gone = done.send(());
        }
    }
}

struct Settler {
    broker: Arc<Broker>,
    tag: Tag,
}

impl Settle for Settler {
    fn ack(&self) {
        self.broker.settle(self.tag, false);
    }

    fn reject(&self, requeue: bool) {
        self.broker.settle(self.tag, requeue);
    }
}
