//! Operations under which conductors ended, again and again.
//!
//! A driver that takes its conductor down takes along what runs beside it, and all of it is claimed again together. So an
//! operation that was lost [`SUSPECT_AFTER`] times waits longer after each loss ([`super::journal::candidates`]), and then begins
//! alone in its conductor: nothing is claimed beside it for a while. Innocent ones come through that and cost a little time; the
//! guilty one takes down nothing but itself, until [`super::retry::lost_limit`] ends it.
//!
//! Pure, but for what it remembers.

use std::time::Duration;

use tokio::time::Instant;

/// Lost claims that make an operation a suspect. Once may be anybody's.
pub const SUSPECT_AFTER: i32 = 2;
/// How much longer a suspect waits after its lease, for each time it was lost.
pub const WAIT_FOR_EACH_LOSS: Duration = Duration::from_secs(30);
/// How long nothing is claimed beside a suspect that has begun.
const ALONE_FOR: Duration = Duration::from_secs(60);
/// How long a suspect waits for a conductor that has nothing else to do. Then it begins beside others, which may be calls of an
/// hour: each of those is lost once at most before it is a suspect itself.
const WAIT_FOR_EMPTY: Duration = Duration::from_secs(300);

/// What one executor knows of suspects.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Since when one waits for this conductor to be empty.
    waiting_since: Option<Instant>,
    /// Until when nothing is claimed beside one that runs.
    alone_until: Option<Instant>,
}

impl Suspects {
    /// Whether an operation that was lost so often may be claimed now, with `running` others at work.
    pub(super) fn may_claim(&mut self, lost_claims: i32, running: usize, now: Instant) -> bool {
        if lost_claims < SUSPECT_AFTER || running == 0 {
            return true;
        }
        let since = *self.waiting_since.get_or_insert(now);
        now.duration_since(since) >= WAIT_FOR_EMPTY
    }

    /// An operation that was lost so often has begun.
    pub(super) fn claimed(&mut self, lost_claims: i32, now: Instant) {
        if lost_claims >= SUSPECT_AFTER {
            self.waiting_since = None;
            self.alone_until = Some(now + ALONE_FOR);
        }
    }

    /// For how long nothing may be claimed: a suspect runs alone.
    pub(super) fn is_alone_for(&mut self, running: usize, now: Instant) -> Option<Duration> {
        let left = self.alone_until?.checked_duration_since(now)?;
        if running == 0 || left.is_zero() {
            self.alone_until = None;
            return None;
        }
        Some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_suspect_begins_in_an_empty_conductor_and_stays_alone_for_a_while() {
        let (mut suspects, now) = (Suspects::default(), Instant::now());
        assert!(suspects.may_claim(1, 5, now));
        assert!(!suspects.may_claim(2, 5, now));
        assert!(suspects.may_claim(2, 0, now));
        suspects.claimed(1, now);
        assert_eq!(suspects.is_alone_for(1, now), None);
        suspects.claimed(2, now);
        assert_eq!(suspects.is_alone_for(1, now), Some(ALONE_FOR));
        assert_eq!(suspects.is_alone_for(1, now + ALONE_FOR), None);
        suspects.claimed(3, now);
        assert_eq!(suspects.is_alone_for(0, now), None, "it has ended");
        assert_eq!(suspects.is_alone_for(1, now), None);
    }

    #[tokio::test]
    async fn a_suspect_that_finds_no_empty_conductor_begins_beside_others_in_the_end() {
        let (mut suspects, now) = (Suspects::default(), Instant::now());
        assert!(!suspects.may_claim(2, 1, now));
        let soon = now + WAIT_FOR_EMPTY - Duration::from_secs(1);
        assert!(!suspects.may_claim(2, 1, soon));
        assert!(suspects.may_claim(2, 1, now + WAIT_FOR_EMPTY));
    }
}
