//! A private PostgreSQL server, from the installed package, reached over TCP only.
//!
//! PostgreSQL refuses to run as root, so under root it runs as the package's user `postgres`; its data then
//! lie outside of the checkout when that user may not enter it. Everything committed survives a `kill -9`
//! of the server, not a loss of power (see [`crate::mariadb`]).

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};
use nix::sys::signal::Signal;
use tokio::sync::{Mutex, OnceCell};

use crate::fake_clock::FakeClock;
use crate::ports::free_port;
use crate::run_dir::run_dir;
use crate::server::ServerProcess;

/// Administrator, and the only user.
pub const USER: &str = "magnum";
/// Password of [`USER`]; the server trusts any, but URLs of the field have one.
pub const PASSWORD: &str = "postgres-secret";

const PACKAGES: &str = "/usr/lib/postgresql";
const SYSTEM_USER: &str = "postgres";
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
            Some(clock) => unprivileged_command(&clock.command(&program)),
            None => unprivileged(&program),
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

    /// `kill -9`.
    pub async fn kill(&self) -> Result<()> {
        let Some(process) = self.process.lock().await.take() else {
            return Ok(());
        };
        process.kill().await?;
        // The lock names a process that is gone; its number may be taken by then, and the server would
        // refuse to start.
        fs::remove_file(self.folder.join("data/postmaster.pid")).ok();
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

fn create_data(programs: &Path) -> Result<PathBuf> {
    let run = run_dir()?;
    let inside = run.folder("postgres")?;
    let folder = if may_enter(&inside) {
        inside
    } else {
        run.outside_folder("postgres")?
    };
    if nix::unistd::geteuid().is_root() {
        let user = nix::unistd::User::from_name(SYSTEM_USER)?
            .context("there is no user postgres, although its package is installed")?;
        std::os::unix::fs::chown(&folder, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
    }
    let output = unprivileged(&programs.join("initdb"))
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

/// Whether the server's user can enter a folder: every folder on the way must let it pass.
fn may_enter(folder: &Path) -> bool {
    unprivileged(Path::new("test"))
        .arg("-x")
        .arg(folder)
        .current_dir("/")
        .status()
        .is_ok_and(|status| status.success())
}

/// A command that runs as the package's user when we are root, and as ourselves otherwise.
fn unprivileged(program: &Path) -> Command {
    unprivileged_command(&Command::new(program))
}

fn unprivileged_command(wanted: &Command) -> Command {
    if !nix::unistd::geteuid().is_root() {
        let mut command = Command::new(wanted.get_program());
        command.args(wanted.get_args());
        return command;
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            &format!("--reuid={SYSTEM_USER}"),
            &format!("--regid={SYSTEM_USER}"),
            "--init-groups",
            "--",
        ])
        .arg(wanted.get_program())
        .args(wanted.get_args());
    command
}
