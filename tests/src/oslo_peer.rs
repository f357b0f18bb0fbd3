//! Python peers: the real oslo.messaging and the real Magnum, as a child process that speaks JSON lines.
//!
//! A request is `{"id": n, "do": "…", …}`, its answer `{"id": n, "result": …}` or
//! `{"id": n, "error": {"class", "module", "message"}}`; anything without an id is an event that the peer
//! reports by itself, such as a message it received. The scripts are in `tests/peers/`.

use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::process::little_environment;
use crate::run_dir::{base, run_dir};
use crate::server::{register, signal_group, tail};

/// Importing oslo and Magnum takes seconds on a busy machine.
const START_WITHIN: Duration = Duration::from_secs(60);
const ANSWER_WITHIN: Duration = Duration::from_secs(90);

/// A running peer. Dropping it kills it.
#[derive(Debug)]
pub struct OsloPeer {
    child: Child,
    pid: u32,
    log: PathBuf,
    requests: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    /// Events that arrived while an answer was awaited.
    events: std::collections::VecDeque<Value>,
    next_id: u64,
}

/// An exception that a peer's request raised, as Python names it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{module}.{class}: {message}")]
pub struct Raised {
    /// Its class.
    pub class: String,
    /// The module of its class.
    pub module: String,
    /// Its text.
    pub message: String,
}

impl OsloPeer {
    /// Starts `tests/peers/<script>` and waits for its `{"event": "ready"}`.
    pub async fn start(script: &str, args: &[&str]) -> Result<Self> {
        Self::start_with(script, args, &[]).await
    }

    /// The same with these environment variables.
    pub async fn start_with(
        script: &str,
        args: &[&str],
        environment: &[(&'static str, String)],
    ) -> Result<Self> {
        let program = base().with_file_name("peers").join(script);
        let mut command = std::process::Command::new(python()?);
        little_environment(&mut command)
            .arg(program)
            .args(args)
            .env("PYTHONUNBUFFERED", "1")
            .envs(environment.iter().map(|(name, value)| (name, value)));
        Self::start_command(script.trim_end_matches(".py"), command).await
    }

    /// Starts any program that speaks in the same way.
    pub async fn start_command(topic: &str, mut command: std::process::Command) -> Result<Self> {
        let name = run_dir()?.unique(topic);
        let log = run_dir()?.log(&name);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .process_group(0);
        let mut child = Command::from(command)
            .spawn()
            .with_context(|| format!("start {topic}"))?;
        let pid = child.id().context("the peer ended at once")?;
        register(pid, Signal::SIGKILL, &name)?;
        let requests = child.stdin.take().context("no input")?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut peer = Self {
            child,
            pid,
            log,
            requests,
            lines,
            events: Default::default(),
            next_id: 1,
        };
        let first = peer.next_event(START_WITHIN).await?;
        ensure!(first["event"] == "ready", "{topic} began with {first}");
        Ok(peer)
    }

    /// Sends a request (an object with `do`) and waits for its answer. An exception is a [`Raised`].
    pub async fn ask(&mut self, mut request: Value) -> Result<Result<Value, Raised>> {
        let id = self.next_id;
        self.next_id += 1;
        request["id"] = json!(id);
        self.requests
            .write_all(format!("{request}\n").as_bytes())
            .await
            .context("the peer does not listen")?;
        loop {
            let line = self.next_line(ANSWER_WITHIN).await?;
            if line["id"] == id {
                let text = |name: &str| line["error"][name].as_str().unwrap_or_default().to_owned();
                return Ok(match line.get("error") {
                    None => Ok(line["result"].clone()),
                    Some(_) => Err(Raised {
                        class: text("class"),
                        module: text("module"),
                        message: text("message"),
                    }),
                });
            }
            self.events.push_back(line);
        }
    }

    /// The next thing the peer reports by itself.
    pub async fn next_event(&mut self, within: Duration) -> Result<Value> {
        match self.events.pop_front() {
            Some(event) => Ok(event),
            None => self.next_line(within).await,
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    async fn next_line(&mut self, within: Duration) -> Result<Value> {
        let line = match tokio::time::timeout(within, self.lines.next_line()).await {
            Ok(line) => line?,
            Err(_) => bail!(
                "the peer said nothing for {within:?}; its log ends:\n{}",
                tail(&self.log)
            ),
        };
        let line = line.with_context(|| format!("the peer ended; its log ends:\n{}", tail(&self.log)))?;
        serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))
    }
}

impl Drop for OsloPeer {
    fn drop(&mut self) {
        signal_group(self.pid, Signal::SIGKILL);
        self.child.start_kill().ok();
    }
}

/// The Python of the pinned environment that `tests/run` makes.
pub fn python() -> Result<PathBuf> {
    tool("python")
}

/// A program of the pinned Python environment.
pub fn tool(name: &str) -> Result<PathBuf> {
    let path = base().join("venv/bin").join(name);
    ensure!(
        path.exists(),
        "{} is missing: tests/run makes the Python environment",
        path.display()
    );
    Ok(path)
}
