//! A contestant's server as a process: the time until it consumes, its output, its resources.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use super::Environment;
use crate::oslo_peer::python;
use crate::rabbitmq::Vhost;
use crate::run_dir::run_dir;
use crate::server::tail;

/// Longest wait for a server to consume, and to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contestant {
    Bare,
    Ours,
    Peer,
    Journalled,
}

impl Contestant {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare consumer",
            Self::Ours => "ours",
            Self::Peer => "oslo.messaging",
            Self::Journalled => "journalled",
        }
    }
}

/// A running server. Killed when dropped.
pub(super) struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
    pub(super) pid: u32,
    /// From starting the process until the broker saw its consumer.
    pub(super) start: Duration,
    pub(super) began: Instant,
}

impl Server {
    /// Starts a contestant and waits until it consumes the topic queue.
    pub(super) async fn start(mut command: Command, vhost: &Vhost) -> Result<Self> {
        let watcher = Watcher::new(vhost).await?;
        let log = run_dir()?.log(&run_dir()?.unique("contestant"));
        let spawned = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .context("start a contestant")?;
        let pid = child.id().context("the contestant ended at once")?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut server = Self {
            child,
            lines,
            log,
            pid,
            start: Duration::ZERO,
            began: spawned,
        };
        tokio::select! {
            consumes = timeout(PATIENCE, watcher.consumer()) => match consumes {
                Ok(consumes) => consumes?,
                Err(_) => return Err(server.trouble("does not consume")),
            },
            _ended = server.child.wait() => return Err(server.trouble("ended")),
        }
        server.start = spawned.elapsed();
        server.began = Instant::now();
        Ok(server)
    }

    /// The next line it prints.
    pub(super) async fn next_line(&mut self, within: Duration) -> Result<String> {
        match timeout(within, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => Err(self.trouble("ended")),
            Err(_) => Err(self.trouble(&format!("is not done after {within:?} (see --limit)"))),
        }
    }

    fn trouble(&self, what: &str) -> anyhow::Error {
        anyhow::anyhow!("the contestant {what}; its log ends:\n{}", tail(&self.log))
    }

    /// Ends it at once.
    pub(super) async fn kill(mut self) -> Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Ends it in order.
    pub(super) async fn stop(mut self) -> Result<()> {
        kill(Pid::from_raw(i32::try_from(self.pid)?), Signal::SIGTERM)?;
        match timeout(PATIENCE, self.child.wait()).await {
            Ok(_status) => Ok(()),
            Err(_) => Err(self.trouble("does not end")),
        }
    }
}

/// A server of ours for so many casts and probes.
pub(super) fn own(
    environment: &Environment<'_>,
    kind: &str,
    vhost: &Vhost,
    total: u64,
    probes: u64,
) -> Command {
    let mut command = Command::new(&environment.program);
    command.args(["serve", kind, &vhost.transport_url()]);
    command.args([total.to_string(), probes.to_string()]);
    command
}

/// The Python peer in one of its roles.
pub(super) fn peer(args: &[&str]) -> Result<Command> {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers/oslo_bench.py");
    let mut command = Command::new(python()?);
    command.arg(script).arg(fixture()).args(args);
    Ok(command)
}

/// The message: context and arguments of the recorded `cluster_create`.
pub(super) fn fixture() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/rpc/request-cluster_create-call.json")
}

/// Sees a consumer appear within a millisecond or two; the management interface lags by seconds.
pub(super) struct Watcher {
    _connection: lapin::Connection,
    channel: lapin::Channel,
}

impl Watcher {
    pub(super) async fn new(vhost: &Vhost) -> Result<Self> {
        let properties = lapin::ConnectionProperties::default();
        let connection = lapin::Connection::connect(&vhost.amqp_url(), properties).await?;
        let channel = connection.create_channel().await?;
        let watcher = Self {
            _connection: connection,
            channel,
        };
        watcher.queue(false).await?;
        Ok(watcher)
    }

    async fn queue(&self, passive: bool) -> Result<lapin::Queue> {
        let options = QueueDeclareOptions {
            passive,
            ..QueueDeclareOptions::default()
        };
        let table = FieldTable::default();
        Ok(self
            .channel
            .queue_declare("magnum-conductor".into(), options, table)
            .await?)
    }

    async fn consumer(&self) -> Result<()> {
        while self.queue(true).await?.consumer_count() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// An error when a message was not acknowledged: those come back when their consumer has gone.
    pub(super) async fn assert_empty(&self) -> Result<()> {
        let left = self.queue(true).await?.message_count();
        ensure!(left == 0, "{left} messages were not acknowledged");
        Ok(())
    }
}
