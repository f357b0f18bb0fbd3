//! Which leases are over, as far as a conductor has watched them itself.
//!
//! The database's clock says when a lease expires, but there may be more than one such clock (the nodes of a cluster that takes
//! writes everywhere, the server before and after a failover), and a clock can be set. By it alone, a conductor would take over
//! from an owner that is well. So a lease is over only if, besides, nobody has renewed it for a whole term of this process's
//! monotonic clock: the row had the same epoch and the same expiry at two moments that far apart. The second of them is the
//! claim, which compares both ([`super::lease::claim`]), so nothing can come in between, and nobody has to look all the time.
//!
//! Guarantee: an owner that counts on a term from before its renewal was sent has stopped when its lease is over here, whatever
//! the clocks of databases say, if this machine's clock does not run faster than the owner's by more than the sixth of the term
//! that the owner leaves unused ([`super::keeper`]). Not given: anything about a machine that stood still; see
//! `docs/DURABILITY.md`.
//!
//! The price: a conductor that has just started waits a term before it takes anything over. A lease that was given back is
//! free at once.
//!
//! Pure, but for what it remembers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The shortest time between two looks at what runs.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The lease of an operation that runs, as its row has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenLease {
    /// The operation's row number.
    pub row: i64,
    /// The lease's epoch.
    pub epoch: i64,
    /// Until when it was prolonged, by the clock of some database, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
}

/// What one process has seen of all leases, its own among them. Clones share it.
#[derive(Debug, Clone)]
pub struct LeaseWatch {
    term: Duration,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Each lease as it is since that moment.
    leases: HashMap<i64, (SeenLease, Instant)>,
    looked: Option<Instant>,
}

impl LeaseWatch {
    /// Nothing is seen yet. Leases have this `term`.
    pub fn new(term: Duration) -> Self {
        Self {
            term,
            seen: Arc::default(),
        }
    }

    /// Whether it is time to look at what runs.
    pub fn is_due(&self, now: Instant) -> bool {
        let pause = LOOK_EVERY.min(self.term / 6);
        self.seen().looked.is_none_or(|looked| now >= looked + pause)
    }

    /// These are all leases of operations that run, read at some moment before `read`.
    pub fn saw(&self, running: Vec<SeenLease>, read: Instant) {
        let mut seen = self.seen();
        let mut before = std::mem::take(&mut seen.leases);
        seen.leases = running
            .into_iter()
            .map(|lease| {
                let since = match before.remove(&lease.row) {
                    Some((same, since)) if same == lease => since,
                    _ => read,
                };
                (lease.row, (lease, since))
            })
            .collect();
        seen.looked = Some(read);
    }

    /// Row numbers of operations whose lease is over if it is still as it was seen, at a moment after `now`.
    pub fn over(&self, now: Instant) -> Vec<i64> {
        let seen = self.seen();
        let leases = seen.leases.values();
        leases
            .filter(|(_, since)| self.has_passed(*since, now))
            .map(|(lease, _)| lease.row)
            .collect()
    }

    /// Whether this lease, read at a moment after `now`, is over.
    pub fn is_over(&self, lease: SeenLease, now: Instant) -> bool {
        let seen = self.seen();
        let before = seen.leases.get(&lease.row);
        before.is_some_and(|(same, since)| *same == lease && self.has_passed(*since, now))
    }

    /// How long it is until the next lease is over if nobody renews it. `None`: those that are not over yet are none.
    pub fn next_in(&self, now: Instant) -> Option<Duration> {
        let seen = self.seen();
        let ends = seen.leases.values().map(|(_, since)| *since + self.term);
        ends.filter(|end| *end > now).min().map(|end| end - now)
    }

    fn has_passed(&self, since: Instant, now: Instant) -> bool {
        now >= since + self.term
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Replaced as a whole.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: Duration = Duration::from_secs(90);
    const SECOND: Duration = Duration::from_secs(1);

    fn lease(row: i64, epoch: i64, expires_ms: i64) -> SeenLease {
        SeenLease {
            row,
            epoch,
            expires_ms: Some(expires_ms),
        }
    }

    #[tokio::test]
    async fn a_lease_is_over_when_nobody_renewed_it_for_a_term_since_it_was_first_seen() {
        let (watch, start) = (LeaseWatch::new(TERM), Instant::now());
        // Long past by any clock of a database, and yet it may have been renewed a moment ago.
        watch.saw(vec![lease(1, 1, 5)], start);
        assert_eq!(watch.over(start + TERM - SECOND), Vec::<i64>::new());
        assert_eq!(watch.next_in(start + SECOND), Some(TERM - SECOND));
        assert_eq!(watch.over(start + TERM), [1]);
        assert!(watch.is_over(lease(1, 1, 5), start + TERM));
        assert_eq!(watch.next_in(start + TERM), None);
    }

    #[tokio::test]
    async fn a_renewal_or_a_claim_begins_the_term_anew() {
        for changed in [lease(1, 1, 6), lease(1, 2, 5), lease(1, 1, 4)] {
            let (watch, start) = (LeaseWatch::new(TERM), Instant::now());
            watch.saw(vec![lease(1, 1, 5)], start);
            // Read when the candidates were: it is not as it was seen.
            assert!(!watch.is_over(changed, start + TERM));
            watch.saw(vec![changed], start + TERM - SECOND);
            assert_eq!(watch.over(start + TERM), Vec::<i64>::new());
            assert_eq!(watch.over(start + TERM - SECOND + TERM), [1]);
        }
    }

    #[tokio::test]
    async fn no_look_is_needed_while_the_term_passes() {
        let (watch, start) = (LeaseWatch::new(TERM), Instant::now());
        watch.saw(vec![lease(1, 1, 5)], start);
        watch.saw(vec![lease(1, 1, 5)], start + 10 * TERM);
        assert_eq!(watch.over(start + 10 * TERM), [1]);
    }

    #[tokio::test]
    async fn an_ended_lease_is_forgotten_and_an_unseen_one_is_not_over() {
        let (watch, start) = (LeaseWatch::new(TERM), Instant::now());
        watch.saw(vec![lease(1, 1, 5), lease(2, 1, 5)], start);
        watch.saw(vec![lease(2, 1, 5)], start + SECOND);
        assert_eq!(watch.over(start + TERM), [2]);
        assert!(!watch.is_over(lease(1, 1, 5), start + TERM));
        assert!(!watch.is_over(lease(3, 1, 5), start + TERM));
    }

    #[tokio::test]
    async fn looks_are_a_second_apart_or_a_sixth_of_a_short_term() {
        let (watch, start) = (LeaseWatch::new(TERM), Instant::now());
        assert!(watch.is_due(start));
        watch.saw(Vec::new(), start);
        assert!(!watch.is_due(start + SECOND / 2));
        assert!(watch.is_due(start + SECOND));
        let short = LeaseWatch::new(3 * SECOND);
        short.saw(Vec::new(), start);
        assert!(short.is_due(start + SECOND / 2));
    }
}
