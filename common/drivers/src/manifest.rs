//! `driver.toml`: what a driver says about itself.
//!
//! ```toml
//! [driver]
//! name = "disk"            # a-z, 0-9, _ and -
//! version = "1.0.0"        # semver
//! engine = "exec"          # exec | heat | cluster-api | python
//! beta = false
//! description = "Builds clusters as folders"
//! [[provides]]             # one or more
//! server_type = "vm"       # vm | bm
//! os = "ubuntu"
//! coe = "kubernetes"
//! [capabilities]           # all false unless said
//! upgrade = true
//! [masters]
//! sizes = "odd"            # odd | any
//! [exec]                   # settings of the engine, under its name
//! program = "driver.py"    # relative to the folder
//! timeout = 3600           # seconds per call
//! observe_timeout = 60
//! observe_batch = 500      # for a driver that asks its cloud about many clusters at once
//! env = ["PATH"]           # names of variables passed through
//! ca_files = true          # the program gets the cluster's CA and a client certificate as private files
//! run_as = "magnum-disk"   # the user that the program runs as; unsaid: the conductor's
//! health = "program"       # program | kubernetes: who tells how healthy the clusters are
//! [python]                 # of a driver that is a Python package, in place of [exec]
//! interpreter = "/opt/magnum/bin/python"  # of the environment that the package is installed in
//! entry_point = "k8s_v1"   # its name in the group magnum.drivers; unsaid: the driver's name
//! timeout = 3600           # seconds per call
//! observe_timeout = 60     # seconds per look at one cluster, and in which those of a batch begin
//! observe_batch = 50       # clusters that one process looks at
//! memory_mib = 4096        # address space of a process; unsaid: no limit
//! open_files = 1024        # open files of a process
//! [[api]]                  # routes of the driver's own API, if it has one
//! path = "disk/usage"
//! methods = ["GET"]        # GET | POST | PUT | PATCH | DELETE
//! policy = "cluster:get"   # the policy rule that decides; unsaid: cluster:driver_api
//! read_only = true         # whether it leaves everything as it is
//! [settings]               # free values, handed to the driver with every call
//! root = "/srv/clusters"
//! ```
//!
//! All mistakes of a file are told at once, each with its line: an author should not have to find them one by
//! one. Unknown keys are mistakes, since a misspelt capability would otherwise silently be false.

mod api;
mod exec;
mod fields;
mod python;
mod reader;
mod time_limits;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::info::DriverInfo;

/// The file's name.
pub const MANIFEST_FILE: &str = "driver.toml";

/// A driver's manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// What everybody needs to know of it.
    pub info: DriverInfo,
    /// For a person.
    pub description: Option<String>,
    /// What runs it.
    pub engine: EngineSpec,
    /// Free values that the driver gets with every call; a date is text.
    pub settings: Map<String, Value>,
}

/// What runs a driver, with the settings in the section of that name.
#[derive(Debug, Clone, PartialEq)]
pub enum EngineSpec {
    /// A program in the folder.
    Exec(ExecSpec),
    /// Heat templates. The engine checks the settings.
    Heat(toml::Table),
    /// Cluster API. The engine checks the settings.
    ClusterApi(toml::Table),
    /// A Python package with an entry point in the group `magnum.drivers`.
    Python(PythonSpec),
}

impl EngineSpec {
    /// The names of the engines.
    pub const NAMES: &[&str] = &["exec", "heat", "cluster-api", "python"];

    /// The engine's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::Heat(_) => "heat",
            Self::ClusterApi(_) => "cluster-api",
            Self::Python(_) => "python",
        }
    }
}

/// Settings of the engine `exec`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecSpec {
    /// The program, relative to the driver's folder.
    pub program: String,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long one look at clusters in progress may take.
    pub observe_timeout: Duration,
    /// Most clusters in one look, by a driver that wants them together; unsaid, they are spread over many looks.
    pub observe_batch: Option<usize>,
    /// The variables of the conductor's environment that the program gets; no others.
    pub env: Vec<String>,
    /// Whether the program gets the cluster's CA material, as private files.
    pub ca_files: bool,
    /// The user that the program runs as, if it is not the conductor's.
    pub run_as: Option<String>,
    /// Who tells how healthy the clusters are, for a driver with the capability `health`.
    pub health: HealthSource,
}

/// Settings of the engine `python`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonSpec {
    /// The interpreter of the environment that the package is installed in.
    pub interpreter: PathBuf,
    /// The name of the entry point; the driver's, unless said.
    pub entry_point: String,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long a look at one cluster may take.
    pub observe_timeout: Duration,
    /// Most clusters that one process looks at, one after the other.
    pub observe_batch: usize,
    /// Most address space of a process, in MiB.
    pub memory_mib: Option<u64>,
    /// Most open files of a process.
    pub open_files: u64,
    /// Whether its clusters have a user and a trust in Keystone.
    pub trusts: bool,
}

/// Who tells how healthy a driver's clusters are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HealthSource {
    /// The driver's program, by its call `health`.
    #[default]
    Program,
    /// The clusters' own Kubernetes API servers, which the conductor asks as their administrator.
    Kubernetes,
}

impl HealthSource {
    /// All of them, by their words in a manifest.
    pub const ALL: &[(&str, Self)] = &[("program", Self::Program), ("kubernetes", Self::Kubernetes)];
}

/// One mistake in a driver's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The line in the manifest, counted from 1; `None` when it is about the file or the folder as a whole.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Problem {
    /// A mistake that no line is to blame for.
    pub fn of_folder(message: impl Into<String>) -> Self {
        Self {
            line: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{MANIFEST_FILE}:{line}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// What could be read of a manifest, and every mistake in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The manifest, when there is no mistake.
    pub manifest: Option<Manifest>,
    /// The name, when at least that is right: for reports.
    pub name: Option<String>,
    /// The version, likewise.
    pub version: Option<String>,
    /// Where the program's name stands, for what only a look into the folder can tell.
    pub(super) program: Option<(usize, String)>,
    /// The mistakes, by line.
    pub problems: Vec<Problem>,
}

impl Manifest {
    /// Whether a driver can have that name.
    pub fn is_name(text: &str) -> bool {
        fields::is_name(text)
    }

    /// Reads the text of a `driver.toml`. Does not look at the folder; [`super::load`] does.
    ///
    /// # Errors
    /// Every mistake, by line.
    pub fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let reading = read(text);
        reading.manifest.ok_or(reading.problems)
    }
}

/// Reads as much as can be read.
pub(super) fn read(text: &str) -> Reading {
    fields::read(text)
}
