//! A limit of processes that is reached on command, for chosen programs.
//!
//! The kernel's own limit counts all processes of a user and does not bind root, as whom the tests may run. A shim lets the
//! program's attempts to start one fail as that limit does. Threads are not limited.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::process::Launch;
use crate::run_dir::run_dir;
use crate::shim;

/// A host without room for processes, so to speak.
#[derive(Debug)]
pub struct NoProcesses {
    shim: PathBuf,
    flag: PathBuf,
}

impl NoProcesses {
    /// There is room at first.
    ///
    /// # Errors
    /// There is no C compiler.
    pub fn new() -> Result<Self> {
        let folder = run_dir()?.folder("no-processes")?;
        Ok(Self {
            shim: shim::compile(&folder, "no_processes", include_str!("no_processes.c"))?,
            flag: folder.join("flag"),
        })
    }

    /// Puts a program on this host.
    pub fn hold(&self, launch: Launch) -> Launch {
        launch
            .preload(&self.shim)
            .env("MAGNUM_TEST_NO_PROCESSES_FLAG", &self.flag)
    }

    /// No room from now on.
    pub fn fill(&self) -> Result<()> {
        fs::write(&self.flag, "").context("fill the host")
    }

    /// Room again.
    pub fn free(&self) -> Result<()> {
        fs::remove_file(&self.flag).context("free the host")
    }

    /// How many processes were refused so far.
    pub fn refused(&self) -> u64 {
        let noted = self.flag.with_extension("refused");
        fs::metadata(noted).map_or(0, |data| data.len())
    }
}
