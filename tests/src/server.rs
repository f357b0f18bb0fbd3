//! One server process: started in its own process group, known to the guard by a pid file, logging to a
//! file whose end is shown when it does not come up.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::run_dir::run_dir;
use crate::{sweep, wait};

/// A running (or ended) server. Dropping it does not stop it: that is the guard's work, or [`Self::stop`]'s.
#[derive(Debug)]
pub struct ServerProcess {
    name: String,
    child: Child,
    log: PathBuf,
    pid_file: PathBuf,
    stop_with: Signal,
}

impl ServerProcess {
    /// Starts `command`. `stop_with` is the signal that makes this kind of server end in order.
    pub fn spawn(name: &str, mut command: Command, stop_with: Signal) -> Result<Self> {
        let run = run_dir()?;
        let log = run.log(name);
        let output = File::options()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("open {}", log.display()))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| {
                format!("start {name}: {command:?} (tests/run --check says what is not installed)")
            })?;
        let pid_file = register(child.id(), stop_with, name)?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
            pid_file,
            stop_with,
        })
    }

    /// The process id, which is also the id of its process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs; an error with the end of its log when it does not.
    pub fn assert_running(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!(
                "{} ended with {status}; its log ends:\n{}",
                self.name,
                self.log_tail()
            ),
        }
    }

    /// Waits until `ready` succeeds; gives up when the process ends or the time is over.
    pub async fn wait_ready(
        &mut self,
        within: Duration,
        mut ready: impl AsyncFnMut() -> Result<()>,
    ) -> Result<()> {
        let deadline = tokio::time::Instant::now() + within;
        loop {
            self.assert_running()?;
            match ready().await {
                Ok(()) => return Ok(()),
                Err(error) if tokio::time::Instant::now() >= deadline => {
                    bail!(
                        "{} not ready after {within:?}: {error:#}; its log ends:\n{}",
                        self.name,
                        self.log_tail()
                    )
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    /// Ends it in order; `kill -9` when it takes longer than `within`.
    pub async fn stop(self, within: Duration) -> Result<ExitStatus> {
        let signal = self.stop_with;
        self.end(signal, within).await
    }

    /// `kill -9` of the whole process group.
    pub async fn kill(self) -> Result<ExitStatus> {
        self.end(Signal::SIGKILL, Duration::from_secs(10)).await
    }

    /// `kill -9` of the whole process group, without waiting for anything else: for what ends with its owner.
    pub fn kill_now(&mut self) {
        signal_group(self.child.id(), Signal::SIGKILL);
        self.child.wait().ok();
        fs::remove_file(&self.pid_file).ok();
    }

    async fn end(mut self, signal: Signal, within: Duration) -> Result<ExitStatus> {
        signal_group(self.child.id(), signal);
        let name = self.name.clone();
        let ended = wait::until(&format!("{name} to end"), within, async || {
            self.child.try_wait()?.context("it still runs")
        })
        .await;
        if ended.is_err() {
            signal_group(self.child.id(), Signal::SIGKILL);
        }
        let status = match ended {
            Ok(status) => status,
            Err(_) => {
                wait::until(&format!("{name} to die"), Duration::from_secs(10), async || {
                    self.child.try_wait()?.context("it still runs")
                })
                .await?
            }
        };
        // Stray members of the group, such as port programs, must not outlive their leader.
        signal_group(self.child.id(), Signal::SIGKILL);
        fs::remove_file(&self.pid_file).ok();
        Ok(status)
    }

    fn log_tail(&self) -> String {
        tail(&self.log)
    }
}

/// Writes the pid file by which guard and sweep know a process. Returns its path.
pub fn register(pid: u32, stop_with: Signal, name: &str) -> Result<PathBuf> {
    let run = run_dir()?;
    // A process that ended at once has no start time any more; zero never equals a later one.
    let started = sweep::start_time(pid).unwrap_or(0);
    let file = run.path().join("pids").join(run.unique(name));
    fs::write(&file, format!("{pid} {started} {} {name}\n", stop_with as i32))
        .with_context(|| format!("write {}", file.display()))?;
    Ok(file)
}

/// Signals a process group; one that is gone already is no error.
pub fn signal_group(pid: u32, signal: Signal) {
    if let Ok(group) = i32::try_from(pid) {
        let _gone = killpg(Pid::from_raw(group), signal);
    }
}

/// The last lines of a log, for error messages.
pub fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
