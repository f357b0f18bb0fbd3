//! Our programs as processes: started with a written configuration, killed, drained, and ended with the
//! test in any case.
//!
//! A program runs in its own process group, so that what it started can be ended with it when the test is
//! over, and lives on when the test kills the program alone ([`Program::kill`]), as after a crash. When a
//! test fails, the end of every program's log is printed with it.

use std::fs;
use std::fs::File;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::run_dir::run_dir;
use crate::server::{register, signal_group, tail};
use crate::wait;

const READY_WITHIN: Duration = Duration::from_secs(60);

/// A program about to be started.
#[derive(Debug)]
pub struct Launch {
    name: String,
    command: Command,
    ready: Ready,
}

/// How one sees that a program is ready.
#[derive(Debug, Clone)]
pub enum Ready {
    /// It answers a GET of this URL with success.
    Http(String),
    /// It wrote a line containing this.
    Log(String),
    /// As soon as it runs.
    Started,
}

/// The variable that names libraries to load into a program.
const PRELOAD: &str = "LD_PRELOAD";

/// Where programs keep what they find out: Python packages the list of what is installed beside them. Not in the user's
/// folder.
const CACHE: (&str, &str) = (
    "XDG_CACHE_HOME",
    concat!(env!("CARGO_MANIFEST_DIR"), "/.run/cache"),
);

/// Leaves a command little of the environment that the tests run in: options of oslo.config can stand there,
/// and a test must not pass because of a variable that only some machines have.
pub fn little_environment(command: &mut Command) -> &mut Command {
    command.env_clear();
    for name in ["PATH", "HOME", "LANG", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command.env(CACHE.0, CACHE.1)
}

/// A program of ours, with its drivers, leaves the processors to servers. A broker that starts beside thirty busy programs would
/// have a thirtieth of them and take minutes, which all of them wait for.
fn behind_servers(program: &Path) -> Command {
    let mut command = Command::new("/usr/bin/nice");
    command.args(["-n", "10"]).arg(program);
    command
}

impl Launch {
    /// One of the workspace's programs, by name. An error when it is not built, or older than its sources.
    pub fn program(program: &str) -> Result<Self> {
        Ok(Self::command(program, behind_servers(&built(program)?)))
    }

    /// The same with as much of the processors as servers have.
    pub fn program_like_servers(program: &str) -> Result<Self> {
        Ok(Self::command(program, Command::new(built(program)?)))
    }

    /// A program of the release before, by name. An error when `tests/run` has not built it.
    pub fn of_the_release_before(program: &str) -> Result<Self> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(".run/release-before")
            .join(program);
        ensure!(
            path.exists(),
            "{} is not built; tests/run does it, from the commit that it names",
            path.display()
        );
        Ok(Self::command(
            &format!("{program}-of-the-release-before"),
            behind_servers(&path),
        ))
    }

    /// Any command.
    pub fn command(name: &str, mut command: Command) -> Self {
        little_environment(&mut command).env("RUST_BACKTRACE", "1");
        Self {
            name: name.to_owned(),
            command,
            ready: Ready::Started,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<std::ffi::OsStr>>) -> Self {
        self.command.args(args);
        self
    }

    /// Adds `--config-file`.
    #[must_use]
    pub fn config(self, file: &Path) -> Self {
        self.args([Path::new("--config-file"), file])
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Loads a library into the program, besides those that it has been given so far.
    #[must_use]
    pub fn preload(self, library: &Path) -> Self {
        let mut all = library.as_os_str().to_owned();
        for (name, value) in self.command.get_envs() {
            if let (true, Some(value)) = (name == PRELOAD, value) {
                all.push(":");
                all.push(value);
            }
        }
        self.env(PRELOAD, all)
    }

    /// What [`Launch::start`] waits for.
    #[must_use]
    pub fn ready_when(mut self, ready: Ready) -> Self {
        self.ready = ready;
        self
    }

    /// Starts the program and waits until it is ready.
    pub async fn start(self) -> Result<Program> {
        let ready = self.ready.clone();
        let mut program = self.spawn()?;
        program.wait_ready(&ready).await?;
        Ok(program)
    }

    /// Starts the program and does not wait for anything.
    pub fn spawn(mut self) -> Result<Program> {
        let name = run_dir()?.unique(&self.name);
        let log = run_dir()?.log(&name);
        let output = File::options().create(true).append(true).open(&log)?;
        let child = self
            .command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("start {:?}", self.command))?;
        let pid_file = register(child.id(), Signal::SIGKILL, &name)?;
        Ok(Program {
            name,
            child,
            log,
            pid_file,
        })
    }

    /// Runs the program to its end and returns what it printed. An error when it fails, with its output.
    pub async fn output(self) -> Result<String> {
        let finished = self.finish().await?;
        ensure!(
            finished.status.success(),
            "{} ended with {}:\n{}{}",
            finished.name,
            finished.status,
            finished.stdout,
            finished.stderr
        );
        Ok(finished.stdout)
    }

    /// Runs the program to its end, whatever that is.
    pub async fn finish(mut self) -> Result<Finished> {
        let name = self.name.clone();
        self.command.stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || self.command.output())
            .await?
            .with_context(|| format!("run {name}"))?;
        Ok(Finished {
            name,
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}

/// A program that ran to its end.
#[derive(Debug)]
pub struct Finished {
    /// Which.
    pub name: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: String,
    /// What it complained about.
    pub stderr: String,
}

/// A running program. Dropping it kills its process group.
#[derive(Debug)]
pub struct Program {
    name: String,
    child: Child,
    log: PathBuf,
    pid_file: PathBuf,
}

impl Program {
    /// Its name, unique in this run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything it has printed so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Where that is.
    pub fn log_file(&self) -> &Path {
        &self.log
    }

    /// Whether it has ended, and how.
    ///
    /// Looking does not reap it: its number is that of its process group, too, which is killed when this is dropped,
    /// and must not have gone to a stranger by then.
    pub fn ended(&self) -> Result<Option<ExitStatus>> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?);
        let look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        Ok(match waitid(Id::Pid(pid), look)? {
            WaitStatus::Exited(_, code) => Some(ExitStatus::from_raw(code << 8)),
            WaitStatus::Signaled(_, signal, _) => Some(ExitStatus::from_raw(signal as i32)),
            _ => None,
        })
    }

    /// Waits until it says that it is ready; an error with the end of its log when it ends instead.
    pub async fn wait_ready(&mut self, ready: &Ready) -> Result<()> {
        let what = format!("{} to be ready ({ready:?})", self.name);
        let outcome = wait::until(&what, READY_WITHIN, async || {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            match ready {
                Ready::Started => Ok(None),
                Ready::Log(text) => self
                    .log()
                    .contains(text.as_str())
                    .then_some(None)
                    .context("no such line yet"),
                Ready::Http(url) => reqwest::get(url)
                    .await?
                    .error_for_status()
                    .map(|_| None)
                    .map_err(anyhow::Error::from),
            }
        })
        .await;
        match outcome {
            Ok(None) => Ok(()),
            Ok(Some(status)) if matches!(ready, Ready::Started) && status.success() => Ok(()),
            Ok(Some(status)) => bail!(
                "{} ended with {status} before it was ready; its log ends:\n{}",
                self.name,
                tail(&self.log)
            ),
            Err(error) => bail!("{error:#}; its log ends:\n{}", tail(&self.log)),
        }
    }

    /// Waits for a line of its log that contains `text`.
    pub async fn wait_log(&self, text: &str, within: Duration) -> Result<()> {
        let what = format!("{} to log {text:?}", self.name);
        let found = wait::until(&what, within, async || {
            self.log().contains(text).then_some(()).context("no such line")
        })
        .await;
        found.with_context(|| format!("its log ends:\n{}", tail(&self.log)))
    }

    /// `kill -9` of the program alone; what it started lives on, as after a crash. Waits until it is gone.
    pub async fn kill(&mut self) -> Result<()> {
        self.signal(Signal::SIGKILL)?;
        self.wait_end(Duration::from_secs(10)).await.map(drop)
    }

    /// `kill -9` of the program and everything in its process group, and waits until it is gone.
    pub async fn kill_group(&mut self) -> Result<()> {
        signal_group(self.child.id(), Signal::SIGKILL);
        self.wait_end(Duration::from_secs(10)).await.map(drop)
    }

    /// SIGTERM, then waits for its end.
    pub async fn terminate(&mut self, within: Duration) -> Result<ExitStatus> {
        self.signal(Signal::SIGTERM)?;
        self.wait_end(within).await
    }

    /// Sends a signal to the program alone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill(Pid::from_raw(i32::try_from(self.child.id())?), signal)
            .with_context(|| format!("{signal} to {}", self.name))
    }

    /// Waits until it has ended by itself.
    pub async fn wait_end(&mut self, within: Duration) -> Result<ExitStatus> {
        let what = format!("{} to end", self.name);
        let ended = wait::until(&what, within, async || self.ended()?.context("it still runs")).await;
        ended.with_context(|| format!("its log ends:\n{}", tail(&self.log)))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // The test runner shows this for failed tests only.
        eprintln!(
            "--- end of the log of {} ---\n{}\n---",
            self.name,
            tail(&self.log)
        );
        signal_group(self.child.id(), Signal::SIGKILL);
        self.child.wait().ok();
        fs::remove_file(&self.pid_file).ok();
    }
}

/// Where cargo put a program of the workspace: beside the `deps` folder that holds the test binary.
pub fn built(program: &str) -> Result<PathBuf> {
    let me = std::env::current_exe()?;
    let folder = me
        .parent()
        .and_then(Path::parent)
        .context("the test binary lies in target/<profile>/deps")?;
    let path = folder.join(program);
    let advice = "build first: cargo build --workspace --all-features --bins";
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified());
    let made = changed(&path).with_context(|| format!("{} is not built; {advice}", path.display()))?;
    // Cargo's own list of what went into the program. Testing yesterday's program is worse than no test.
    let inputs = fs::read_to_string(folder.join(format!("{program}.d"))).unwrap_or_default();
    let newer = inputs
        .split_whitespace()
        .skip(1)
        .find(|input| changed(Path::new(input)).unwrap_or(SystemTime::UNIX_EPOCH) > made);
    if let Some(newer) = newer {
        bail!("{} is older than {newer}; {advice}", path.display());
    }
    Ok(path)
}

/// Whether a process works; a zombie does not.
pub fn works(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
