//! A zygote: the process of a Python environment that has imported its drivers and forks a worker for each connection.
//!
//! It is killed when this is dropped, ready or not. The kernel kills it when the thread that waits for it ends, which only
//! happens with this whole process. Calls that run at its end are not disturbed.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use magnum_drivers::PythonSpec;
use magnum_engine_process::{Level, Lines, MAX_ERROR_LINE, StderrLog};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;
use tracing::Instrument as _;

use super::messages::{PROTOCOL, Ready};
use super::runtime::RuntimeFolder;

/// Bytes of the line that a zygote writes when it is ready.
const LONGEST_READY: usize = 1 << 20;

/// What a zygote is started with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The interpreter, and what a call may use.
    pub spec: PythonSpec,
    /// The entry points to be imported.
    pub drivers: Vec<String>,
    /// The files of `magnum.conf`.
    pub config: Vec<PathBuf>,
    /// Where its folder is to be.
    pub runtime_directory: PathBuf,
    /// How long the imports may take.
    pub start_timeout: Duration,
    /// How long a guard waits for a sign of this process.
    pub silence: Duration,
}

/// A zygote that is ready.
pub struct Zygote {
    /// What it said of itself.
    pub about: Ready,
    folder: RuntimeFolder,
    process: Process,
}

/// A process that is killed when this is dropped.
struct Process {
    handle: OwnedFd,
    ended: watch::Receiver<Option<ExitStatus>>,
    /// A zygote that serves ends with it.
    _stdin: ChildStdin,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Names this very process, whoever has its number by now. An error means that it has ended.
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }
}

impl Zygote {
    /// Starts one, and waits until it is ready.
    ///
    /// # Errors
    /// In words for a person: the interpreter cannot be started, ends, or takes too long.
    pub async fn start(settings: &Settings) -> Result<Self, String> {
        let interpreter = settings.spec.interpreter.display().to_string();
        let root = settings.runtime_directory.clone();
        let made = tokio::task::spawn_blocking(move || RuntimeFolder::create(&root)).await;
        let folder = made
            .map_err(io::Error::other)
            .and_then(|folder| folder)
            .map_err(|error| {
                let root = settings.runtime_directory.display();
                format!("cannot make a folder below [python] runtime_directory {root}: {error}")
            })?;
        let started = spawn(command(settings, &folder)).await;
        let Started {
            mut process,
            stdout,
            stderr,
        } = started.map_err(|error| format!("cannot start {interpreter}: {error}"))?;
        let last_line = log_stderr(stderr, &interpreter);
        let mut lines = Lines::new(Receiver::from_owned_fd(stdout).ok(), LONGEST_READY, LONGEST_READY);
        let line = match timeout(settings.start_timeout, lines.next()).await {
            Ok(Ok(Some(line))) => line,
            Ok(_) => {
                // The pipe closes a moment before the process has ended.
                let status = process
                    .ended
                    .wait_for(Option::is_some)
                    .await
                    .ok()
                    .and_then(|status| *status);
                let why = last_line.borrow().clone().unwrap_or_default();
                let status = status.map_or_else(String::new, |status| format!(" ({status})"));
                return Err(format!("{interpreter} ended before it was ready{status}: {why}"));
            }
            Err(_) => {
                let limit = settings.start_timeout;
                return Err(format!(
                    "{interpreter} was not ready within [python] start_timeout ({limit:?}): an import may never end"
                ));
            }
        };
        let about: Ready = serde_json::from_str(&line)
            .map_err(|error| format!("{interpreter} wrote no message of the plug-in host: {error}"))?;
        if about.protocol != PROTOCOL {
            return Err(format!(
                "{interpreter} runs a plug-in host of protocol {}",
                about.protocol
            ));
        }
        Ok(Self {
            about,
            folder,
            process,
        })
    }

    /// Where it listens.
    pub fn socket(&self) -> PathBuf {
        self.folder.socket()
    }

    /// Whether it forks no more.
    pub fn has_ended(&self) -> bool {
        self.process.ended.borrow().is_some()
    }
}

fn command(settings: &Settings, folder: &RuntimeFolder) -> Command {
    let spec = &settings.spec;
    let mut command = Command::new(&spec.interpreter);
    // Nothing is written into the environment.
    command.arg("-B").arg(folder.host());
    command.arg("--listen").arg(folder.socket());
    command.arg("--temporary-folder").arg(folder.temporary());
    let mut number = |option: &str, value: u64| {
        command.arg(option).arg(value.to_string());
    };
    number("--parent", u64::from(std::process::id()));
    number(
        "--silence-ms",
        u64::try_from(settings.silence.as_millis()).unwrap_or(u64::MAX),
    );
    number("--memory-mib", spec.memory_mib.unwrap_or(0));
    number("--open-files", spec.open_files);
    for driver in &settings.drivers {
        command.arg("--driver").arg(driver);
    }
    command.arg("--").args(config_arguments(&settings.config));
    command
        // magnum-cluster-api wraps its Rust objects in eventlet's thread pool: with none, calls go straight through.
        .env("EVENTLET_THREADPOOL_SIZE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

fn config_arguments(files: &[PathBuf]) -> Vec<OsString> {
    let file = |path: &PathBuf| [OsString::from("--config-file"), path.into()];
    files.iter().flat_map(file).collect()
}

struct Started {
    process: Process,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Starts a process from a thread that lives as long as it does: the kernel kills the process when the thread ends.
async fn spawn(mut command: Command) -> io::Result<Started> {
    let (tell, told) = oneshot::channel();
    std::thread::Builder::new()
        .name("plug-in host".to_owned())
        .spawn(move || {
            let (status, ended) = watch::channel(None);
            let (mut child, started) = match command.spawn().and_then(|child| pipes(child, ended)) {
                Ok(started) => started,
                Err(error) => {
                    // Nobody waits any more: then nobody wants it.
                    let _ = tell.send(Err(error));
                    return;
                }
            };
            // Without a listener the process is killed here.
            let _ = tell.send(Ok(started));
            // An error means that there is no such process.
            let end = child.wait().unwrap_or_default();
            status.send_replace(Some(end));
        })?;
    told.await.map_err(io::Error::other)?
}

fn pipes(mut child: Child, ended: watch::Receiver<Option<ExitStatus>>) -> io::Result<(Child, Started)> {
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(io::Error::other("the process has no pipes"));
    };
    // Its number is its own as long as nobody has waited for it.
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| io::Error::other("the process has no number"))?;
    let process = Process {
        handle: pidfd_open(number, PidfdFlags::empty())?,
        ended,
        _stdin: stdin,
    };
    let started = Started {
        process,
        stdout: stdout.into(),
        stderr: stderr.into(),
    };
    Ok((child, started))
}

/// Logs what the zygote writes itself; workers have pipes of their own. Returns the last line so far.
fn log_stderr(stderr: OwnedFd, interpreter: &str) -> watch::Receiver<Option<String>> {
    let (last, seen) = watch::channel(None);
    let span = tracing::info_span!(parent: None, "plug-in host", interpreter);
    let read = async move {
        let mut lines =
            Lines::new(Receiver::from_owned_fd(stderr).ok(), MAX_ERROR_LINE, usize::MAX).cutting();
        let mut log = StderrLog::default();
        while let Ok(Some(line)) = lines.next().await {
            let (level, text) = Level::of_line(&line);
            log.record(level, text);
            last.send_replace(log.last_line().map(str::to_owned));
        }
    };
    tokio::spawn(read.instrument(span));
    seen
}

/// Whether there is an interpreter at all.
///
/// # Errors
/// In words for a person.
pub fn check_interpreter(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() && found.permissions().mode() & 0o111 != 0 => Ok(()),
        Ok(_) => Err(format!("the interpreter {} cannot be executed", path.display())),
        Err(error) => Err(format!("the interpreter {}: {error}", path.display())),
    }
}
