//! Callers that are gone: reply queues that were not there, remembered for a while.
//!
//! A reply whose queue is missing is offered for `kombu_missing_consumer_retry_timeout`, since a caller that lost
//! its connection declares its queue again. The next reply to a caller that did not come back in that time is
//! offered once, without waiting. oslo.messaging remembers as long and as many, and drops such replies unseen; the
//! one attempt costs little and reaches a caller that came back late under its old name.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a queue is remembered.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Most queues remembered; the oldest goes first.
const MOST: usize = 200;

/// Reply queues that were not there, oldest first.
#[derive(Debug, Default)]
pub struct GoneCallers(Mutex<VecDeque<(String, Instant)>>);

impl GoneCallers {
    /// Whether it was gone a moment before `now`.
    pub fn contains(&self, queue: &str, now: Instant) -> bool {
        let mut gone = self.lock();
        while gone
            .front()
            .is_some_and(|(_, since)| now.saturating_duration_since(*since) >= REMEMBERED)
        {
            gone.pop_front();
        }
        gone.iter().any(|(name, _)| name == queue)
    }

    /// Remembers that the queue does not exist.
    pub fn remember(&self, queue: &str) {
        let mut gone = self.lock();
        gone.retain(|(name, _)| name != queue);
        if gone.len() == MOST {
            gone.pop_front();
        }
        gone.push_back((queue.to_owned(), Instant::now()));
    }

    /// It is there again.
    pub fn forget(&self, queue: &str) {
        self.lock().retain(|(name, _)| name != queue);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Instant)>> {
        // Each change under the lock leaves a valid list.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_remembered_for_a_minute_or_until_it_is_back() {
        let gone = GoneCallers::default();
        gone.remember("a");
        gone.remember("b");
        let now = Instant::now();
        assert!(gone.contains("a", now) && gone.contains("b", now) && !gone.contains("c", now));
        gone.forget("b");
        assert!(!gone.contains("b", now));
        assert!(!gone.contains("a", now + REMEMBERED));
    }

    #[test]
    fn no_more_than_two_hundred_are_remembered() {
        let gone = GoneCallers::default();
        (0..300).for_each(|n| gone.remember(&n.to_string()));
        let known = |queue| gone.contains(queue, Instant::now());
        assert!(known("299") && known("100") && !known("99"));
    }
}
