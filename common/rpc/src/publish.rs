//! Publishing until the broker confirms it, for whoever asks and whoever answers.
//!
//! A message may be stored more often than once: an attempt whose confirmation was lost is repeated with the same
//! bytes, which a receiver knows by their unique id.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::error::PublishError;
use super::message::OutgoingMessage;
use super::transport::Transport;
use magnum_common::retry::{Retry, RetryPolicy};

/// Longest wait for one confirmation; a broker that blocks publishers answers none at all.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a message without a queue is offered again: a conductor that reconnects declares it in that time.
const UNROUTABLE_TIMEOUT: Duration = Duration::from_secs(2);

/// When retries of a publish end.
#[derive(Debug, Clone, Copy)]
pub struct PublishDeadlines {
    /// While the broker does not confirm the message.
    pub unconfirmed: Instant,
    /// While there is no queue for the message.
    pub unroutable: Instant,
}

impl PublishDeadlines {
    /// At `deadline`, and soon for a queue that does not exist.
    pub fn at(deadline: Instant) -> Self {
        Self {
            unconfirmed: deadline,
            unroutable: deadline.min(Instant::now() + UNROUTABLE_TIMEOUT),
        }
    }
}

/// Publishes a message until the broker confirms it; every attempt sends the same bytes, so that a receiver that
/// deduplicates by unique id sees one request.
///
/// # Errors
/// The error of the last attempt: a permanent one, or any at its deadline. After a transient error the broker may have
/// stored the message.
pub async fn publish_until(
    transport: &dyn Transport,
    message: &OutgoingMessage,
    deadlines: PublishDeadlines,
) -> Result<(), PublishError> {
    let policy = RetryPolicy {
        initial: Duration::from_millis(100),
        max_interval: Duration::from_secs(1),
        multiplier: 2.0,
        jitter: 0.25,
    };
    let last = deadlines.unconfirmed.max(deadlines.unroutable);
    let attempt = || async {
        let attempt_ends = last.min(Instant::now() + CONFIRM_TIMEOUT);
        timeout_at(attempt_ends, transport.publish(message.clone()))
            .await
            .unwrap_or(Err(PublishError::TimedOut))
    };
    let is_retryable = |error: &PublishError, retry: Retry| {
        let deadline = match error {
            PublishError::Unroutable { .. } => deadlines.unroutable,
            _ => deadlines.unconfirmed,
        };
        let retryable = error.is_transient() && retry.at < deadline;
        if retryable {
            tracing::debug!(%error, "publish failed; trying again");
        }
        retryable
    };
    policy.retry_while(attempt, is_retryable).await
}
