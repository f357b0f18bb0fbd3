//! One node of a Galera cluster: how it is started, and how far it got when it was killed.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use tokio::sync::Mutex;

use super::data::run;
use super::session::ask;
use super::{PROGRAM, PROVIDER, SYSTEM_USER};
use crate::ports::free_port;
use crate::run_dir::run_dir;
use crate::server::{ServerProcess, signal_group};
use crate::system_user::SystemUser;

/// One server.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) port: u16,
    pub(super) group: u16,
    transfer: [u16; 2],
    pub(super) process: Mutex<Option<ServerProcess>>,
}

/// How a node begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// As the first of a cluster.
    New,
    /// As one that comes or comes back.
    Join,
}

impl Node {
    /// A node with a copy of this data, or with none that it knows of.
    pub(super) async fn on(data: PathBuf) -> Result<Self> {
        let folder = tokio::task::spawn_blocking(move || {
            let folder = SYSTEM_USER.folder("galera")?;
            run(Command::new("cp").arg("-r").arg(data).arg(folder.join("data")))?;
            fs::create_dir(folder.join("tmp"))?;
            SYSTEM_USER.own(&folder)?;
            Ok::<_, anyhow::Error>(folder)
        })
        .await??;
        Ok(Self {
            name: run_dir()?.unique("galera-node"),
            folder,
            port: free_port()?,
            group: free_port()?,
            transfer: [free_port()?, free_port()?],
            process: Mutex::default(),
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    pub(super) async fn start(&self, begin: Begin, members: &str, more: &[String]) -> Result<()> {
        let mut slot = self.process.lock().await;
        ensure!(slot.is_none(), "{} runs already", self.name);
        let mut command = self.command();
        let [sst, ist] = self.transfer;
        command
            .args([
                &format!("--port={}", self.port),
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                "--socket=m.sock",
                "--pid-file=m.pid",
                "--character-set-server=utf8mb4",
                "--max-connections=300",
                "--innodb-buffer-pool-size=64M",
                "--innodb-flush-log-at-trx-commit=2",
                "--performance-schema=OFF",
                "--wsrep-cluster-name=tests",
                "--wsrep-sst-method=rsync",
                &format!("--wsrep-cluster-address=gcomm://{members}"),
                &format!("--wsrep-node-name={}", self.name),
                &format!("--wsrep-node-address=127.0.0.1:{}", self.group),
                &format!("--wsrep-node-incoming-address={}", self.address()),
                &format!("--wsrep-sst-receive-address=127.0.0.1:{sst}"),
                &format!(
                    "--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{};ist.recv_addr=127.0.0.1:{ist};\
                     gcache.size=32M;gcache.page_size=16M;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT8S;\
                     evs.inactive_check_period=PT0.5S;evs.keepalive_period=PT0.5S",
                    self.group
                ),
            ])
            .args(more);
        match begin {
            Begin::New => {
                command.arg("--wsrep-new-cluster");
            }
            Begin::Join => {
                if let Some(position) = self.position().await? {
                    command.arg(format!("--wsrep-start-position={position}"));
                }
            }
        }
        *slot = Some(ServerProcess::spawn(&self.name, command, Signal::SIGTERM)?);
        Ok(())
    }

    /// The server with its data and Galera, and nothing of how it is reached.
    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("TMPDIR", self.folder.join("tmp"))
            .arg("--no-defaults");
        if SystemUser::is_needed() {
            command.arg(format!("--user={}", SYSTEM_USER.0));
        }
        command
            .arg(format!("--datadir={}", self.folder.join("data").display()))
            .args([
                "--innodb-log-file-size=24M",
                "--skip-log-bin",
                "--binlog-format=ROW",
                "--innodb-autoinc-lock-mode=2",
                "--wsrep-on=ON",
                &format!("--wsrep-provider={PROVIDER}"),
            ]);
        command
    }

    /// How far a node got that was killed; nothing when it was stopped in order, which is written down.
    async fn position(&self) -> Result<Option<String>> {
        let state = fs::read_to_string(self.folder.join("data/grastate.dat"))?;
        let is_known = |line: &str| {
            line.strip_prefix("seqno:")
                .is_some_and(|seqno| seqno.trim() != "-1")
        };
        if state.lines().any(is_known) {
            return Ok(None);
        }
        let mut command = self.command();
        command
            .args(["--wsrep-recover", "--wsrep-cluster-address=gcomm://"])
            .args(["--skip-networking", "--socket=m.sock"]);
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let found = said
            .lines()
            .rev()
            .find_map(|line| line.split_once("Recovered position: "));
        let (_, position) = found.with_context(|| format!("no position in:\n{said}"))?;
        Ok(Some(position.trim().to_owned()))
    }

    pub(super) async fn signal(&self, signal: Signal) -> Result<()> {
        let process = self.process.lock().await;
        signal_group(process.as_ref().context("the node does not run")?.pid(), signal);
        Ok(())
    }

    pub(super) async fn status(&self, variable: &str) -> Result<String> {
        let query = format!(
            "SELECT variable_value AS value FROM information_schema.global_status WHERE variable_name = '{variable}'"
        );
        ask(self.address(), query).await
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(process) = self.process.get_mut() {
            process.kill_now();
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}
