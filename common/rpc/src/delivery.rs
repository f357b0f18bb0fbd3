//! One delivery and its end: acknowledged, returned, or rejected.
//!
//! A delivery is owed an end. Dropped without one (a panic, a cancelled task) it returns to its queue at once,
//! so nothing is lost and nothing hangs until the next reconnect.
//!
//! After a reconnect the broker has given the message to somebody again; the end of the old delivery is then
//! without effect, and the journal's unique message id makes the second one harmless.

use std::fmt;

use super::message::RawMessage;

/// How a transport settles one of its deliveries. It only takes the word; telling the broker is its own work.
pub(super) trait Settle: Send + Sync {
    /// Acknowledges the delivery.
    fn ack(&self);
    /// Not done: back to the queue, or gone.
    fn reject(&self, requeue: bool);
}

/// A message that the broker has lent us.
pub struct Delivery {
    settle: Option<Box<dyn Settle>>,
    message: RawMessage,
}

impl Delivery {
    pub(super) fn new(settle: Box<dyn Settle>, message: RawMessage) -> Self {
        Self {
            settle: Some(settle),
            message,
        }
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

    /// The message is not taken care of and must not come back: gone, unless the broker has a policy for that.
    pub async fn reject(mut self) {
        if let Some(settle) = self.settle.take() {
            settle.reject(false);
        }
    }
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
