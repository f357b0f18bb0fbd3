//! The seam between what messages mean and how they travel.
//!
//! Two implementations: `rabbit` and `fake` (in one process). Guarantees that both give:
//!
//! * a publish returns only after the broker has taken the message, or with the reason why not;
//! * a mandatory message that no queue takes is [`PublishError::Unroutable`];
//! * a delivery belongs to one consumer until it is settled, and goes back to its queue when the consumer is
//!   gone or the delivery is dropped unsettled;
//! * a listener survives the loss of the broker: it reconnects, declares again, consumes again.
//!
//! Not given: exactly-once. A confirmed publish may have been sent twice, a settled delivery may come again
//! after a reconnect. Requests carry a unique id for that reason.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};

use super::authentication::Authentication;
use super::delivery::Delivery;
use super::error::{PublishError, TransportError};
use super::gone::GoneCallers;
use super::message::OutgoingMessage;
use super::options::RabbitOptions;
use super::own_queues::OwnQueues;
use super::topology::Declaration;

/// A way to the broker.
#[async_trait]
pub trait Transport: Send + Sync {
    /// Publishes once and waits for the broker's confirmation. Does not retry.
    async fn publish(&self, message: OutgoingMessage) -> Result<(), PublishError>;

    /// Declares and consumes. Returns when consuming has begun, however long the broker takes to come up.
    async fn listen(&self, spec: ListenSpec) -> Result<Listener, TransportError>;

    /// `[oslo_messaging_rabbit]` as it applies here: declarations depend on it.
    fn options(&self) -> &RabbitOptions;

    /// How messages are signed and checked. The transport itself does neither: notifications are not signed.
    fn authentication(&self) -> &Authentication;

    /// Callers whose reply queue was not there lately.
    fn gone_callers(&self) -> &GoneCallers;

    /// Asks the broker over the connection on which requests are sent, and makes one where there is none. May take as
    /// long as a broker that hangs.
    async fn reach(&self) -> Result<(), PublishError>;

    /// What is in a queue right now, and who takes it; `None` when there is no such queue.
    async fn queue(&self, name: &str) -> Result<Option<QueueState>, PublishError>;

    /// What is known about the connections right now.
    fn health(&self) -> Health;

    /// Ends all connections in good order. Unsettled deliveries go back to their queues.
    async fn close(&self);
}

/// What a listener declares and consumes, on every connection anew.
#[derive(Debug, Clone)]
pub struct ListenSpec {
    /// What it is for, in logs and in the connection's name.
    pub purpose: &'static str,
    /// Declarations and consumers, in order.
    pub declarations: Vec<Declaration>,
    /// Most deliveries held unsettled when the declarations do not limit them; 0 is no limit.
    pub default_prefetch: u16,
    /// The longest heartbeat of its connection, where the configured one is longer: how soon the broker takes back what it
    /// has handed to a process that is frozen. `None`: as configured.
    pub heartbeat: Option<Duration>,
    /// A queue of this process, deleted when the listener stops.
    pub delete_at_stop: Option<String>,
    /// Those whose names nobody else knows.
    pub own_queues: OwnQueues,
}

/// A queue as the broker counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueState {
    /// Messages that no consumer has got yet.
    pub messages: u32,
    /// Those who take them.
    pub consumers: u32,
}

/// State of the connections, for health checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Nothing needed a connection yet.
    Idle,
    /// At least one connection, and none is being restored.
    Connected,
    /// A connection is lost and being restored.
    Reconnecting,
    /// Closed by us.
    Closed,
}

/// Deliveries of one [`ListenSpec`].
#[derive(Debug)]
pub struct Listener {
    pub(super) deliveries: mpsc::UnboundedReceiver<Delivery>,
    pub(super) commands: mpsc::UnboundedSender<ListenCommand>,
}

/// A command to a listener; confirmed once it is in effect.
#[derive(Debug)]
pub(super) enum ListenCommand {
    /// Cancel the consumers; what was delivered stays ours.
    Pause(oneshot::Sender<()>),
    /// Consume again.
    Resume(oneshot::Sender<()>),
    /// Delete the process's queue and disconnect.
    Stop(oneshot::Sender<()>),
}

impl Listener {
    /// The next delivery; none after the listener has stopped. Safe to cancel.
    pub async fn recv(&mut self) -> Option<Delivery> {
        self.deliveries.recv().await
    }

    /// A delivery that is here already.
    pub fn try_recv(&mut self) -> Option<Delivery> {
        self.deliveries.try_recv().ok()
    }

    /// A handle that pauses and resumes this listener.
    pub fn flow(&self) -> ConsumerControl {
        ConsumerControl {
            commands: self.commands.clone(),
        }
    }

    /// Stops for good. Unsettled deliveries go back to their queues.
    pub async fn stop(self) {
        self.flow().command(ListenCommand::Stop).await;
    }
}

/// Pauses and resumes consumption.
#[derive(Debug, Clone)]
pub struct ConsumerControl {
    commands: mpsc::UnboundedSender<ListenCommand>,
}

impl ConsumerControl {
    /// Stops consuming from the broker. Deliveries that were received can still be processed and settled. Queues that delete
    /// themselves (`amqp_auto_delete`) are consumed from all the same, up to the limit of unsettled deliveries: they would go
    /// with their last consumer.
    pub async fn pause(&self) {
        self.command(ListenCommand::Pause).await;
    }

    /// Consumes again.
    pub async fn resume(&self) {
        self.command(ListenCommand::Resume).await;
    }

    async fn command(&self, make: impl FnOnce(oneshot::Sender<()>) -> ListenCommand) {
        let (done, wait) = oneshot::channel();
        if self.commands.send(make(done)).is_ok() {
            // An error means that the listener ended first, which is what a stop wants anyway.
            let _ended = wait.await;
        }
    }
}
