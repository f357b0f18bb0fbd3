//! A contestant's server as a process: when it consumes, what it costs.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result};
use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::oslo_peer::python;
use crate::rabbitmq::Vhost;

/// Longest wait for anything; a benchmark that hangs shall say so.
const PATIENCE: Duration = Duration::from_secs(600);

/// Kernel ticks per second, the unit of processor time under `/proc`.
const TICKS: f64 = 100.0;

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contestant {
    Ours,
    Peer,
    Bare,
}

impl Contestant {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Peer => "oslo.messaging",
            Self::Bare => "bare consumer",
        }
    }
}

/// A running server. Killed when dropped.
pub(super) struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pid: u32,
    /// From starting the process until the broker saw its consumer.
    pub(super) start: Duration,
    began: Instant,
}

impl Server {
    /// Starts a contestant and waits until it consumes the topic queue.
    pub(super) async fn start(contestant: Contestant, vhost: &Vhost, total: u64) -> Result<Self> {
        let watcher = Watcher::new(vhost).await?;
        let url = vhost.transport_url();
        let mut command = match contestant {
            Contestant::Ours => own("ours", &url, total)?,
            Contestant::Bare => own("bare", &url, total)?,
            Contestant::Peer => peer(&["server", &url, &total.to_string()])?,
        };
        let spawned = Instant::now();
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("start a contestant")?;
        let pid = child.id().context("the contestant ended at once")?;
        let lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        timeout(PATIENCE, watcher.consumer())
            .await
            .context("it does not consume")??;
        Ok(Self {
            child,
            lines,
            pid,
            start: spawned.elapsed(),
            began: Instant::now(),
        })
    }

    /// Waits until all casts are handled. Returns the time since it began to consume.
    pub(super) async fn done(&mut self) -> Result<Duration> {
        let line = timeout(PATIENCE, self.lines.next_line())
            .await
            .context("it does not finish")??;
        line.context("the contestant ended")?;
        Ok(self.began.elapsed())
    }

    /// Processor time used so far, of all threads.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks = |index: usize| -> Result<f64> { Ok(fields.get(index).context("short stat")?.parse()?) };
        Ok(Duration::from_secs_f64((ticks(11)? + ticks(12)?) / TICKS))
    }

    /// Memory in use now, in MiB.
    pub(super) fn rss_mib(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("no VmRSS")?;
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib / 1024.0)
    }

    pub(super) async fn stop(mut self) -> Result<()> {
        self.child.kill().await.context("stop a contestant")
    }
}

fn own(contestant: &str, url: &str, total: u64) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", contestant, url, &total.to_string()]);
    Ok(command)
}

/// The Python peer in one of its roles.
pub(super) fn peer(args: &[&str]) -> Result<Command> {
    let tests = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new(python()?);
    command
        .arg(tests.join("peers/oslo_bench.py"))
        .arg(tests.join("fixtures/rpc/request-cluster_create-call.json"))
        .args(args);
    Ok(command)
}

/// The message: context and arguments of the recorded `cluster_create`.
pub(super) fn message() -> Result<Value> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/rpc/request-cluster_create-call.json");
    let frame: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    Ok(frame["inner"].clone())
}

/// Sees a consumer appear within a millisecond or two; the management interface lags by seconds.
struct Watcher {
    _connection: lapin::Connection,
    channel: lapin::Channel,
}

impl Watcher {
    async fn new(vhost: &Vhost) -> Result<Self> {
        let properties = lapin::ConnectionProperties::default();
        let connection = lapin::Connection::connect(&vhost.amqp_url(), properties).await?;
        let channel = connection.create_channel().await?;
        let options = QueueDeclareOptions::default();
        channel
            .queue_declare("magnum-conductor".into(), options, FieldTable::default())
            .await?;
        Ok(Self {
            _connection: connection,
            channel,
        })
    }

    async fn consumer(&self) -> Result<()> {
        let passive = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        loop {
            let table = FieldTable::default();
            let queue = self
                .channel
                .queue_declare("magnum-conductor".into(), passive, table)
                .await?;
            if queue.consumer_count() > 0 {
                return Ok(());
            }
            sleep(Duration::from_millis(1)).await;
        }
    }
}
