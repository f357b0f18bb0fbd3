//! Waiting for a condition of another process.
//!
//! Between processes there is no barrier to wait on, so the condition itself is asked again and again; the
//! deadline only decides when to give up, never when to go on.

use std::fmt::Display;
use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;

/// How often a condition is asked at first.
const PERIOD: Duration = Duration::from_millis(50);
/// How seldom one is asked that takes long to ask, or to come true.
const LONGEST_PERIOD: Duration = Duration::from_millis(500);

/// How long the next question waits, after one that took `took`, and `waited` since the first. A condition for which a program is
/// started would otherwise take more of the processors than what is waited for; and what has not come in ten seconds need not be
/// noticed within a twentieth of one.
fn pause(took: Duration, waited: Duration) -> Duration {
    (took * 4).max(waited / 20).clamp(PERIOD, LONGEST_PERIOD)
}

/// Asks `condition` until it gives a value; an error says what was awaited and what the last answer was.
///
/// `condition` returns `Ok(value)` when true and `Err(what it saw)` when not yet.
pub async fn until<T, E: Display>(
    what: &str,
    within: Duration,
    mut condition: impl AsyncFnMut() -> Result<T, E>,
) -> anyhow::Result<T> {
    let begun = Instant::now();
    let deadline = begun + within;
    loop {
        let asked = Instant::now();
        match condition().await {
            Ok(value) => return Ok(value),
            Err(seen) if Instant::now() >= deadline => {
                bail!("waited {within:?} for {what}; last seen: {seen:#}")
            }
            Err(_) => tokio::time::sleep(pause(asked.elapsed(), begun.elapsed())).await,
        }
    }
}
