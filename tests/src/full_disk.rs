//! A disk that is full on command, for chosen programs and files.
//!
//! Small file systems need privileges that a test machine may not give. Instead a shim, compiled on the spot
//! with the C compiler that Rust needs anyway, lets writes to the named files fail with ENOSPC while a flag file
//! exists. It sees programs that write through libc, as SQLite does.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::process::Launch;
use crate::run_dir::run_dir;
use crate::shim;

/// A disk of limited size, so to speak.
#[derive(Debug)]
pub struct FullDisk {
    shim: PathBuf,
    flag: PathBuf,
    name: String,
}

impl FullDisk {
    /// Concerns files whose path contains `name`. There is room at first.
    pub fn new(name: &str) -> Result<Self> {
        let folder = run_dir()?.folder("full-disk")?;
        let shim = shim::compile(&folder, "full_disk", include_str!("full_disk.c"))?;
        Ok(Self {
            shim,
            flag: folder.join("is-full"),
            name: name.to_owned(),
        })
    }

    /// Puts a program on this disk.
    pub fn hold(&self, launch: Launch) -> Launch {
        launch
            .preload(&self.shim)
            .env("MAGNUM_TEST_FULL_FLAG", &self.flag)
            .env("MAGNUM_TEST_FULL_NAME", &self.name)
    }

    /// No room from now on.
    pub fn fill(&self) -> Result<()> {
        fs::write(&self.flag, "").context("fill the disk")
    }

    /// Room again.
    pub fn free(&self) -> Result<()> {
        fs::remove_file(&self.flag).context("free the disk")
    }
}
