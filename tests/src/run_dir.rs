//! Where one run of the test binary keeps its servers' data, its logs and its pid files.
//!
//! `tests/.run/run-<pid>-<random>/` in the checkout. A guard, a small shell process, holds the reading end
//! of a pipe whose writing end is ours: when this process ends, by return, panic, signal or `kill -9`, the
//! pipe closes and the guard stops every server of the run and removes the folder. If the guard was killed
//! too, the next run sweeps ([`crate::sweep`]). `MAGNUM_TESTS_KEEP=1` keeps the folder for a look at the logs.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context as _, Result, anyhow};

use crate::sweep;

/// The folder of this run, made at the first call.
pub fn run_dir() -> Result<&'static RunDir> {
    static RUN: OnceLock<std::result::Result<RunDir, String>> = OnceLock::new();
    RUN.get_or_init(|| RunDir::create().map_err(|error| format!("{error:#}")))
        .as_ref()
        .map_err(|error| anyhow!("{error}"))
}

/// One run's folder and the guard that removes it.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    next: AtomicU32,
    /// Its standard input is the pipe; never written to, never closed before the process ends.
    _guard: Child,
}

impl RunDir {
    fn create() -> Result<Self> {
        let base = base();
        fs::create_dir_all(&base).with_context(|| format!("create {}", base.display()))?;
        sweep::sweep(&base)?;

        let name = format!("run-{}-{:04x}", std::process::id(), rand::random::<u16>());
        // Built under another name and renamed when the owner is known: a sweep never sees a run without one.
        let draft = base.join(format!(".new-{name}"));
        fs::create_dir_all(draft.join("pids"))?;
        fs::create_dir_all(draft.join("logs"))?;
        let me = std::process::id();
        let started = sweep::start_time(me).context("read own start time from /proc")?;
        fs::write(draft.join("owner"), format!("{me} {started}\n"))?;
        let path = base.join(&name);
        fs::rename(&draft, &path)?;

        let guard = guard(&path)?;
        Ok(Self {
            path,
            next: AtomicU32::new(1),
            _guard: guard,
        })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A new empty folder `<topic>-<n>`.
    pub fn folder(&self, topic: &str) -> Result<PathBuf> {
        let folder = self.path.join(self.unique(topic));
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(folder)
    }

    /// A new folder that another user may enter even if the checkout is private to its owner, such as
    /// `/root`. It lies beside the temporary files of the system and is removed with the run.
    pub fn outside_folder(&self, topic: &str) -> Result<PathBuf> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("magnum-tests-{topic}-"))
            .tempdir()?
            .keep();
        let mut list = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path.join("folders"))?;
        writeln!(list, "{}", folder.display())?;
        Ok(folder)
    }

    /// Where a process called `name` logs.
    pub fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }

    /// A name no other part of this run has.
    pub fn unique(&self, topic: &str) -> String {
        format!("{topic}-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Starts the guard of the run in `path`: it works when its standard input, the pipe, is closed.
pub fn guard(path: &Path) -> Result<Child> {
    Command::new("sh")
        .args(["-c", include_str!("guard.sh"), "magnum-tests-guard"])
        .arg(path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0) // Ctrl-C at the terminal must not end the guard before it has done its work.
        .spawn()
        .context("start the guard (sh)")
}

/// `tests/.run` of this checkout.
pub fn base() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".run")
}
