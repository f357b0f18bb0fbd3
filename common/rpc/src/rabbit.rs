//! `rabbit://`: RabbitMQ through lapin.
//!
//! Public is what a reader of dead letters and an inspection of the broker need besides a transport: a connection of
//! their own, and the broker's words explained. Programs use a [`Transport`].
//!
//! Connections, as oslo.messaging keeps them apart: one per listener, and one sender. A listener's connection
//! can be blocked by a slow consumer, a sender's by the broker's memory alarm; neither shall hold up the other.
//!
//! Recovery is ours and not lapin's, because it must try the other hosts, follow the configured intervals, and
//! fall back to a passive declaration (see `declare`), and go on in streams (see `streams`). Two consequences, both made safe by the journal's
//! unique message ids: deliveries taken before a reconnect come again, and a publish whose confirmation was
//! lost is sent again by its caller.
//!
//! Differs from oslo.messaging: a queue that exists with other arguments is used as it is, with a warning that
//! names the option to align, where Python fails for good; and the first publish opens the sender's connection,
//! where Python keeps a pool.

mod declare;
mod hosts;
mod listener;
mod open;
mod reconnect;
mod sender;
mod settle;
mod stream_runtime;
mod streams;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::declare::Mismatches;
use self::listener::Supervisor;
use self::sender::Sender;
use super::authentication::Authentication;
use super::error::{PublishError, TransportError};
use super::gone::GoneCallers;
use super::message::OutgoingMessage;
use super::options::RabbitOptions;
use super::transport::{Health, ListenSpec, Listener, QueueState, Transport};
use super::url::RabbitUrl;

pub use self::declare::{create, has_code, option_to_align};
pub use self::open::{OpenError, Opener, explain, short};

/// A transport to the brokers of `url`. Reads the TLS files; touches the network later.
pub(super) fn connect(
    url: RabbitUrl,
    options: RabbitOptions,
    authentication: Authentication,
    name: &str,
) -> Result<Arc<dyn Transport>, TransportError> {
    let opener = Arc::new(Opener::new(url, &options, name)?);
    let mismatches = Arc::new(Mismatches::default());
    Ok(Arc::new(RabbitTransport {
        sender: Sender::new(Arc::clone(&opener), Arc::clone(&mismatches)),
        opener,
        mismatches,
        options,
        authentication,
        listeners: Arc::new(ListenerCounts::default()),
        gone: GoneCallers::default(),
        stop: CancellationToken::new(),
    }))
}

struct RabbitTransport {
    opener: Arc<Opener>,
    sender: Sender,
    mismatches: Arc<Mismatches>,
    options: RabbitOptions,
    authentication: Authentication,
    listeners: Arc<ListenerCounts>,
    gone: GoneCallers,
    stop: CancellationToken,
}

/// How many listeners are up and down.
#[derive(Debug, Default)]
struct ListenerCounts {
    up: AtomicUsize,
    down: AtomicUsize,
}

#[async_trait]
impl Transport for RabbitTransport {
    async fn publish(&self, message: OutgoingMessage) -> Result<(), PublishError> {
        if self.stop.is_cancelled() {
            return Err(PublishError::Disconnected("the transport is closed".to_owned()));
        }
        self.sender.publish(&message).await
    }

    async fn listen(&self, spec: ListenSpec) -> Result<Listener, TransportError> {
        let (deliveries_in, deliveries) = mpsc::unbounded_channel();
        let (commands, orders) = mpsc::unbounded_channel();
        let (ready, is_ready) = oneshot::channel();
        let supervisor = Supervisor::new(
            Arc::clone(&self.opener),
            self.options.clone(),
            spec,
            Arc::clone(&self.mismatches),
            Arc::clone(&self.listeners),
        );
        tokio::spawn(supervisor.run(deliveries_in, orders, self.stop.clone(), ready));
        is_ready.await.map_err(|_| TransportError::Closed)?;
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
        if self.stop.is_cancelled() {
            return Err(PublishError::Disconnected("the transport is closed".to_owned()));
        }
        self.sender.reach().await
    }

    async fn queue(&self, name: &str) -> Result<Option<QueueState>, PublishError> {
        if self.stop.is_cancelled() {
            return Err(PublishError::Disconnected("the transport is closed".to_owned()));
        }
        self.sender.queue(name).await
    }

    fn health(&self) -> Health {
        if self.stop.is_cancelled() {
            Health::Closed
        } else if self.listeners.down.load(Ordering::Relaxed) > 0 {
            Health::Reconnecting
        } else if self.listeners.up.load(Ordering::Relaxed) > 0 || self.sender.connected() {
            Health::Connected
        } else {
            Health::Idle
        }
    }

    async fn close(&self) {
        self.stop.cancel();
        self.sender.close().await;
    }
}

impl Drop for RabbitTransport {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
