//! What a driver's program writes: results are kept, standard error is logged, and secrets are masked in both.

use magnum_common::ids::ClusterUuid;
use magnum_driver_api::{DriverError, Progress, ProgressSink};

use super::outcome::quote;
use super::process::{Listener, MAX_LOGGED};
use super::protocol::{FromResult, OutputLine};

/// What a program has written so far.
pub(super) struct Transcript<'a, T> {
    progress: &'a dyn ProgressSink,
    secrets: Vec<String>,
    /// Its one result or error.
    pub(super) outcome: Option<Result<T, DriverError>>,
    /// Its answers to a look, by cluster.
    pub(super) seen: Vec<(ClusterUuid, Result<T, DriverError>)>,
    /// Its last line on standard error.
    pub(super) last_stderr_line: Option<String>,
    stderr_lines: usize,
}

impl<'a, T> Transcript<'a, T> {
    /// Nothing yet; `secrets` are masked of everything that will be.
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
            last_stderr_line: None,
            stderr_lines: 0,
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

impl<T: FromResult> Listener for Transcript<'_, T> {
    fn answer(&mut self, line: &str) -> Result<(), String> {
        let line = self.clean(line);
        if line.trim().is_empty() {
            return Ok(());
        }
        match OutputLine::read(&line).map_err(|reason| format!("{} ({reason})", quote(&line)))? {
            OutputLine::Progress(Progress { text, percent }) => {
                self.progress.report(Progress { text, percent })
            }
            OutputLine::Ended(_) if self.outcome.is_some() => {
                return Err(format!("{} (a second result or error)", quote(&line)));
            }
            OutputLine::Ended(outcome) => self.outcome = Some(outcome),
            OutputLine::Observed(cluster, outcome) => self.seen.push((cluster, outcome)),
        }
        Ok(())
    }

    fn stderr_line(&mut self, line: &str) {
        let line = self.clean(line);
        if line.trim().is_empty() {
            return;
        }
        self.stderr_lines += 1;
        if self.stderr_lines <= MAX_LOGGED {
            tracing::info!("driver: {line}");
        } else if self.stderr_lines == MAX_LOGGED + 1 {
            tracing::warn!(
                "the driver's program writes more than {MAX_LOGGED} lines to standard error; the rest is left out"
            );
        }
        self.last_stderr_line = Some(line);
    }
}
