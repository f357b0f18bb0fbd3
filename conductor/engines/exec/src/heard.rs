//! Listening to a driver's program: what it answers is kept, what it complains about is logged, and its secrets
//! leave both.

use magnum_common::ids::ClusterUuid;
use magnum_driver_api::{DriverError, Progress, ProgressSink};

use super::outcome::quote;
use super::process::{Listener, MAX_LOGGED};
use super::protocol::{Answer, Brought};

/// What a program said so far.
pub(super) struct Heard<'a, T> {
    progress: &'a dyn ProgressSink,
    secrets: Vec<String>,
    /// Its one result or error.
    pub(super) outcome: Option<Result<T, DriverError>>,
    /// Its answers to a look, by cluster.
    pub(super) seen: Vec<(ClusterUuid, Result<T, DriverError>)>,
    /// Its last line on standard error.
    pub(super) last_complaint: Option<String>,
    complaints: usize,
}

impl<'a, T> Heard<'a, T> {
    /// Nothing yet; `secrets` are blotted out of everything that will be.
    pub(super) fn new(
        progress: &'a dyn ProgressSink,
        secrets: impl IntoIterator<Item = Option<String>>,
    ) -> Self {
        Self {
            progress,
            secrets: secrets
                .into_iter()
                .flatten()
                .filter(|secret| !secret.is_empty())
                .collect(),
            outcome: None,
            seen: Vec::new(),
            last_complaint: None,
            complaints: 0,
        }
    }

    /// The line without secrets: what a program says ends up in rows, logs and replies.
    pub(super) fn clean(&self, line: &str) -> String {
        let mut line = line.to_owned();
        for secret in &self.secrets {
            if line.contains(secret) {
                line = line.replace(secret, "***");
            }
        }
        line
    }
}

impl<T: Brought> Listener for Heard<'_, T> {
    fn answer(&mut self, line: &str) -> Result<(), String> {
        let line = self.clean(line);
        if line.trim().is_empty() {
            return Ok(());
        }
        match Answer::read(&line).map_err(|reason| format!("{} ({reason})", quote(&line)))? {
            Answer::Progress(Progress { text, percent }) => self.progress.report(Progress { text, percent }),
            Answer::Ended(_) if self.outcome.is_some() => {
                return Err(format!("{} (a second result or error)", quote(&line)));
            }
            Answer::Ended(outcome) => self.outcome = Some(outcome),
            Answer::Observed(cluster, outcome) => self.seen.push((cluster, outcome)),
        }
        Ok(())
    }

    fn complaint(&mut self, line: &str) {
        let line = self.clean(line);
        if line.trim().is_empty() {
            return;
        }
        self.complaints += 1;
        if self.complaints <= MAX_LOGGED {
            tracing::info!("driver: {line}");
        } else if self.complaints == MAX_LOGGED + 1 {
            tracing::warn!(
                "the driver's program writes more than {MAX_LOGGED} lines to standard error; the rest is left out"
            );
        }
        self.last_complaint = Some(line);
    }
}
