//! A private PostgreSQL server, from the installed package, reached over TCP only.
//!
//! PostgreSQL refuses to run as root, so under root it runs as the package's user `postgres`; its data then
//! lie outside of the checkout when that user may not enter it. Everything committed survives a `kill -9`
//! of the server, not a loss of power (see [`crate::mariadb`]).

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::Text;
use nix::sys::signal::Signal;
use tokio::sync::{Mutex, OnceCell};

use crate::fake_clock::FakeClock;
use crate::ports::free_port;
use crate::run_dir::run_dir;
use crate::server::{ServerProcess, signal_group};
use crate::system_user::SystemUser;

/// Administrator, and the only user.
pub const USER: &str = "magnum";
/// Password of [`USER`]; the server trusts any, but URLs of the field have one.
pub const PASSWORD: &str = "postgres-secret";

const PACKAGES: &str = "/usr/lib/postgresql";
const SYSTEM_USER: SystemUser = SystemUser("postgres");
const START_WITHIN: Duration = Duration::from_secs(60);

/// One server.
#[derive(Debug)]
pub struct Postgres {
    name: String,
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    clock: Option<FakeClock>,
    process: Mutex<Option<ServerProcess>>,
}

impl Postgres {
    /// The server that all tests of this process share; never stopped.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Postgres> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::dedicated).await
    }

    /// A server of one's own, to be stopped, killed and started again.
    pub async fn dedicated() -> Result<Self> {
        Self::new(None).await
    }

    /// A server of one's own on a host with this clock, which its user can read.
    pub async fn with_clock(clock: &FakeClock) -> Result<Self> {
        Self::new(Some(clock)).await
    }

    async fn new(clock: Option<&FakeClock>) -> Result<Self> {
        let programs = newest_programs()?;
        let creator = programs.clone();
        let folder = tokio::task::spawn_blocking(move || create_data(&creator)).await??;
        Self::on(programs, folder, clock).await
    }

    /// A standby of this server, which streams from it and calls itself `name`.
    pub async fn standby(&self, name: &str) -> Result<Self> {
        let (programs, primary, name) = (self.programs.clone(), self.port, name.to_owned());
        let folder = tokio::task::spawn_blocking(move || copy_data(&programs, primary, &name)).await??;
        Self::on(self.programs.clone(), folder, self.clock.as_ref()).await
    }

    async fn on(programs: PathBuf, folder: PathBuf, clock: Option<&FakeClock>) -> Result<Self> {
        let name = run_dir()?.unique("postgres-server");
        let mut last = None;
        for _ in 0..3 {
            let server = Self {
                name: name.clone(),
                programs: programs.clone(),
                folder: folder.clone(),
                port: free_port()?,
                clock: clock.cloned(),
                process: Mutex::default(),
            };
            match server.start().await {
                Ok(()) => return Ok(server),
                Err(error) => last = Some(error),
            }
            server.kill().await.ok();
        }
        bail!(
            "PostgreSQL does not start: {:#}",
            last.context("no attempt was made")?
        )
    }

    /// Starts the server on the data it has. An error when it runs already.
    pub async fn start(&self) -> Result<()> {
        let mut slot = self.process.lock().await;
        ensure!(slot.is_none(), "{} runs already", self.name);
        let program = self.programs.join("postgres");
        let mut command = match &self.clock {
            Some(clock) => SYSTEM_USER.change(&clock.command(&program)),
            None => SYSTEM_USER.command(&program),
        };
        command
            .current_dir(&self.folder)
            .arg("-D")
            .arg(self.folder.join("data"))
            .args(["-p", &self.port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=400",
            "fsync=off",
            "full_page_writes=off",
            "shared_buffers=64MB",
            "max_wal_size=128MB",
            "timezone=UTC",
        ] {
            command.args(["-c", setting]);
        }
        // SIGTERM would wait for the clients to go; SIGINT sends them away.
        let mut process = ServerProcess::spawn(&self.name, command, Signal::SIGINT)?;
        let ready = process
            .wait_ready(START_WITHIN, async || self.execute("SELECT 1").await)
            .await;
        *slot = Some(process);
        ready
    }

    /// Stops the server in order, sending its clients away.
    pub async fn stop(&self) -> Result<()> {
        match self.process.lock().await.take() {
            Some(process) => process.stop(Duration::from_secs(30)).await.map(drop),
            None => Ok(()),
        }
    }

    /// `kill -9` of all its processes.
    pub async fn kill(&self) -> Result<()> {
        let Some(process) = self.process.lock().await.take() else {
            return Ok(());
        };
        kill_backends(process.pid());
        process.kill().await?;
        // The lock names a process that is gone; its number may be taken by then, and the server would
        // refuse to start.
        fs::remove_file(self.folder.join("data/postmaster.pid")).ok();
        Ok(())
    }

    /// Makes a standby a primary; when this returns, it takes writes.
    pub async fn promote(&self) -> Result<()> {
        let mut command = SYSTEM_USER.command(&self.programs.join("pg_ctl"));
        command
            .current_dir(&self.folder)
            .args(["promote", "-w", "-D"])
            .arg(self.folder.join("data"));
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        ensure!(
            output.status.success(),
            "pg_ctl promote:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Stops and starts again.
    pub async fn restart(&self) -> Result<()> {
        self.stop().await?;
        self.start().await
    }

    /// Its process id; an error when it does not run.
    pub async fn pid(&self) -> Result<u32> {
        let process = self.process.lock().await;
        Ok(process.as_ref().context("the server does not run")?.pid())
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Runs statements as administrator, outside of any test's database.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        let url = format!("postgres://{USER}:{PASSWORD}@{}/postgres", self.address());
        let sql = sql.to_owned();
        tokio::task::spawn_blocking(move || {
            let mut connection = PgConnection::establish(&url)?;
            connection.batch_execute(&sql).with_context(|| sql.clone())
        })
        .await?
    }
}

impl Postgres {
    /// Asks as administrator for the values of one text column.
    pub async fn ask(&self, sql: &str) -> Result<Vec<String>> {
        #[derive(QueryableByName)]
        struct Answer {
            #[diesel(sql_type = Text)]
            value: String,
        }
        let url = format!("postgres://{USER}:{PASSWORD}@{}/postgres", self.address());
        let sql = format!("SELECT CAST(value AS text) AS value FROM ({sql}) AS asked (value)");
        tokio::task::spawn_blocking(move || {
            let mut connection = PgConnection::establish(&url)?;
            let answers: Vec<Answer> = diesel::sql_query(sql).load(&mut connection)?;
            Ok(answers.into_iter().map(|answer| answer.value).collect())
        })
        .await?
    }

    /// `kill -9`, and its data are gone.
    pub(crate) fn discard(&mut self) {
        if let Some(process) = self.process.get_mut() {
            kill_backends(process.pid());
            process.kill_now();
        }
        fs::remove_dir_all(self.folder.join("data")).ok();
    }
}

fn newest_programs() -> Result<PathBuf> {
    let missing = || {
        format!("PostgreSQL is not installed (no {PACKAGES}/*/bin/postgres); tests/run installs postgresql")
    };
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir(PACKAGES)
        .with_context(missing)?
        .flatten()
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .filter(|(_, programs)| programs.join("postgres").exists())
        .collect();
    versions.sort();
    versions.pop().map(|(_, programs)| programs).with_context(missing)
}

/// Kills the processes that a server has started: each of them leads a group of its own.
fn kill_backends(server: u32) {
    let children = fs::read_to_string(format!("/proc/{server}/task/{server}/children")).unwrap_or_default();
    for child in children.split_whitespace().filter_map(|pid| pid.parse().ok()) {
        signal_group(child, Signal::SIGKILL);
    }
}

/// What a new server begins with.
fn create_data(programs: &Path) -> Result<PathBuf> {
    let folder = SYSTEM_USER.folder("postgres")?;
    let output = SYSTEM_USER
        .command(&programs.join("initdb"))
        .current_dir(&folder)
        .arg("-D")
        .arg(folder.join("data"))
        .args([
            "-U",
            USER,
            "--auth=trust",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
        ])
        .output()
        .context("run initdb")?;
    ensure!(
        output.status.success(),
        "initdb failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(folder)
}

/// A standby's data: a copy of the primary's that goes on with its stream.
fn copy_data(programs: &Path, primary: u16, name: &str) -> Result<PathBuf> {
    let folder = SYSTEM_USER.folder("postgres")?;
    let output = SYSTEM_USER
        .command(&programs.join("pg_basebackup"))
        .current_dir(&folder)
        .arg("-D")
        .arg(folder.join("data"))
        .args([
            "--write-recovery-conf",
            "--wal-method=stream",
            "--checkpoint=fast",
            "--no-sync",
        ])
        .args([
            "--dbname",
            &format!("host=127.0.0.1 port={primary} user={USER} application_name={name}"),
        ])
        .output()
        .context("run pg_basebackup")?;
    ensure!(
        output.status.success(),
        "pg_basebackup failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(folder)
}
