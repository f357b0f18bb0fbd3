//! A private MariaDB server, from the installed package, reached over TCP only.
//!
//! Like RabbitMQ: one shared by the process, or one of its own for a test that stops it. Everything
//! committed survives a `kill -9` of the server (the pages are the kernel's by then), not a loss of power:
//! no test cuts the power, and flushing for it would only make all of them slow.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, MysqlConnection};
use nix::sys::signal::Signal;
use tokio::sync::{Mutex, OnceCell};

use crate::fake_clock::FakeClock;
use crate::ports::free_port;
use crate::run_dir::run_dir;
use crate::server::ServerProcess;

/// User with all rights.
pub const USER: &str = "magnum";
/// Password of [`USER`].
pub const PASSWORD: &str = "mariadb-secret";

const PROGRAM: &str = "/usr/sbin/mariadbd";
/// The variable of the environment that names the folder of temporary tables.
const TEMPORARY: &str = "TMPDIR";
const START_WITHIN: Duration = Duration::from_secs(60);

/// One server.
#[derive(Debug)]
pub struct Mariadb {
    name: String,
    folder: PathBuf,
    port: u16,
    flush: Flush,
    clock: Option<FakeClock>,
    process: Mutex<Option<ServerProcess>>,
}

/// When a commit reaches the disk.
#[derive(Debug, Clone, Copy)]
enum Flush {
    /// Within a second.
    Soon,
    /// Before it is answered: MariaDB's default.
    AtCommit,
}

impl Mariadb {
    /// The server that all tests of this process share; never stopped.
    pub async fn shared() -> Result<&'static Self> {
        static SHARED: OnceCell<Mariadb> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::dedicated).await
    }

    /// A server of one's own, to be stopped, killed and started again.
    pub async fn dedicated() -> Result<Self> {
        Self::new(Flush::Soon, None).await
    }

    /// A server of one's own on a host with this clock.
    pub async fn with_clock(clock: &FakeClock) -> Result<Self> {
        Self::new(Flush::Soon, Some(clock)).await
    }

    /// A server of one's own that flushes every commit to the disk, as MariaDB does by default: for measuring.
    pub async fn durable() -> Result<Self> {
        Self::new(Flush::AtCommit, None).await
    }

    async fn new(flush: Flush, clock: Option<&FakeClock>) -> Result<Self> {
        ensure!(
            Path::new(PROGRAM).exists(),
            "MariaDB is not installed ({PROGRAM} is missing); tests/run installs mariadb-server"
        );
        let folder = run_dir()?.folder("mariadb")?;
        let name = folder
            .file_name()
            .context("unnamed folder")?
            .to_string_lossy()
            .into_owned();
        let fresh = folder.clone();
        tokio::task::spawn_blocking(move || create_data(&fresh)).await??;
        let mut last = None;
        for _ in 0..3 {
            let server = Self {
                name: name.clone(),
                folder: folder.clone(),
                port: free_port()?,
                flush,
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
            "MariaDB does not start: {:#}",
            last.context("no attempt was made")?
        )
    }

    /// Starts the server on the data it has. An error when it runs already.
    pub async fn start(&self) -> Result<()> {
        let mut slot = self.process.lock().await;
        ensure!(slot.is_none(), "{} runs already", self.name);
        let mut command = match &self.clock {
            Some(clock) => clock.command(Path::new(PROGRAM)),
            None => Command::new(PROGRAM),
        };
        command
            .env(TEMPORARY, temporary(&self.folder))
            .arg("--no-defaults")
            .args(run_as())
            .arg(format!("--datadir={}", self.folder.join("data").display()))
            .args([
                &format!("--port={}", self.port),
                "--bind-address=127.0.0.1",
                "--skip-name-resolve",
                // Relative to the data folder: a full path may be longer than a socket address can be.
                "--socket=m.sock",
                "--pid-file=m.pid",
                "--character-set-server=utf8mb4",
                "--max-connections=500",
                "--innodb-buffer-pool-size=64M",
                "--innodb-log-file-size=24M",
                "--performance-schema=OFF",
                "--skip-log-bin",
            ]);
        if let Flush::Soon = self.flush {
            command.arg("--innodb-flush-log-at-trx-commit=2");
        }
        command.arg(format!("--init-file={}", self.folder.join("users.sql").display()));
        let mut process = ServerProcess::spawn(&self.name, command, Signal::SIGTERM)?;
        let ready = process
            .wait_ready(START_WITHIN, async || self.execute("SELECT 1").await)
            .await;
        *slot = Some(process);
        ready
    }

    /// Stops the server in order.
    pub async fn stop(&self) -> Result<()> {
        match self.process.lock().await.take() {
            Some(process) => process.stop(Duration::from_secs(30)).await.map(drop),
            None => Ok(()),
        }
    }

    /// `kill -9`.
    pub async fn kill(&self) -> Result<()> {
        match self.process.lock().await.take() {
            Some(process) => process.kill().await.map(drop),
            None => Ok(()),
        }
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

    /// Runs statements as administrator, outside of any database.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        let url = format!("mysql://{USER}:{PASSWORD}@{}/mysql", self.address());
        let sql = sql.to_owned();
        tokio::task::spawn_blocking(move || {
            let mut connection = MysqlConnection::establish(&url)?;
            connection.batch_execute(&sql).with_context(|| sql.clone())
        })
        .await?
    }
}

/// A server that starts removes all temporary tables from this folder, those of other servers, too.
fn temporary(folder: &Path) -> PathBuf {
    folder.join("tmp")
}

fn create_data(folder: &Path) -> Result<()> {
    let users = format!(
        "CREATE OR REPLACE USER {USER}@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON *.* TO {USER}@'127.0.0.1' WITH GRANT OPTION;\n"
    );
    fs::write(folder.join("users.sql"), users)?;
    fs::create_dir(temporary(folder))?;
    let output = Command::new("mariadb-install-db")
        .env(TEMPORARY, temporary(folder))
        .args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ])
        .args(run_as())
        .arg(format!("--datadir={}", folder.join("data").display()))
        .output()
        .context("run mariadb-install-db")?;
    ensure!(
        output.status.success(),
        "mariadb-install-db failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// MariaDB refuses to run as root by accident; in a container that has only root it is no accident.
fn run_as() -> Option<&'static str> {
    nix::unistd::geteuid().is_root().then_some("--user=root")
}
