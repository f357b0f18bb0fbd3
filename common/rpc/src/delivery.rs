//! One delivery and its end: acknowledged, returned, or set aside.
//!
//! A delivery is owed an end. Dropped without one (a panic, a cancelled task) it returns to its queue at once,
//! so nothing is lost and nothing hangs until the next reconnect.
//!
//! After a reconnect the broker has given the message to somebody again; the end of the old delivery is then
//! without effect, and the journal's unique message id makes the second one harmless.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::client::{PublishDeadlines, publish_until};
use super::dead_letters;
use super::message::{OutgoingMessage, RawMessage};
use super::target;
use super::topology::Declaration;
use super::transport::Transport;
use magnum_telemetry::field;
use magnum_telemetry::trace::TraceContext;

/// Longest `x-reason` header; property tables must fit into one frame.
const MAX_REASON_BYTES: usize = 1024;

/// How long a move to the dead-letter queue is retried. Each attempt is bounded, too: a broker may leave a declaration
/// or a confirmation unanswered.
const DEAD_LETTER_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause before a message that could not be set aside is returned, so that it does not spin.
const RETURN_PAUSE: Duration = Duration::from_secs(1);

/// How a transport settles one of its deliveries. It only takes the word; telling the broker is its own work.
pub(super) trait Settle: Send + Sync {
    /// Acknowledges the delivery.
    fn ack(&self);
    /// Not done: back to the queue, or gone.
    fn reject(&self, requeue: bool);
}

/// Where messages go that cannot be handled.
pub(super) struct DeadLetters {
    /// Transport of the copies.
    pub(super) transport: Arc<dyn Transport>,
    /// The queue's name.
    pub(super) queue: String,
    /// Its declaration, as durable as the topic's.
    pub(super) declaration: Declaration,
}

/// A message that the broker has lent us.
pub struct Delivery {
    settle: Option<Box<dyn Settle>>,
    // Kept to be set aside unchanged.
    message: RawMessage,
    dead_letters: Option<Arc<DeadLetters>>,
}

impl Delivery {
    pub(super) fn new(settle: Box<dyn Settle>, message: RawMessage) -> Self {
        Self {
            settle: Some(settle),
            message,
            dead_letters: None,
        }
    }

    pub(super) fn with_dead_letters(mut self, dead_letters: Option<Arc<DeadLetters>>) -> Self {
        self.dead_letters = dead_letters;
        self
    }

    /// The delivered message.
    pub fn message(&self) -> &RawMessage {
        &self.message
    }

    /// Whether the broker delivered it before.
    pub fn redelivered(&self) -> bool {
        self.message.redelivered
    }

    /// The message is taken care of. The broker learns it soon, together with others.
    pub async fn ack(mut self) {
        if let Some(settle) = self.settle.take() {
            settle.ack();
        }
    }

    /// The message is not taken care of: the broker shall deliver it again, to us or to somebody else.
    pub async fn requeue(mut self) {
        if let Some(settle) = self.settle.take() {
            settle.reject(true);
        }
    }

    /// The message can never be taken care of: it moves to the dead-letter queue with `reason`.
    ///
    /// It is acknowledged only after the broker has confirmed the copy. Without a dead-letter queue it is
    /// rejected, and lost unless the broker has a policy of its own for that.
    pub async fn dead_letter(mut self, reason: &str) {
        let Some(dead_letters) = self.dead_letters.take() else {
            tracing::error!(
                { field::QUEUE } = %self.message.queue,
                reason,
                "message rejected; set [conductor] dead_letter_queue to keep such messages"
            );
            if let Some(settle) = self.settle.take() {
                settle.reject(false);
            }
            return;
        };
        let copy = dead_letters.copy(&self.message, reason);
        let deadline = Instant::now() + DEAD_LETTER_TIMEOUT;
        match publish_until(
            dead_letters.transport.as_ref(),
            &copy,
            PublishDeadlines::at(deadline),
        )
        .await
        {
            Ok(()) => {
                tracing::error!(
                    { field::QUEUE } = %self.message.queue,
                    { field::DEAD_LETTER_QUEUE } = %dead_letters.queue,
                    reason,
                    "message moved to the dead-letter queue"
                );
                self.ack().await;
            }
            Err(error) => {
                tracing::warn!(
                    { field::DEAD_LETTER_QUEUE } = %dead_letters.queue,
                    %error,
                    "message could not be moved to the dead-letter queue; it will be delivered again"
                );
                tokio::time::sleep(RETURN_PAUSE).await;
                self.requeue().await;
            }
        }
    }
}

impl DeadLetters {
    fn copy(&self, message: &RawMessage, reason: &str) -> OutgoingMessage {
        let mut headers = dead_letters::headers(shorten(reason), &message.queue);
        if let Some(compression) = &message.compression {
            headers.push(("compression".to_owned(), compression.clone()));
        }
        let trace = message.trace.iter().flat_map(TraceContext::headers);
        headers.extend(trace.map(|(name, value)| (name.to_owned(), value)));
        OutgoingMessage {
            route: target::direct(&self.queue),
            mandatory: true,
            content_type: message.content_type.clone(),
            content_encoding: message.content_encoding.clone(),
            expiration: None,
            headers,
            body: message.body.clone(),
            declare: vec![self.declaration.clone()],
        }
    }
}

fn shorten(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(MAX_REASON_BYTES)]
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(settle) = self.settle.take() {
            settle.reject(true);
        }
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body holds a token.
        f.debug_struct("Delivery")
            .field("queue", &self.message.queue)
            .field("bytes", &self.message.body.len())
            .field("redelivered", &self.message.redelivered)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_cut_at_a_character() {
        let reason = "ü".repeat(1000);
        assert_eq!(shorten(&reason).len(), 1024);
        let reason = format!("a{reason}");
        assert_eq!(shorten(&reason).len(), 1023);
        assert_eq!(shorten("short"), "short");
    }
}
