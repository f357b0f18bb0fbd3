//! Notifications to other services, as oslo.messaging's notifier publishes them.
//!
//! A notification goes to the queue `<topic>.<priority>` on the control exchange. The publisher declares that
//! queue and its binding, so what nobody reads piles up there, as with a Python publisher. Sent with bounded
//! retries; oslo's own are without bound by default and hold up whoever notifies.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::client::{Patience, publish_until};
use super::envelope;
use super::message::{OutgoingMessage, WireFormat};
use super::target::Route;
use super::topology;
use super::transport::{PublishError, Transport};
use crate::clock::utc_now;
use crate::context::RequestContext;
use crate::ids::MessageId;

/// How long one notification is offered to the broker.
const PATIENCE: Duration = Duration::from_secs(10);

/// Keys of the context that never leave in a notification.
const SECRET: &[&str] = &["auth_token", "auth_token_info", "auth_url"];

/// How urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Something went its way.
    Info,
    /// Something failed.
    Error,
}

impl Priority {
    /// The word in the message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Error => "ERROR",
        }
    }

    /// The word in the queue's name.
    const fn queue_suffix(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Error => "error",
        }
    }
}

/// With or without the envelope of version 2.0: the drivers `messagingv2` and `messaging`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationFormat {
    /// `messagingv2`
    Enveloped,
    /// `messaging`
    Bare,
}

/// What is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Who tells: `<service>.<host>`.
    pub publisher_id: String,
    /// What happened.
    pub event_type: String,
    /// How urgent.
    pub priority: Priority,
    /// The details.
    pub payload: Value,
    /// Who caused it. Sent without its token.
    pub context: RequestContext,
}

impl Notification {
    /// The message, with fresh ids and the time of now.
    pub fn to_message(&self) -> Value {
        let mut message = Map::new();
        let mut put = |name: &str, value: Value| message.insert(name.to_owned(), value);
        put("message_id", json!(uuid::Uuid::new_v4().to_string()));
        put("publisher_id", json!(self.publisher_id));
        put("event_type", json!(self.event_type));
        put("priority", json!(self.priority.as_str()));
        put("payload", self.payload.clone());
        put(
            "timestamp",
            json!(utc_now().format("%Y-%m-%d %H:%M:%S%.6f").to_string()),
        );
        put("_unique_id", json!(MessageId::random().into_string()));
        for (name, value) in self.context.entries() {
            let value = if SECRET.contains(&name) {
                Value::Null
            } else {
                // What JSON cannot say reads as absent, as everywhere in a context.
                serde_json::to_value(value).unwrap_or_default()
            };
            put(&format!("_context_{name}"), value);
        }
        Value::Object(message)
    }
}

/// Publishes a notification on `topic` of `exchange`, with bounded retries.
pub async fn notify(
    transport: &dyn Transport,
    exchange: &str,
    topic: &str,
    notification: &Notification,
    format: NotificationFormat,
) -> Result<(), PublishError> {
    let message = notification.to_message();
    let encode = |error: String| PublishError::Encode(error);
    let body = match format {
        NotificationFormat::Enveloped => {
            envelope::encode(&message, WireFormat::Json).map_err(|error| encode(error.to_string()))?
        }
        NotificationFormat::Bare => serde_json::to_vec(&message)
            .map_err(|error| encode(error.to_string()))?
            .into(),
    };
    let queue = format!("{topic}.{}", notification.priority.queue_suffix());
    let route = Route {
        exchange: exchange.to_owned(),
        routing_key: queue.clone(),
    };
    let outgoing = OutgoingMessage {
        mandatory: false,
        declare: topology::notification_queue(exchange, &queue, transport.options()),
        ..OutgoingMessage::new(route, WireFormat::Json, body)
    }
    .compressed(transport.options().kombu_compression)?;
    publish_until(transport, &outgoing, Patience::until(Instant::now() + PATIENCE)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Caller;
    use crate::ids::RequestId;
    use crate::secret::Secret;

    #[test]
    fn the_context_goes_along_without_its_token() {
        let caller = Caller {
            user_id: Some("u".into()),
            auth_token: Some(Secret::new("tok-1")),
            auth_token_info: Some(json!({"token": "tok-1"})),
            ..Caller::default()
        };
        let notification = Notification {
            publisher_id: "container-infra.h".into(),
            event_type: "magnum.cluster.create".into(),
            priority: Priority::Info,
            payload: json!({}),
            context: RequestContext::for_caller(&caller, &RequestId::new("req-1")),
        };
        let message = notification.to_message();
        assert!(!message.to_string().contains("tok-1"), "{message}");
        assert_eq!(message["_context_auth_token"], Value::Null);
        assert_eq!(message["_context_user_id"], "u");
    }
}
