//! How a conductor and the guards of its processes keep time.

use std::time::Duration;

/// How the conductor and its guards keep time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardTiming {
    /// How often the conductor shows that it lives.
    pub heartbeat: Duration,
    /// How long a guard waits for such a sign.
    pub silence: Duration,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
}

impl GuardTiming {
    /// Times that fit into a lease which is renewed at a third: an owner that stops has two thirds left, the
    /// group ends within half.
    pub fn for_lease(lease: Duration) -> Self {
        Self {
            heartbeat: lease / 12,
            silence: lease / 3,
            grace: (lease / 6).min(Duration::from_secs(5)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_and_grace_end_before_the_rest_of_a_lease() {
        for seconds in [1, 3, 30, 600] {
            let lease = Duration::from_secs(seconds);
            let timing = GuardTiming::for_lease(lease);
            assert!(timing.silence + timing.grace < lease * 2 / 3, "{timing:?}");
            assert!(timing.heartbeat * 3 <= timing.silence, "{timing:?}");
        }
    }
}
