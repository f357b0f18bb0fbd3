//! Publishing: confirmed, mandatory where asked, one message in flight per channel.
//!
//! A returned message arrives before its confirmation but without a number, so only a channel with a single
//! message in flight can tell for sure which one was returned. Concurrency comes from several channels on the
//! one connection, taken from a stack of idle ones.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::protocol::AMQPSoftError;
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::declare::{Declarer, Mismatches, has_code};
use super::hosts::HostOrder;
use super::open::{Opener, explain, short};
use crate::error::PublishError;
use crate::message::OutgoingMessage;
use crate::topology::Declaration;
use crate::transport::QueueState;

/// Messages in flight at once. Beyond it publishers wait for each other.
const CHANNELS: usize = 64;

/// Persistent.
const DELIVERY_MODE: u8 = 2;

/// Messages in a row that were given up before the broker had confirmed them: then the connection counts as dead, long before
/// its heartbeat says so.
const MOST_UNCONFIRMED: u32 = 2;

/// How long a goodbye to the broker may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) struct Sender {
    opener: Arc<Opener>,
    mismatches: Arc<Mismatches>,
    live: tokio::sync::Mutex<Line>,
    permits: Semaphore,
    /// Whoever connects at that moment gives up: the connection is wanted no more.
    closing: CancellationToken,
}

/// The connection, as far as there is one, and where the next one goes.
struct Line {
    live: Option<Arc<Live>>,
    hosts: HostOrder,
}

/// One open connection.
struct Live {
    connection: Connection,
    idle: Mutex<Vec<Channel>>,
    declared: Mutex<HashSet<Declaration>>,
    /// Held while declaring: publishers that begin together declare once, and not beside each other.
    declaring: tokio::sync::Mutex<()>,
    /// How many messages in a row the broker has said nothing to.
    unconfirmed: AtomicU32,
}

/// A message that the broker has not said anything to yet. Dropped, it counts as unconfirmed.
struct Unconfirmed<'a>(&'a Live);

impl Unconfirmed<'_> {
    fn answered(self) {
        self.0.unconfirmed.store(0, Ordering::Relaxed);
        std::mem::forget(self);
    }
}

impl Drop for Unconfirmed<'_> {
    fn drop(&mut self) {
        self.0.unconfirmed.fetch_add(1, Ordering::Relaxed);
    }
}

enum Failure {
    /// The exchange is gone: declare it again.
    NoExchange,
    Other(PublishError),
}

impl From<lapin::Error> for Failure {
    fn from(error: lapin::Error) -> Self {
        if has_code(&error, &AMQPSoftError::NOTFOUND) {
            Self::NoExchange
        } else if has_code(&error, &AMQPSoftError::ACCESSREFUSED) {
            Self::Other(PublishError::Forbidden(explain(&error)))
        } else {
            Self::Other(PublishError::Disconnected(explain(&error)))
        }
    }
}

impl Sender {
    pub(super) fn new(opener: Arc<Opener>, mismatches: Arc<Mismatches>) -> Self {
        let line = Line {
            live: None,
            hosts: opener.host_order(),
        };
        Self {
            opener,
            mismatches,
            live: tokio::sync::Mutex::new(line),
            permits: Semaphore::new(CHANNELS),
            closing: CancellationToken::new(),
        }
    }

    pub(super) fn connected(&self) -> bool {
        // Held while connecting: then we are not connected.
        self.live.try_lock().is_ok_and(|line| {
            line.live
                .as_ref()
                .is_some_and(|live| live.connection.status().connected())
        })
    }

    pub(super) async fn publish(&self, message: &OutgoingMessage) -> Result<(), PublishError> {
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        let live = self.live().await?;
        let unconfirmed = Unconfirmed(&live);
        let outcome = self.attempt(&live, message).await;
        unconfirmed.answered();
        match outcome {
            Ok(()) => Ok(()),
            Err(Failure::Other(error)) => Err(error),
            Err(Failure::NoExchange) => {
                // A fanout exchange deletes itself with its last queue; ours may have been that one.
                lock(&live.declared).clear();
                match self.attempt(&live, message).await {
                    Ok(()) => Ok(()),
                    Err(Failure::Other(error)) => Err(error),
                    Err(Failure::NoExchange) => Err(unroutable(message)),
                }
            }
        }
    }

    /// Asks the broker for a channel, which it has to answer, and gives it back.
    pub(super) async fn reach(&self) -> Result<(), PublishError> {
        let live = self.live().await?;
        let asked = async {
            let channel = live.connection.create_channel().await?;
            channel.close(200, "OK".into()).await
        };
        asked
            .await
            .map_err(|error: lapin::Error| PublishError::Disconnected(explain(&error)))
    }

    /// Asks the broker, on a channel of its own: a queue that is not there closes it.
    pub(super) async fn queue(&self, name: &str) -> Result<Option<QueueState>, PublishError> {
        let name = short(name).map_err(PublishError::Encode)?;
        let live = self.live().await?;
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let asked = async {
            let channel = live.connection.create_channel().await?;
            let found = channel
                .queue_declare(name, passive, FieldTable::default())
                .await?;
            channel.close(200, "OK".into()).await?;
            Ok(Some(QueueState {
                messages: found.message_count(),
                consumers: found.consumer_count(),
            }))
        };
        match asked.await {
            Err(error) if has_code(&error, &AMQPSoftError::NOTFOUND) => Ok(None),
            asked => asked.map_err(|error: lapin::Error| PublishError::Disconnected(explain(&error))),
        }
    }

    /// The connection; a new one if the old one is lost.
    async fn live(&self) -> Result<Arc<Live>, PublishError> {
        let mut line = self.live.lock().await;
        if let Some(live) = line.live.as_ref()
            && live.connection.status().connected()
        {
            if !live.is_silent() {
                return Ok(Arc::clone(live));
            }
            tracing::warn!("the broker confirms nothing on this connection; opening another one");
        }
        line.live = None;
        let opened = tokio::select! {
            opened = self.opener.open("sender", None, &mut line.hosts) => opened,
            () = self.closing.cancelled() => {
                return Err(PublishError::Disconnected("the program ends".to_owned()));
            }
        };
        let connection = opened.map_err(|error| PublishError::Disconnected(error.to_string()))?;
        let live = Arc::new(Live {
            connection,
            idle: Mutex::default(),
            declared: Mutex::default(),
            declaring: tokio::sync::Mutex::default(),
            unconfirmed: AtomicU32::default(),
        });
        line.live = Some(Arc::clone(&live));
        Ok(live)
    }

    async fn attempt(&self, live: &Live, message: &OutgoingMessage) -> Result<(), Failure> {
        for declaration in &message.declare {
            if !lock(&live.declared).contains(declaration) {
                self.declare(live, declaration).await?;
            }
        }
        // Dropped on any error or cancellation, which closes it: its next confirmation could be of this message.
        let channel = live.channel().await?;
        let encode = |error| Failure::Other(PublishError::Encode(error));
        let confirm = publish_confirmed(
            &channel,
            short(&message.route.exchange).map_err(encode)?,
            short(&message.route.routing_key).map_err(encode)?,
            message,
            properties(message).map_err(encode)?,
        )
        .await?;
        let outcome = match confirm {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => {
                Err(Failure::Other(unroutable(message)))
            }
            Confirmation::Nack(None) | Confirmation::NotRequested => {
                Err(Failure::Other(PublishError::Nacked))
            }
        };
        lock(&live.idle).push(channel);
        outcome
    }

    async fn declare(&self, live: &Live, declaration: &Declaration) -> lapin::Result<()> {
        let _alone = live.declaring.lock().await;
        if lock(&live.declared).contains(declaration) {
            return Ok(());
        }
        let mut declarer = Declarer::new(&live.connection, &self.mismatches).await?;
        declarer.declare(declaration).await?;
        lock(&live.declared).insert(declaration.clone());
        Ok(())
    }

    /// Does not wait for a broker that does not answer.
    pub(super) async fn close(&self) {
        self.closing.cancel();
        if let Some(live) = self.live.lock().await.live.take() {
            // The broker may be gone; then there is nothing to close.
            let _late = timeout(CLOSE_TIMEOUT, live.connection.close(200, "OK".into())).await;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the place the lint points to: the channel is in confirm mode"
)]
async fn publish_confirmed(
    channel: &Channel,
    exchange: lapin::types::ShortString,
    routing_key: lapin::types::ShortString,
    message: &OutgoingMessage,
    properties: BasicProperties,
) -> lapin::Result<Confirmation> {
    let options = BasicPublishOptions {
        mandatory: message.mandatory,
        immediate: false,
    };
    channel
        .basic_publish(exchange, routing_key, options, &message.body, properties)
        .await?
        .await
}

impl Live {
    /// Whether the broker has stopped to confirm, without having said that it takes no messages for now.
    fn is_silent(&self) -> bool {
        self.unconfirmed.load(Ordering::Relaxed) >= MOST_UNCONFIRMED && !self.connection.status().blocked()
    }

    async fn channel(&self) -> lapin::Result<Channel> {
        loop {
            let idle = lock(&self.idle).pop();
            match idle {
                Some(channel) if channel.status().connected() => return Ok(channel),
                Some(_) => {}
                None => break,
            }
        }
        let channel = self.connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(channel)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change under these locks is a single call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn unroutable(message: &OutgoingMessage) -> PublishError {
    PublishError::Unroutable {
        exchange: message.route.exchange.clone(),
        routing_key: message.route.routing_key.clone(),
    }
}

fn properties(message: &OutgoingMessage) -> Result<BasicProperties, String> {
    let mut headers = FieldTable::default();
    for (name, value) in &message.headers {
        headers.insert(short(name)?, AMQPValue::LongString(value.as_str().into()));
    }
    let mut properties = BasicProperties::default()
        .with_headers(headers)
        .with_delivery_mode(DELIVERY_MODE)
        .with_priority(0);
    if let Some(content_type) = &message.content_type {
        properties = properties.with_content_type(short(content_type)?);
    }
    if let Some(content_encoding) = &message.content_encoding {
        properties = properties.with_content_encoding(short(content_encoding)?);
    }
    if let Some(expiration) = message.expiration {
        properties = properties.with_expiration(short(&expiration.as_millis().to_string())?);
    }
    Ok(properties)
}
