//! A log line for what a stranger can cause as often as he likes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const PAUSE: Duration = Duration::from_secs(10);

/// Lets one line through in ten seconds, and counts the others.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// Whether to write a line now; then, how many were left out since the last one.
    pub fn next(&self) -> Option<u64> {
        self.next_at(Instant::now())
    }

    fn next_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, left_out) = &mut *state;
        if last.is_some_and(|last| now.duration_since(last) < PAUSE) {
            *left_out += 1;
            return None;
        }
        *last = Some(now);
        Some(std::mem::take(left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_ten_seconds_says_how_many_were_left_out() {
        let (seldom, now) = (Seldom::default(), Instant::now());
        assert_eq!([now; 3].map(|now| seldom.next_at(now)), [Some(0), None, None]);
        assert_eq!([now + PAUSE; 2].map(|now| seldom.next_at(now)), [Some(2), None]);
    }
}
