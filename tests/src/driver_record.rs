//! What the scripted driver did, as it wrote it down itself: the independent witness of effects.
//!
//! The driver (`tests/drivers/scripted`) notes the begin and the end of every call, and whether another call
//! for the same cluster was running. A call that was killed has a begin and no end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

/// A driver's record, in a folder.
#[derive(Debug, Clone)]
pub struct DriverRecord {
    folder: PathBuf,
}

/// One line of the record.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CallLine {
    /// `begin`, `end` or `overlap`.
    pub event: String,
    /// `create`, `resize`, …: the word of the protocol.
    pub call: String,
    /// The cluster's uuid.
    pub cluster: String,
    /// The operation on whose behalf.
    pub operation: String,
    /// Which attempt of the operation.
    pub attempt: u32,
    /// The user's token, if it has one.
    #[serde(default)]
    pub token: Option<String>,
    /// The trace that it was given in its environment.
    #[serde(default)]
    pub traceparent: Option<String>,
    /// The trace's state.
    #[serde(default)]
    pub tracestate: Option<String>,
    /// Nodes of all groups that were asked for.
    pub nodes: i64,
    /// The nodes that a resize was given, or that a choice of nodes has named.
    #[serde(default)]
    pub removes: Option<Vec<String>>,
    /// Outcome, at the end.
    pub outcome: Option<String>,
    /// What it says of its failure, at the end of one that failed.
    #[serde(default)]
    pub says: Option<String>,
    /// Process id of the driver.
    pub pid: u32,
    /// The conductor that called, where it was told its name.
    #[serde(default)]
    pub conductor: Option<String>,
    /// Seconds on the machine's monotonic clock.
    #[serde(default)]
    pub at: f64,
    /// Seconds since 1970.
    #[serde(default)]
    pub wall: f64,
}

impl DriverRecord {
    /// The record in `folder`.
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All lines so far.
    pub fn lines(&self) -> Result<Vec<CallLine>> {
        let Ok(text) = fs::read_to_string(self.folder.join("calls")) else {
            return Ok(Vec::new());
        };
        text.lines()
            .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
            .collect()
    }

    /// The begun calls of one kind for one cluster.
    pub fn begun(&self, call: &str, cluster: &str) -> Result<Vec<CallLine>> {
        let lines = self.lines()?.into_iter();
        Ok(lines
            .filter(|line| line.event == "begin" && line.call == call && line.cluster == cluster)
            .collect())
    }

    /// Whether the cluster's effect is there.
    pub fn is_built(&self, cluster: &str) -> bool {
        self.folder.join("built").join(cluster).exists()
    }

    /// The nodes of each cluster whose effect is there.
    pub fn built(&self) -> Result<BTreeMap<String, i64>> {
        let mut built = BTreeMap::new();
        let Ok(folder) = fs::read_dir(self.folder.join("built")) else {
            return Ok(built);
        };
        for mark in folder {
            let mark = mark?;
            let nodes = fs::read_to_string(mark.path())?;
            let cluster = mark.file_name().to_string_lossy().into_owned();
            built.insert(cluster, nodes.parse().with_context(|| nodes.clone())?);
        }
        Ok(built)
    }

    /// Lets a call with the behaviour `wait` go on.
    pub fn let_go(&self, cluster: &str) -> Result<()> {
        fs::write(self.folder.join(format!("go-{cluster}")), "").context("let the driver go on")
    }

    /// What must hold whatever died: no two calls for a cluster at a time, and an effect is repeated only on
    /// behalf of the operation that began it.
    pub fn assert_sound(&self) -> Result<()> {
        let lines = self.lines()?;
        let overlaps: Vec<_> = lines.iter().filter(|line| line.event == "overlap").collect();
        ensure!(
            overlaps.is_empty(),
            "two calls for one cluster at the same time: {overlaps:#?}"
        );
        let mut completed: BTreeMap<(&str, &str), &str> = BTreeMap::new();
        for line in &lines {
            let key = (line.cluster.as_str(), line.call.as_str());
            let is_once = matches!(line.call.as_str(), "create" | "delete");
            match completed.get(&key) {
                Some(operation) if is_once && *operation != line.operation && line.event == "begin" => {
                    anyhow::bail!(
                        "{} of {} done by {operation} and again by {}",
                        line.call,
                        line.cluster,
                        line.operation
                    )
                }
                _ => {}
            }
            if line.event == "end"
                && line
                    .outcome
                    .as_deref()
                    .is_some_and(|outcome| outcome.ends_with("_COMPLETE"))
            {
                if line.call == "delete" {
                    // What is gone may be created anew, under the same uuid.
                    completed.remove(&(line.cluster.as_str(), "create"));
                }
                completed.insert(key, &line.operation);
                if line.call == "create" {
                    completed.remove(&(line.cluster.as_str(), "delete"));
                }
            }
        }
        Ok(())
    }
}
