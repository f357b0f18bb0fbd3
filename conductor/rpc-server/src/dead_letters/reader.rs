//! The dead-letter queue, read one message at a time.
//!
//! What is read stays in the queue until it is requeued or discarded; whatever is not goes back when the reader is
//! closed, or dies. A quorum queue counts such returns and gives a message up after `x-delivery-limit` of them (20
//! by default in RabbitMQ 4): a message that has come back some times is put in again as a new copy, which counts
//! from zero.

use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::protocol::{AMQPSoftError, basic::AMQPProperties};
use lapin::types::{AMQPValue, DeliveryTag, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection};

use super::DeadLetter;
use magnum_rpc::rabbit::{Opener, explain, has_code, short};
use magnum_rpc::{
    Authentication, OutgoingMessage, RabbitOptions, RabbitUrl, RawMessage, RpcOptions, SIGNATURE,
    TransportError, TransportUrl, direct,
};
use magnum_telemetry::trace::TraceContext;

/// Returns after which a message is put in anew.
const RETURNS: i64 = 3;

/// Why dead letters cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    /// The options.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// `fake://`.
    #[error("transport_url: the dead letters of fake:// are inside of its process; use rabbit://")]
    NoBroker,
    /// `[conductor] dead_letter_queue` is empty.
    #[error("[conductor] dead_letter_queue is empty: nothing is kept")]
    NoQueue,
    /// The broker, in its words.
    #[error("the broker: {0}")]
    Broker(String),
    /// Nothing is called so.
    #[error("no queue `{0}` takes the message; it stays where it is")]
    Unroutable(String),
}

impl From<lapin::Error> for DeadLetterError {
    fn from(error: lapin::Error) -> Self {
        Self::Broker(explain(&error))
    }
}

/// A reader of the dead-letter queue.
pub struct DeadLetters {
    connection: Connection,
    channel: Channel,
    queue: lapin::types::ShortString,
    /// Messages that were in the queue at the beginning and were not read yet.
    left: u32,
}

/// A message out of the queue, to be requeued, discarded, or left.
#[derive(Debug)]
pub struct Lent {
    /// The message.
    pub letter: DeadLetter,
    tag: DeliveryTag,
}

impl DeadLetters {
    /// Connects to the dead-letter queue. A missing queue is an empty one.
    ///
    /// # Errors
    /// There is no broker (`fake://`), no queue is configured, or the broker is unreachable or refuses access.
    pub async fn open(options: &RpcOptions, program: &str) -> Result<Self, DeadLetterError> {
        let TransportUrl::Rabbit(url) = &options.url else {
            return Err(DeadLetterError::NoBroker);
        };
        let queue = options.addressing.dead_letter_queue.as_deref();
        let queue = short(queue.ok_or(DeadLetterError::NoQueue)?).map_err(DeadLetterError::Broker)?;
        let connection = connect(url, &options.rabbit, program).await?;
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let asking = connection.create_channel().await?;
        let left = match asking
            .queue_declare(queue.clone(), passive, FieldTable::default())
            .await
        {
            Ok(found) => found.message_count(),
            Err(error) if has_code(&error, &AMQPSoftError::NOTFOUND) => 0,
            Err(error) => return Err(error.into()),
        };
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Self {
            connection,
            channel,
            queue,
            left,
        })
    }

    /// The next message; `None` after those that were in the queue at the beginning.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn next(&mut self) -> Result<Option<Lent>, DeadLetterError> {
        while self.left > 0 {
            self.left -= 1;
            let got = self
                .channel
                .basic_get(self.queue.clone(), BasicGetOptions::default())
                .await?;
            let Some(got) = got else {
                self.left = 0;
                break;
            };
            let message = got.delivery;
            let tag = message.delivery_tag;
            let headers = message.properties.headers().clone().unwrap_or_default();
            let returns = match headers.inner().get("x-delivery-count") {
                Some(AMQPValue::LongLongInt(count)) => *count,
                Some(AMQPValue::LongInt(count)) => i64::from(*count),
                _ => 0,
            };
            if returns >= RETURNS {
                let queue = self.queue.clone();
                self.publish(queue, &message.data, renewed(message.properties))
                    .await?;
                self.settle(tag).await?;
                // The new copy stands at the end of the queue.
                self.left += 1;
                continue;
            }
            let text = |name: &str| match headers.inner().get(name)? {
                AMQPValue::LongString(text) => Some(text.to_string()),
                _ => None,
            };
            let of = |value: &Option<lapin::types::ShortString>| value.as_ref().map(ToString::to_string);
            let raw = RawMessage {
                queue: String::new(),
                content_type: of(message.properties.content_type()),
                content_encoding: of(message.properties.content_encoding()),
                compression: text("compression"),
                trace: text(TraceContext::PARENT)
                    .and_then(|parent| TraceContext::parse(&parent, text(TraceContext::STATE).as_deref())),
                signature: text(SIGNATURE),
                redelivered: message.redelivered,
                stream_offset: None,
                body: message.data.into(),
            };
            return Ok(Some(Lent {
                letter: DeadLetter::new(raw, text),
                tag,
            }));
        }
        Ok(None)
    }

    /// Publishes a message to `queue` as it was sent first, and removes it from here once the broker has confirmed that. With
    /// `sign` it is signed anew: by whoever asks for this, who knows the message for one of ours.
    ///
    /// # Errors
    /// The queue does not exist, or the connection is lost. The message is still here then.
    pub async fn requeue(
        &self,
        lent: &Lent,
        queue: &str,
        sign: Option<&Authentication>,
    ) -> Result<(), DeadLetterError> {
        let message = &lent.letter.message;
        let signature = match sign {
            Some(authentication) => signed_anew(message, queue, authentication),
            None => message.signature.clone(),
        };
        let mut properties = BasicProperties::default().with_delivery_mode(2).with_priority(0);
        if let Some(text) = &message.content_type {
            properties = properties.with_content_type(short(text).map_err(DeadLetterError::Broker)?);
        }
        if let Some(text) = &message.content_encoding {
            properties = properties.with_content_encoding(short(text).map_err(DeadLetterError::Broker)?);
        }
        let mut headers = FieldTable::default();
        if let Some(label) = &message.compression {
            headers.insert("compression".into(), AMQPValue::LongString(label.as_str().into()));
        }
        if let Some(signature) = signature {
            headers.insert(SIGNATURE.into(), AMQPValue::LongString(signature.into()));
        }
        for (name, value) in message.trace.iter().flat_map(TraceContext::headers) {
            headers.insert(name.into(), AMQPValue::LongString(value.into()));
        }
        let to = short(queue).map_err(DeadLetterError::Broker)?;
        self.publish(to, &message.body, properties.with_headers(headers))
            .await?;
        self.settle(lent.tag).await
    }

    /// Removes a message from the queue for good.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn discard(&self, lent: &Lent) -> Result<(), DeadLetterError> {
        self.settle(lent.tag).await
    }

    /// Closes the connection. Messages that were read and not removed go back into the queue.
    ///
    /// # Errors
    /// The connection is lost; the broker puts them back as well.
    pub async fn close(self) -> Result<(), DeadLetterError> {
        Ok(self.connection.close(200, "OK".into()).await?)
    }

    async fn settle(&self, tag: DeliveryTag) -> Result<(), DeadLetterError> {
        Ok(self.channel.basic_ack(tag, BasicAckOptions::default()).await?)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the channel is in confirm mode, and the confirmation is awaited"
    )]
    async fn publish(
        &self,
        queue: lapin::types::ShortString,
        body: &[u8],
        properties: BasicProperties,
    ) -> Result<(), DeadLetterError> {
        let mandatory = BasicPublishOptions {
            mandatory: true,
            immediate: false,
        };
        let name = queue.to_string();
        let confirmation = self
            .channel
            .basic_publish("".into(), queue, mandatory, body, properties)
            .await?
            .await?;
        match confirmation {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => {
                Err(DeadLetterError::Unroutable(name))
            }
            Confirmation::Nack(None) | Confirmation::NotRequested => Err(DeadLetterError::Broker(
                "it refused to store the message".to_owned(),
            )),
        }
    }
}

/// The signature of a message that is put into `queue`.
fn signed_anew(message: &RawMessage, queue: &str, authentication: &Authentication) -> Option<String> {
    let label = message.compression.iter();
    let mut copy = OutgoingMessage {
        route: direct(queue),
        mandatory: true,
        content_type: message.content_type.clone(),
        content_encoding: message.content_encoding.clone(),
        expiration: None,
        headers: label
            .map(|label| ("compression".to_owned(), label.clone()))
            .collect(),
        body: message.body.clone(),
        declare: Vec::new(),
    };
    authentication.sign(&mut copy);
    let header = copy.headers.into_iter().find(|(name, _)| name == SIGNATURE);
    header.map(|(_, value)| value)
}

async fn connect(
    url: &RabbitUrl,
    options: &RabbitOptions,
    program: &str,
) -> Result<Connection, DeadLetterError> {
    let opener = Opener::new(url.clone(), options, program)?;
    let opened = opener.open_once("dead-letters").await;
    opened.map_err(|error| DeadLetterError::Broker(error.to_string()))
}

/// The properties of a new copy: the broker's own count left out.
fn renewed(properties: AMQPProperties) -> BasicProperties {
    let mut headers = FieldTable::default();
    for (name, value) in properties.headers().iter().flat_map(|headers| headers.inner()) {
        if name.as_str() != "x-delivery-count" {
            headers.insert(name.clone(), value.clone());
        }
    }
    properties.with_headers(headers)
}
