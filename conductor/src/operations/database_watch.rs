//! How long this conductor has seen the database without a gap.
//!
//! Who judges that another conductor is gone, because its announcement is old, must itself have been there: after an
//! outage of the database everybody's announcements are old, and after a jump of its clock, too.

use std::time::Duration;

use tokio::time::Instant;

/// By how much the two clocks may run apart between two looks: a database that answers late looks like a jump.
const TOLERANCE: Duration = Duration::from_secs(5);

/// Looks at the database, compared with this process's monotonic clock.
#[derive(Debug)]
pub struct DatabaseWatch {
    /// Longest time between two looks that belong together.
    gap: Duration,
    since: Option<Instant>,
    last: Option<(Instant, i64)>,
}

impl DatabaseWatch {
    /// A watch that has seen nothing; looks that are further apart than `gap` begin anew.
    pub const fn new(gap: Duration) -> Self {
        Self {
            gap,
            since: None,
            last: None,
        }
    }

    /// The database has answered at `now`, with its time in milliseconds since 1970. Returns how long it has been seen
    /// without a gap.
    pub fn saw(&mut self, now: Instant, database_ms: i64) -> Duration {
        let goes_on = self.last.is_some_and(|(then, then_ms)| {
            let passed = now.saturating_duration_since(then);
            let told = database_ms.saturating_sub(then_ms);
            let passed_ms = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
            passed <= self.gap && i128::from(told.abs_diff(passed_ms)) <= i128::from(millis(TOLERANCE))
        });
        self.last = Some((now, database_ms));
        let since = match self.since {
            Some(since) if goes_on => since,
            _ => now,
        };
        self.since = Some(since);
        now.saturating_duration_since(since)
    }

    /// How long it was seen without a gap by the last look; nothing when that failed.
    pub fn seen_for(&self) -> Duration {
        match (self.since, self.last) {
            (Some(since), Some((last, _))) => last.saturating_duration_since(since),
            _ => Duration::ZERO,
        }
    }

    /// The database did not answer.
    pub const fn missed(&mut self) {
        self.last = None;
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Looks at these seconds by our clock, with the database's clock ahead by so many: how long it is seen at the last.
    fn seen(looks: &[Option<(u64, i64)>]) -> u64 {
        let start = Instant::now();
        let mut watch = DatabaseWatch::new(seconds(60));
        let mut lasted = Duration::ZERO;
        for look in looks {
            match look {
                Some((at, ahead)) => {
                    let at_ms = i64::try_from(*at * 1000).unwrap();
                    lasted = watch.saw(start + seconds(*at), at_ms + ahead * 1000);
                }
                None => watch.missed(),
            }
        }
        lasted.as_secs()
    }

    #[test]
    fn the_database_is_seen_from_the_first_look_of_a_row() {
        assert_eq!(seen(&[Some((0, 0))]), 0);
        assert_eq!(seen(&[Some((0, 0)), Some((50, 0)), Some((100, 3))]), 100);
    }

    #[test]
    fn an_outage_a_pause_and_a_jump_of_the_clock_begin_anew() {
        assert_eq!(
            seen(&[Some((0, 0)), Some((50, 0)), None, Some((60, 0)), Some((80, 0))]),
            20
        );
        assert_eq!(
            seen(&[Some((0, 0)), Some((50, 0)), Some((111, 0)), Some((120, 0))]),
            9
        );
        for jump in [10, -10, 100_000] {
            assert_eq!(
                seen(&[Some((0, 0)), Some((50, jump)), Some((80, jump))]),
                30,
                "{jump}"
            );
        }
    }
}
