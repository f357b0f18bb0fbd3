//! A delivered request and its end: acknowledged, returned, or set aside with a reason.
//!
//! Dropped without an end (a panic, a cancelled task) it returns to its queue at once, as every delivery does.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::dead_letters;
use magnum_rpc::{
    Declaration, OutgoingMessage, PublishDeadlines, RawMessage, SIGNATURE, Transport, direct, publish_until,
};
use magnum_telemetry::field;
use magnum_telemetry::trace::TraceContext;

/// Longest `x-reason` header; property tables must fit into one frame.
const MAX_REASON_BYTES: usize = 1024;

/// How long a move to the dead-letter queue is retried. Each attempt is bounded, too: a broker may leave a declaration
/// or a confirmation unanswered.
const DEAD_LETTER_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause before a message that could not be set aside is returned, so that it does not spin.
const RETURN_PAUSE: Duration = Duration::from_secs(1);

/// Where messages go that cannot be handled.
pub(super) struct DeadLetterQueue {
    /// Transport of the copies.
    pub(super) transport: Arc<dyn Transport>,
    /// The queue's name.
    pub(super) queue: String,
    /// Its declaration, as durable as the topic's.
    pub(super) declaration: Declaration,
}

/// A request that the broker has lent us.
pub struct Delivery {
    lent: magnum_rpc::Delivery,
    dead_letters: Option<Arc<DeadLetterQueue>>,
}

impl Delivery {
    pub(super) fn new(lent: magnum_rpc::Delivery, dead_letters: Option<Arc<DeadLetterQueue>>) -> Self {
        Self { lent, dead_letters }
    }

    /// The delivered message.
    pub fn message(&self) -> &RawMessage {
        self.lent.message()
    }

    /// Whether the broker delivered it before.
    pub fn redelivered(&self) -> bool {
        self.lent.redelivered()
    }

    /// The message is taken care of. The broker learns it soon, together with others.
    pub async fn ack(self) {
        self.lent.ack().await;
    }

    /// The message is not taken care of: the broker shall deliver it again, to us or to somebody else.
    pub async fn requeue(self) {
        self.lent.requeue().await;
    }

    /// The message can never be taken care of: it moves to the dead-letter queue with `reason`.
    ///
    /// It is acknowledged only after the broker has confirmed the copy. Without a dead-letter queue it is
    /// rejected, and lost unless the broker has a policy of its own for that.
    pub async fn dead_letter(self, reason: &str) {
        self.set_aside(reason, false).await;
    }

    /// [`Self::dead_letter`] without a line in the log where it succeeds, for messages that come as often as a stranger likes.
    pub async fn dead_letter_quietly(self, reason: &str) {
        self.set_aside(reason, true).await;
    }

    async fn set_aside(self, reason: &str, is_quiet: bool) {
        let Some(dead_letters) = &self.dead_letters else {
            if !is_quiet {
                tracing::error!(
                    { field::QUEUE } = %self.message().queue,
                    reason,
                    "message rejected; set [conductor] dead_letter_queue to keep such messages"
                );
            }
            self.lent.reject().await;
            return;
        };
        let copy = dead_letters.copy(self.message(), reason);
        let deadline = Instant::now() + DEAD_LETTER_TIMEOUT;
        match publish_until(
            dead_letters.transport.as_ref(),
            &copy,
            PublishDeadlines::at(deadline),
        )
        .await
        {
            Ok(()) => {
                if !is_quiet {
                    tracing::error!(
                        { field::QUEUE } = %self.message().queue,
                        { field::DEAD_LETTER_QUEUE } = %dead_letters.queue,
                        reason,
                        "message moved to the dead-letter queue"
                    );
                }
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

impl DeadLetterQueue {
    fn copy(&self, message: &RawMessage, reason: &str) -> OutgoingMessage {
        let mut headers = dead_letters::headers(shorten(reason), &message.queue);
        if let Some(compression) = &message.compression {
            headers.push(("compression".to_owned(), compression.clone()));
        }
        if let Some(signature) = &message.signature {
            headers.push((SIGNATURE.to_owned(), signature.clone()));
        }
        let trace = message.trace.iter().flat_map(TraceContext::headers);
        headers.extend(trace.map(|(name, value)| (name.to_owned(), value)));
        OutgoingMessage {
            route: direct(&self.queue),
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

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The body holds a token; what is below leaves it out.
        self.lent.fmt(f)
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
