//! The wall clock of one host, which can be set while its programs run.
//!
//! A shim shows programs another time than the kernel's. Monotonic clocks go on as they are, as on a host whose clock an
//! administrator or a time server has set. Programs that a program starts with an environment of its own have the machine's clock.
//! (libfaketime does not step back by its file, and lets sleeps fail.)

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::process::Launch;
use crate::shim;

/// The variable that names the file with the offset.
const FILE: &str = "MAGNUM_TEST_CLOCK";

/// A host's clock.
#[derive(Debug, Clone)]
pub struct FakeClock {
    library: PathBuf,
    file: PathBuf,
}

impl FakeClock {
    /// One that is right, and is kept in this folder, which whoever reads the clock may enter.
    ///
    /// # Errors
    /// There is no C compiler.
    pub fn new(folder: &Path) -> Result<Self> {
        let library = shim::compile(folder, "fake_clock", include_str!("fake_clock.c"))?;
        let file = folder.join("offset");
        fs::write(&file, 0_i64.to_ne_bytes())?;
        Ok(Self { library, file })
    }

    /// Steps to so many milliseconds before (negative) or after the machine's time. Programs see it at once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn set(&self, offset_ms: i64) -> Result<()> {
        // In place: programs have mapped it.
        let file = fs::OpenOptions::new().write(true).open(&self.file)?;
        file.write_all_at(&offset_ms.to_ne_bytes(), 0)
            .with_context(|| self.file.display().to_string())
    }

    /// Puts a program on this host.
    pub fn hold(&self, launch: Launch) -> Launch {
        launch.preload(&self.library).env(FILE, &self.file)
    }

    /// The same for a server, by way of `env`, for servers that change their user first.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("env");
        command
            .arg(format!("LD_PRELOAD={}", self.library.display()))
            .arg(format!("{FILE}={}", self.file.display()))
            .arg(program);
        command
    }
}
