//! Notifications to other services, as oslo.messaging's notifier publishes them.
//!
//! A notification goes to the queue `<topic>.<priority>` on the control exchange. The publisher declares that
//! queue and its binding, so messages without a consumer accumulate there, as with a Python publisher. It has one id
//! and one time on all topics and in all retries: by these a listener on several topics deduplicates it.
//!
//! A message that the broker does not confirm is retried as often as `[oslo_messaging_notifications] retry` allows, by
//! default until it is confirmed. Callers must not hold up other work meanwhile.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use magnum_common::clock::utc_now;
use magnum_common::context::RequestContext;
use magnum_common::ids::MessageId;
use magnum_common::retry::{Retry, RetryPolicy};
use magnum_rpc::{OutgoingMessage, PublishError, Route, Transport, WireFormat, topology};

/// Time limit of one attempt, connecting included: enough to try each of three hosts.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(35);

/// Keys of the context that never leave in a notification.
const SECRET: &[&str] = &["auth_token", "auth_token_info", "auth_url"];

/// Priority of a notification, as in oslo.messaging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// An operation began or succeeded.
    Info,
    /// A failure.
    Error,
}

impl Priority {
    /// The value in the message.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "INFO",
            Self::Error => "ERROR",
        }
    }

    /// The suffix of the queue's name.
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

/// How often a message is retried that the broker did not confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retries {
    /// Until it is confirmed.
    Endless,
    /// At most this often, after the first attempt.
    AtMost(u64),
}

impl From<i64> for Retries {
    /// By the number of `[oslo_messaging_notifications] retry`: a negative one sets no limit.
    fn from(retry: i64) -> Self {
        u64::try_from(retry).map_or(Self::Endless, Self::AtMost)
    }
}

impl Retries {
    const fn are_exhausted(self, failures: u64) -> bool {
        match self {
            Self::Endless => false,
            Self::AtMost(most) => failures > most,
        }
    }
}

/// The payload of an event, with its type and priority.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// Message id, the same in every attempt to publish it.
    pub id: Uuid,
    /// When it was written.
    pub time: DateTime<Utc>,
    /// Sender, `<service>.<host>`.
    pub publisher_id: String,
    /// Type of the event, such as `magnum.cluster.create`.
    pub event_type: String,
    /// Priority.
    pub priority: Priority,
    /// Data of the event.
    pub payload: Value,
    /// The context of the request that caused it. Sent without its token.
    pub context: RequestContext,
}

impl Notification {
    /// A notification of this moment, with a new id.
    pub fn now(
        publisher_id: String,
        event_type: String,
        priority: Priority,
        payload: Value,
        context: RequestContext,
    ) -> Self {
        Self {
            id: Uuid::new_v4(),
            time: utc_now(),
            publisher_id,
            event_type,
            priority,
            payload,
            context,
        }
    }

    /// The notification without its context: what oslo's driver `log` writes.
    pub fn to_record(&self) -> Map<String, Value> {
        let mut record = Map::new();
        let mut put = |name: &str, value: Value| record.insert(name.to_owned(), value);
        put("message_id", json!(self.id.to_string()));
        put("publisher_id", json!(self.publisher_id));
        put("event_type", json!(self.event_type));
        put("priority", json!(self.priority.as_str()));
        put("payload", self.payload.clone());
        put(
            "timestamp",
            json!(self.time.format("%Y-%m-%d %H:%M:%S%.6f").to_string()),
        );
        record
    }

    /// The message for one queue, with a fresh id of its own.
    pub fn to_message(&self) -> Value {
        let mut message = self.to_record();
        let mut put = |name: &str, value: Value| message.insert(name.to_owned(), value);
        put("_unique_id", json!(MessageId::random().into_string()));
        for (name, value) in self.context.entries() {
            let value = if SECRET.contains(&name) {
                Value::Null
            } else {
                // Values that JSON cannot represent are left out, as everywhere in a context.
                serde_json::to_value(value).unwrap_or_default()
            };
            put(&format!("_context_{name}"), value);
        }
        Value::Object(message)
    }

    /// The queue for it, and its routing key.
    fn queue(&self, topic: &str) -> String {
        format!("{topic}.{}", self.priority.queue_suffix())
    }
}

/// The queues for notifications on `topic`, as their publisher declares them.
pub fn notification_queues(topic: &str) -> [String; 2] {
    [Priority::Info, Priority::Error].map(|priority| format!("{topic}.{}", priority.queue_suffix()))
}

/// Publishes a notification on `topic` of `exchange`, with as many retries as `retries` allows.
///
/// # Errors
/// It cannot be encoded, the broker refuses it permanently, or all retries have failed.
pub async fn notify(
    transport: &dyn Transport,
    exchange: &str,
    topic: &str,
    notification: &Notification,
    format: NotificationFormat,
    retries: Retries,
) -> Result<(), PublishError> {
    let message = notification.to_message();
    let encode = |error: String| PublishError::Encode(error);
    let body = match format {
        NotificationFormat::Enveloped => {
            magnum_rpc::encode(&message, WireFormat::Json).map_err(|error| encode(error.to_string()))?
        }
        NotificationFormat::Bare => serde_json::to_vec(&message)
            .map_err(|error| encode(error.to_string()))?
            .into(),
    };
    let queue = notification.queue(topic);
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
    publish(transport, &outgoing, retries).await
}

/// Every attempt sends the same bytes.
async fn publish(
    transport: &dyn Transport,
    message: &OutgoingMessage,
    retries: Retries,
) -> Result<(), PublishError> {
    let options = transport.options();
    let policy = RetryPolicy {
        initial: options.rabbit_retry_interval,
        max_interval: options.rabbit_interval_max,
        multiplier: 2.0,
        jitter: 0.2,
    };
    let attempt = || async {
        timeout(ATTEMPT_TIMEOUT, transport.publish(message.clone()))
            .await
            .unwrap_or(Err(PublishError::TimedOut))
    };
    let queue = &message.route.routing_key;
    let is_retryable = |error: &PublishError, retry: Retry| {
        let failures = retry.failures;
        if !error.is_transient() || retries.are_exhausted(failures) {
            return false;
        }
        if failures == 1 {
            tracing::warn!(%error, queue, "the broker did not take a notification; it is published again");
        } else {
            tracing::debug!(%error, queue, failures, "the broker did not take a notification");
        }
        true
    };
    policy.retry_while(attempt, is_retryable).await
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;
    use magnum_common::context::Caller;
    use magnum_common::ids::RequestId;
    use magnum_common::secret::Secret;

    fn notification(context: RequestContext) -> Notification {
        let text = |text: &str| text.to_owned();
        Notification::now(
            text("container-infra.h"),
            text("magnum.cluster.create"),
            Priority::Info,
            json!({}),
            context,
        )
    }

    #[test]
    fn a_notification_has_one_id_and_each_of_its_messages_its_own() {
        let context = RequestContext::for_caller(&Caller::default(), &RequestId::new("req-1"));
        let notification = notification(context);
        let messages = [notification.to_message(), notification.to_message()];
        for name in ["message_id", "timestamp"] {
            assert_eq!(messages[0][name], messages[1][name]);
        }
        assert_ne!(messages[0]["_unique_id"], messages[1]["_unique_id"]);
    }

    #[test]
    fn retries_are_counted_as_oslo_counts_them() {
        let attempts = |retry: i64| (1..100).find(|failures| Retries::from(retry).are_exhausted(*failures));
        assert_eq!(attempts(0), Some(1), "no retry");
        assert_eq!(attempts(3), Some(4));
        assert_eq!(attempts(-1), None);
        assert_eq!(attempts(-7), None);
    }

    #[test]
    fn the_context_goes_along_without_its_token() {
        let caller = Caller {
            user_id: Some("u".into()),
            auth_token: Some(Secret::new("tok-1")),
            auth_token_info: Some(to_raw_value(&json!({"token": "tok-1"})).unwrap().into()),
            ..Caller::default()
        };
        let notification = notification(RequestContext::for_caller(&caller, &RequestId::new("req-1")));
        let message = notification.to_message();
        assert!(!message.to_string().contains("tok-1"), "{message}");
        assert_eq!(message["_context_auth_token"], Value::Null);
        assert_eq!(message["_context_user_id"], "u");
    }
}
