//! The guard: the small process between the conductor and a driver's program.
//!
//! A conductor that dies by `kill -9` cannot stop what it started, and the operation's next owner would then run
//! beside it. So every program runs under a guard: this binary again, in the hidden sub-command `exec-guard`.
//! Guard and program form one process group, and the guard holds the reading end of a pipe from the conductor:
//!
//! | the guard sees | it does |
//! |---|---|
//! | the first line | starts the program and gives it that line as its whole standard input |
//! | an empty line | notes that the conductor is alive |
//! | end of file | the conductor is gone, or cancels: stops the group |
//! | no line for the silence | the conductor hangs, and may lose its lease: stops the group |
//! | the program's end | ends with the same code (128 + n for a signal) |
//!
//! Stopping is SIGTERM, the grace, then SIGKILL to the whole group, the guard included. Silence plus grace is
//! shorter than what is left of a lease when its owner stops renewing ([`crate::GuardTiming`]), so the group is
//! dead before the operation can have another owner. Not covered: a program that leaves its group (`setsid`) on
//! purpose, and a guard that is itself killed together with the conductor but without its group.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::AsFd;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::{User, getpgrp, getpid, initgroups, setgid, setuid};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

/// The sub-command by which a program becomes a guard.
pub const SUB_COMMAND: &str = "exec-guard";

/// Arguments of the hidden sub-command.
#[derive(Debug, Clone, clap::Args)]
pub struct GuardArgs {
    /// Milliseconds without a sign of the conductor before the program is stopped.
    #[arg(long)]
    pub silence_ms: u64,
    /// Milliseconds between SIGTERM and SIGKILL.
    #[arg(long)]
    pub grace_ms: u64,
    /// The user that the program runs as, if not this one.
    #[arg(long)]
    pub user: Option<String>,
    /// The driver's program and its arguments.
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

/// Runs the guard until the program has ended; returns the code to exit with. `stdout` is where the program
/// writes.
pub fn run(args: &GuardArgs, stdout: Stdio) -> u8 {
    if let Some(Err(reason)) = args.user.as_deref().map(become_user) {
        return refuse(&reason);
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&format!("cannot start: {error}")),
    };
    runtime.block_on(watch(args, stdout))
}

/// Turns this process into a user, for good. To be called before there are threads.
fn become_user(name: &str) -> Result<(), String> {
    let failed = |why: &dyn std::fmt::Display| format!("cannot become the user {name}: {why}");
    let user = User::from_name(name).map_err(|error| failed(&error))?;
    let user = user.ok_or_else(|| failed(&"there is none"))?;
    let called = CString::new(name).map_err(|error| failed(&error))?;
    initgroups(&called, user.gid)
        .and_then(|()| setgid(user.gid))
        .and_then(|()| setuid(user.uid))
        .map_err(|error| failed(&error))
}

async fn watch(args: &GuardArgs, stdout: Stdio) -> u8 {
    if getpgrp() != getpid() {
        return refuse("not the leader of a process group: this sub-command is for the conductor's own use");
    }
    // With a handler (an ignored signal would stay ignored in the program) the guard outlives its own SIGTERM.
    let handlers = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ]
    .map(signal);
    if let Some(error) = handlers.iter().find_map(|handler| handler.as_ref().err()) {
        return refuse(&format!("cannot handle signals: {error}"));
    }
    let mut conductor = match io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .and_then(Receiver::from_owned_fd)
    {
        Ok(pipe) => BufReader::new(pipe),
        Err(error) => return refuse(&format!("cannot listen to the conductor: {error}")),
    };
    let mut request = Vec::new();
    match conductor.read_until(b'\n', &mut request).await {
        Ok(_) if request.ends_with(b"\n") => {}
        // Gone before it had said what to do: nothing was started.
        _ => return FAILURE,
    }
    let mut child = match start(&args.command, stdout).await {
        Ok(child) => child,
        Err(reason) => return refuse(&reason),
    };
    let stdin = child.stdin.take();
    tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            // A program may end, or close its input, without reading it.
            let _ = stdin.write_all(&request).await;
        }
    });

    let silence = Duration::from_millis(args.silence_ms);
    let mut deadline = Instant::now() + silence;
    let mut sign = Vec::new();
    loop {
        tokio::select! {
            status = child.wait() => return report(status),
            read = conductor.read_until(b'\n', &mut sign) => match read {
                Ok(1..) => deadline = Instant::now() + silence,
                Ok(0) | Err(_) => break,
            },
            () = sleep_until(deadline) => break,
        }
        sign.clear();
    }
    stop(&mut child, Duration::from_millis(args.grace_ms)).await
}

async fn start(command: &[OsString], stdout: Stdio) -> Result<Child, String> {
    let (program, arguments) = command.split_first().ok_or("no program was given")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(Stdio::inherit());
    let mut patience = 20;
    loop {
        match command.spawn() {
            Ok(child) => return Ok(child),
            // Somebody has it open for writing: a driver that is being installed right now.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && patience > 0 => {
                patience -= 1;
                sleep(Duration::from_millis(50)).await;
            }
            Err(error) => return Err(format!("cannot start {}: {error}", program.to_string_lossy())),
        }
    }
}

async fn stop(child: &mut Child, grace: Duration) -> u8 {
    // An error means that the group is gone, which is what is wanted.
    let _ = killpg(getpgrp(), Signal::SIGTERM);
    tokio::select! {
        _ = child.wait() => {}
        () = sleep(grace) => {}
    }
    // Takes what the program left behind, and this process.
    let _ = killpg(getpgrp(), Signal::SIGKILL);
    FAILURE
}

fn report(status: io::Result<ExitStatus>) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.ok().and_then(|status| {
        status
            .code()
            .or_else(|| status.signal().map(|signal| SIGNAL_BASE + signal))
    });
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILURE)
}

/// A guard whose program died by signal n ends with this plus n, as shells do.
pub const SIGNAL_BASE: i32 = 128;

/// The program could not be started: the code that shells use.
pub const CANNOT_START: u8 = 126;
/// What the guard's own words begin with, by which a program that ends with the same code is told apart.
pub const REFUSED: &str = "exec-guard: ";

const FAILURE: u8 = 1;

/// The conductor takes the last line on stderr as the reason.
#[expect(clippy::print_stderr, reason = "standard error is how a guard reports")]
fn refuse(reason: &str) -> u8 {
    eprintln!("{REFUSED}{reason}");
    CANNOT_START
}
