//! What a run says: how much was asked and done, which faults came and were felt, what was lost and what was wrong.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::faults::Effect;
use super::kind::Kind;
use super::run::{Settings, Struck, without_effect};
use crate::checker::history::Heard;
use crate::checker::{History, Rule, Verdict, waiting};
use crate::files::copy_folder;
use crate::run_dir::{base, run_dir};

/// One run.
pub struct Report {
    settings: Settings,
    struck: Vec<Struck>,
    history: History,
    verdicts: Vec<Verdict>,
    settled: Result<Duration>,
}

impl Report {
    pub(super) fn new(
        settings: Settings,
        struck: Vec<Struck>,
        history: History,
        verdicts: Vec<Verdict>,
        settled: Result<Duration>,
    ) -> Self {
        Self {
            settings,
            struck,
            history,
            verdicts,
            settled,
        }
    }

    /// Whether nothing was lost or wrong, and the faults were felt.
    pub fn is_good(&self) -> bool {
        self.verdicts.is_empty() && self.settled.is_ok() && without_effect(&self.struck).is_empty()
    }

    /// Promises that are not exactly one operation.
    pub fn lost(&self) -> usize {
        self.count(|rule| rule == Rule::Accepted)
    }

    /// Everything else that was promised and not kept.
    pub fn wrong(&self) -> usize {
        self.count(|rule| rule != Rule::Accepted)
    }

    fn count(&self, is_meant: impl Fn(Rule) -> bool) -> usize {
        self.verdicts
            .iter()
            .filter(|verdict| is_meant(verdict.rule))
            .count()
    }

    /// Copies logs, configuration and the driver's record of a run to where they outlive it.
    pub(super) fn keep(&self, deployment: &Path) -> Result<()> {
        let place = self.place();
        if place.exists() {
            std::fs::remove_dir_all(&place)?;
        }
        copy_folder(&run_dir()?.path().join("logs"), &place.join("logs"))?;
        copy_folder(deployment, &place.join("deployment"))?;
        let mut faults = String::new();
        for one in &self.struck {
            writeln!(
                faults,
                "{}..{} {:?} {:?}",
                one.began, one.ended, one.fault, one.effect
            )?;
        }
        std::fs::write(place.join("faults"), faults)?;
        std::fs::write(place.join("history"), format!("{:#?}", self.history))?;
        std::fs::write(place.join("report"), self.to_string()).context("write the report")
    }

    fn place(&self) -> PathBuf {
        base().join(format!(
            "nemesis-{}-{}",
            self.settings.backend.name(),
            self.settings.seed
        ))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { backend, seed, span } = self.settings;
        let history = &self.history;
        writeln!(f, "{backend:?}, seed {seed}, {} s", span.as_secs())?;
        writeln!(
            f,
            "again: MAGNUM_TESTS_NEMESIS_ON={} tests/run --nemesis {:.2} --seed {seed}",
            backend.name(),
            span.as_secs_f64() / 60.0
        )?;
        let promised = history.told.iter().filter(|told| told.heard.is_promise()).count();
        let nothing = history
            .told
            .iter()
            .filter(|told| told.heard == Heard::Nothing)
            .count();
        writeln!(
            f,
            "requests: {}, of which {promised} were promised and {nothing} not answered",
            history.told.len()
        )?;
        let mut states: BTreeMap<&str, usize> = BTreeMap::new();
        for operation in &history.operations {
            *states.entry(&operation.state).or_default() += 1;
        }
        writeln!(
            f,
            "operations: {} {states:?}, calls of drivers: {}, dead letters: {}",
            history.operations.len(),
            history.calls.len(),
            history.dead_letters.len()
        )?;
        let longest = waiting::longest(history).into_values().max().unwrap_or_default();
        writeln!(f, "longest wait for a driver: {longest} ms")?;
        match &self.settled {
            Ok(after) => writeln!(f, "settled {} s after the last fault", after.as_secs())?,
            Err(error) => writeln!(f, "DID NOT SETTLE: {error:#}")?,
        }
        writeln!(f, "faults: {}", self.struck.len())?;
        for kind in Kind::ALL {
            let of_kind: Vec<_> = self.struck.iter().filter(|one| one.fault.kind == kind).collect();
            let felt: Vec<_> = of_kind
                .iter()
                .filter_map(|one| match &one.effect {
                    Effect::Seen(what) => Some(what),
                    Effect::None(_) => None,
                })
                .collect();
            if let (Some(first), last) = (of_kind.first(), felt.last()) {
                let shown = match (&first.effect, last) {
                    (_, Some(what)) => what,
                    (Effect::Seen(what) | Effect::None(what), None) => what,
                };
                writeln!(f, "  {kind:?}: {}, felt {} ({shown})", of_kind.len(), felt.len())?;
            }
        }
        for kind in without_effect(&self.struck) {
            writeln!(f, "{kind:?} WAS NEVER FELT")?;
        }
        writeln!(f, "lost: {}, wrong: {}", self.lost(), self.wrong())?;
        for verdict in &self.verdicts {
            writeln!(f, "{verdict}")?;
        }
        if !self.is_good() {
            writeln!(
                f,
                "logs, configuration, faults and history: {}",
                self.place().display()
            )?;
        }
        Ok(())
    }
}
