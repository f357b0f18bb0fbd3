//! One run of a driver's program: started under a guard, fed, listened to, and gone when this returns.
//!
//! Guarantees: when [`Run::listen`] returns, or its future is dropped, no process of the program's group is
//! left; at most [`MAX_OUTPUT`] bytes of its output are taken. Not guaranteed: anything about processes that left the group by `setsid`.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use magnum_driver_api::GuardProgram;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::guard::{SIGNAL_BASE, SUB_COMMAND};
use super::{GuardTiming, Lines, MAX_ERROR_LINE, TooMuch};

/// Bytes a program may print in one call.
pub const MAX_OUTPUT: usize = 16 << 20;
/// Bytes of one line.
pub const MAX_LINE: usize = 1 << 20;
/// What is still in the pipes after the end is read at most this long: an escaped child may hold them open.
const DRAIN: Duration = Duration::from_secs(2);

/// What to run and within which bounds.
pub struct Run<'a> {
    /// How to start guards.
    pub guard: &'a GuardProgram,
    /// How to keep time with them.
    pub timing: GuardTiming,
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub arguments: &'a [OsString],
    /// Its working directory.
    pub directory: &'a Path,
    /// The user that it runs as, if it is another one.
    pub user: Option<&'a str>,
    /// Its whole environment.
    pub environment: Vec<(String, OsString)>,
    /// Its standard input: one line.
    pub request: Value,
    /// How long it may take.
    pub limit: Duration,
    /// Stops it.
    pub cancel: &'a CancellationToken,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that did not come from here.
    Killed(i32),
    /// Stopped: the limit was over.
    TimedOut,
    /// Stopped: cancelled.
    Cancelled,
    /// Stopped: it said something that is not the protocol. The text says what.
    Garbage(String),
    /// Stopped: it said more than the bounds allow.
    Flood,
}

/// Takes what a program says.
pub trait Listener: Send {
    /// A line of standard output; an error stops the program.
    fn answer(&mut self, line: &str) -> Result<(), String>;
    /// A line of standard error.
    fn stderr_line(&mut self, line: &str);
}

impl Run<'_> {
    /// Runs the program to its end.
    ///
    /// # Errors
    /// Not even the guard could be started.
    pub async fn listen(self, listener: &mut dyn Listener) -> io::Result<End> {
        let mut child = self.spawn()?;
        let mut group = Group::of(&child);
        let mut stdin = child.stdin.take();
        let mut answers = Lines::new(child.stdout.take(), MAX_LINE, MAX_OUTPUT);
        let mut stderr_lines = Lines::new(child.stderr.take(), MAX_ERROR_LINE, usize::MAX).cutting();

        let mut request = self.request.to_string();
        request.push('\n');
        let mut request = Some(request);
        let deadline = Instant::now() + self.limit;
        let mut heartbeat = interval(self.timing.heartbeat.max(Duration::from_millis(1)));
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);

        let end = loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break End::Cancelled,
                () = sleep_until(deadline) => break End::TimedOut,
                // The first tick is at once and carries the request.
                _ = heartbeat.tick() => {
                    let line = request.take().unwrap_or_else(|| "\n".to_owned());
                    let written = tokio::select! {
                        written = say(&mut stdin, &line) => written,
                        () = self.cancel.cancelled() => break End::Cancelled,
                        () = sleep_until(deadline) => break End::TimedOut,
                    };
                    // A guard that has ended already tells why by its code.
                    if written.is_err() {
                        stdin = None;
                    }
                }
                line = answers.next(), if !answers.at_end() => match line {
                    Ok(Some(line)) => if let Err(reason) = listener.answer(&line) {
                        break End::Garbage(reason);
                    },
                    Ok(None) => {}
                    Err(TooMuch) => break End::Flood,
                },
                line = stderr_lines.next(), if !stderr_lines.at_end() => if let Ok(Some(line)) = line {
                    listener.stderr_line(&line);
                },
                status = child.wait() => {
                    group.kill();
                    let end = ended(status?);
                    break match drain(&mut answers, &mut stderr_lines, listener).await {
                        Some(worse) if matches!(end, End::Exited(_)) => worse,
                        _ => end,
                    };
                }
            }
        };
        drop(stdin);
        if !matches!(end, End::Exited(_) | End::Killed(_)) {
            self.stop(&mut child, &mut group).await;
            // The last words on standard error often tell what it hung on.
            let _ = timeout(DRAIN, async {
                while let Ok(Some(line)) = stderr_lines.next().await {
                    listener.stderr_line(&line);
                }
            })
            .await;
        }
        Ok(end)
    }

    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(&self.guard.program);
        command
            .args(&self.guard.arguments)
            .arg(SUB_COMMAND)
            .arg("--silence-ms")
            .arg(self.timing.silence.as_millis().to_string())
            .arg("--grace-ms")
            .arg(self.timing.grace.as_millis().to_string())
            .args(self.user.into_iter().flat_map(|user| ["--user", user]))
            .arg("--")
            .arg(self.program)
            .args(self.arguments)
            .current_dir(self.directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command.spawn()
    }

    /// The guard has seen the end of its input and stops the group; this makes sure of it.
    async fn stop(&self, child: &mut Child, group: &mut Group) {
        let patience = self.timing.grace + Duration::from_secs(1);
        if timeout(patience, child.wait()).await.is_err() {
            group.kill();
            // A killed process always ends; an error means that it has.
            let _ = child.wait().await;
        }
        group.kill();
    }
}

async fn say(stdin: &mut Option<ChildStdin>, line: &str) -> io::Result<()> {
    match stdin {
        Some(stdin) => {
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await
        }
        None => Ok(()),
    }
}

fn ended(status: std::process::ExitStatus) -> End {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) if is_signal(code - SIGNAL_BASE) => End::Killed(code - SIGNAL_BASE),
        (Some(code), _) => End::Exited(code),
        (None, signal) => End::Killed(signal.unwrap_or_default()),
    }
}

/// Signals are numbered from 1 to 64 on Linux. Codes above them are a program's own: ssh ends with 255, and so
/// does Python's `sys.exit(-1)`.
fn is_signal(number: i32) -> bool {
    (1..=64).contains(&number)
}

/// Reads what is left in the pipes of a program that has ended.
async fn drain(
    answers: &mut Lines<tokio::process::ChildStdout>,
    stderr_lines: &mut Lines<tokio::process::ChildStderr>,
    listener: &mut dyn Listener,
) -> Option<End> {
    let reading = async {
        while let Ok(Some(line)) = stderr_lines.next().await {
            listener.stderr_line(&line);
        }
        loop {
            match answers.next().await {
                Ok(Some(line)) => {
                    if let Err(reason) = listener.answer(&line) {
                        return Some(End::Garbage(reason));
                    }
                }
                Ok(None) => return None,
                Err(TooMuch) => return Some(End::Flood),
            }
        }
    };
    timeout(DRAIN, reading).await.unwrap_or(None)
}

/// The process group of one guard and its program. Killed when dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        // Linux's process ids fit; a group that could not be named is still watched by its guard.
        Self(
            child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .map(Pid::from_raw),
        )
    }

    /// Ends whatever is left. While the group has members its number is not given to others, and this is called
    /// right after its leader was seen to end.
    fn kill(&mut self) {
        if let Some(leader) = self.0.take() {
            let _ = killpg(leader, Signal::SIGKILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
