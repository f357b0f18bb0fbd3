//! Messages byte by byte: an AMQP client that knows oslo.messaging's envelope and nothing of our code.
//!
//! For bodies that no well-behaved client sends, and for looking at replies and dead letters as they are.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use lapin::options::{
    BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, Consumer};
use serde_json::{Map, Value, json};

use crate::rabbitmq::Vhost;

/// Exchange and routing key of every Magnum.
const EXCHANGE: &str = "magnum";
const TOPIC: &str = "magnum-conductor";

/// A client on one vhost.
pub struct RawRpc {
    channel: Channel,
    replies: Consumer,
    reply_queue: String,
    connection: Connection,
}

impl RawRpc {
    /// Connects and makes a reply queue. A conductor must have declared the exchange already.
    pub async fn connect(vhost: &Vhost) -> Result<Self> {
        let connection = Connection::connect(&vhost.amqp_url(), ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        let reply_queue = format!("reply_{}", uuid::Uuid::new_v4().simple());
        let temporary = QueueDeclareOptions {
            exclusive: true,
            auto_delete: true,
            ..Default::default()
        };
        channel
            .queue_declare(reply_queue.as_str().into(), temporary, FieldTable::default())
            .await?;
        let no_ack = BasicConsumeOptions {
            no_ack: true,
            ..Default::default()
        };
        let replies = channel
            .basic_consume(
                reply_queue.as_str().into(),
                "".into(),
                no_ack,
                FieldTable::default(),
            )
            .await?;
        Ok(Self {
            channel,
            replies,
            reply_queue,
            connection,
        })
    }

    /// Sends a body to the conductors, whatever it is, and waits for the broker's confirmation.
    pub async fn send(&self, body: &[u8], content_type: &str) -> Result<()> {
        let properties = BasicProperties::default()
            .with_content_type(content_type.into())
            .with_content_encoding("utf-8".into())
            .with_delivery_mode(2);
        let mandatory = BasicPublishOptions {
            mandatory: true,
            ..Default::default()
        };
        #[expect(clippy::disallowed_methods, reason = "the confirmation is awaited right here")]
        let published = self
            .channel
            .basic_publish(EXCHANGE.into(), TOPIC.into(), mandatory, body, properties)
            .await?;
        let confirmation = published.await?;
        ensure!(confirmation.is_ack(), "not confirmed: {confirmation:?}");
        Ok(())
    }

    /// Sends a message in oslo's envelope.
    pub async fn cast(&self, message: &Value) -> Result<()> {
        self.send(enveloped(message).to_string().as_bytes(), "application/json")
            .await
    }

    /// Sends a message as a call and returns the final reply; see [`Self::ask`] and [`Self::reply_to`].
    pub async fn call(&mut self, message: Value, within: Duration) -> Result<Value> {
        let message = self.ask(message).await?;
        self.reply_to(&message, within).await
    }

    /// Sends a message as a call and returns it as it was sent. One that has a `_msg_id` keeps it, so that one can
    /// be sent twice.
    pub async fn ask(&self, mut message: Value) -> Result<Value> {
        if message["_msg_id"].is_null() {
            message["_msg_id"] = json!(uuid::Uuid::new_v4().simple().to_string());
        }
        message["_reply_q"] = json!(self.reply_queue);
        self.cast(&message).await?;
        Ok(message)
    }

    /// The next final reply to a message that was asked: `result` and `failure`, the latter decoded. Replies to
    /// others, and signs of life, are passed over.
    pub async fn reply_to(&mut self, message: &Value, within: Duration) -> Result<Value> {
        let reply = async {
            loop {
                let reply = self.next_reply().await?;
                if reply["_msg_id"] == message["_msg_id"] && reply["ending"] == true {
                    return Ok::<_, anyhow::Error>(reply);
                }
            }
        };
        tokio::time::timeout(within, reply)
            .await
            .with_context(|| format!("no reply to {}", message["method"]))?
    }

    /// The next reply to a message that was asked, be it a sign of life.
    pub async fn any_reply_to(&mut self, message: &Value, within: Duration) -> Result<Value> {
        let reply = async {
            loop {
                let reply = self.next_reply().await?;
                if reply["_msg_id"] == message["_msg_id"] {
                    return Ok::<_, anyhow::Error>(reply);
                }
            }
        };
        tokio::time::timeout(within, reply)
            .await
            .with_context(|| format!("nothing about {}", message["method"]))?
    }

    /// Drops the replies that have come so far.
    pub async fn forget_replies(&mut self) {
        while let Ok(Ok(_)) = tokio::time::timeout(Duration::from_millis(50), self.next_reply()).await {}
    }

    async fn next_reply(&mut self) -> Result<Value> {
        let delivery = self.replies.next().await.context("the reply queue is gone")??;
        let envelope: Value = serde_json::from_slice(&delivery.data)?;
        let mut reply: Value =
            serde_json::from_str(envelope["oslo.message"].as_str().context("no oslo.message")?)?;
        if let Some(failure) = reply["failure"].as_str() {
            reply["failure"] = serde_json::from_str(failure)?;
        }
        Ok(reply)
    }

    /// Takes one message from a queue: its body and its headers that are texts. `None` when it is empty;
    /// an error when there is no such queue (yet).
    pub async fn take(&self, queue: &str) -> Result<Option<(Vec<u8>, BTreeMap<String, String>)>> {
        // The broker closes the channel of whoever asks for a queue that is not there.
        let channel = self.connection.create_channel().await?;
        let got = channel
            .basic_get(queue.into(), BasicGetOptions { no_ack: true })
            .await?;
        Ok(got.map(|message| {
            let headers = message.properties.headers().clone().unwrap_or_default();
            let texts = headers.inner().iter().filter_map(|(name, value)| match value {
                AMQPValue::LongString(text) => Some((
                    name.to_string(),
                    String::from_utf8_lossy(text.as_bytes()).into_owned(),
                )),
                _ => None,
            });
            (message.data.clone(), texts.collect())
        }))
    }

    /// The bodies of all messages of a queue, in which they stay; an error when there is no such queue (yet).
    pub async fn look_at_all(&self, queue: &str) -> Result<Vec<Vec<u8>>> {
        let channel = self.connection.create_channel().await?;
        let mut bodies = Vec::new();
        let keep = BasicGetOptions { no_ack: false };
        while let Some(message) = channel.basic_get(queue.into(), keep).await? {
            bodies.push(message.data.clone());
        }
        // What was not acknowledged goes back.
        channel.close(200, "looked at".into()).await?;
        Ok(bodies)
    }
}

/// A request as oslo writes it: method, arguments, a fresh unique id and a context.
#[expect(clippy::needless_pass_by_value, reason = "callers write JSON on the spot")]
pub fn request(method: &str, args: Value) -> Value {
    json!({
        "method": method,
        "args": args,
        "_unique_id": uuid::Uuid::new_v4().simple().to_string(),
        "_context_project_id": "p",
        "_context_user_id": "u",
        "_context_roles": ["member", "reader"],
        "_context_request_id": format!("req-{}", uuid::Uuid::new_v4()),
    })
}

/// A versioned object with all its fields changed, as in a create.
#[expect(clippy::needless_pass_by_value, reason = "callers write JSON on the spot")]
pub fn object(name: &str, version: &str, fields: Value) -> Value {
    let changes: Vec<String> = fields
        .as_object()
        .map(Map::keys)
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    json!({
        "magnum_object.name": name,
        "magnum_object.namespace": "magnum",
        "magnum_object.version": version,
        "magnum_object.data": fields,
        "magnum_object.changes": changes,
    })
}

/// The envelope around a message.
pub fn enveloped(message: &Value) -> Value {
    json!({"oslo.version": "2.0", "oslo.message": message.to_string()})
}
