//! Progress of a driver: the latest words, into the journal, not too often.

use std::sync::Arc;
use std::time::Duration;

use magnum_db::Database;
use magnum_driver_api::{Progress, ProgressSink};
use tokio::sync::watch;
use tokio::time::sleep;

use super::journal::{JournalError, fenced};
use super::lease::Lease;

/// Shortest time between two writes.
const EVERY: Duration = Duration::from_secs(1);

/// Takes a driver's progress without making it wait.
#[derive(Debug)]
pub struct Reporter(watch::Sender<Option<Progress>>);

impl Reporter {
    /// Nothing reported yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Writes what is reported. Runs beside the driver's future; ends when the lease is lost.
    pub async fn write_to_journal(&self, db: &Database, lease: &Arc<Lease>) {
        let mut latest = self.0.subscribe();
        while latest.changed().await.is_ok() {
            let text = latest.borrow_and_update().as_ref().map(words);
            let Some(text) = text else { continue };
            let lease = Arc::clone(lease);
            let written = db
                .transaction(move |conn| fenced::progress(conn, &lease, &text))
                .await;
            match written {
                Ok(()) => {}
                Err(JournalError::LeaseLost) => return,
                Err(error) => tracing::debug!(%error, "progress could not be written"),
            }
            sleep(EVERY).await;
        }
    }
}

impl Default for Reporter {
    fn default() -> Self {
        Self::new()
    }
}

impl ProgressSink for Reporter {
    fn report(&self, progress: Progress) {
        self.0.send_replace(Some(progress));
    }
}

fn words(progress: &Progress) -> String {
    match progress.percent {
        Some(percent) => format!("{} ({percent}%)", progress.text),
        None => progress.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_shown_when_there_is_one() {
        let progress = |percent| Progress {
            text: "building".into(),
            percent,
        };
        assert_eq!(words(&progress(Some(40))), "building (40%)");
        assert_eq!(words(&progress(None)), "building");
    }
}
