//! What a driver's program writes: results are kept, standard error is logged, and secrets are masked in both.

use magnum_common::ids::ClusterUuid;
use magnum_driver_api::{DriverError, Progress, ProgressSink};
use magnum_engine_process::{Level, Listener, Secrets, StderrLog};

use super::outcome::quote;
use super::protocol::{FromResult, OutputLine};

/// What a program has written so far.
pub(super) struct Transcript<'a, T> {
    progress: &'a dyn ProgressSink,
    /// Its one result or error.
    pub(super) outcome: Option<Result<T, DriverError>>,
    /// Its answers to a look, by cluster.
    pub(super) seen: Vec<(ClusterUuid, Result<T, DriverError>)>,
    /// Its standard error, with the secrets that are masked in both.
    pub(super) stderr: StderrLog,
}

impl<'a, T> Transcript<'a, T> {
    /// Nothing yet; `secrets` are masked of everything that will be.
    pub(super) fn new(progress: &'a dyn ProgressSink, secrets: Secrets) -> Self {
        Self {
            progress,
            outcome: None,
            seen: Vec::new(),
            stderr: StderrLog::new(secrets),
        }
    }
}

impl<T: FromResult> Listener for Transcript<'_, T> {
    fn answer(&mut self, line: &str) -> Result<(), String> {
        let line = self.stderr.secrets().mask(line);
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
        self.stderr.record(Level::Info, line);
    }
}
