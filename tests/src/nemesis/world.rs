//! The deployment that faults meet: servers of its own, which nobody else's tests feel, and every program on a host of its own.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_db::Database;
use nix::sys::signal::Signal;
use tokio::sync::{Mutex, MutexGuard};

use super::host::{ApiHost, ConductorHost};
use super::kind::{Place, Resource};
use super::plan::Shape;
use crate::deployment::Deployment;
use crate::fake_clock::FakeClock;
use crate::full_disk::FullDisk;
use crate::mariadb::Mariadb;
use crate::postgres::Postgres;
use crate::process::Launch;
use crate::rabbitmq::Rabbitmq;
use crate::rest::Rest;
use crate::run_dir::run_dir;
use crate::server::signal_group;
use crate::{Backend, TestDatabase, probe, wait};

/// How long everything may take to come up at first.
const START_WITHIN: Duration = Duration::from_secs(120);

/// The server that keeps the rows.
#[derive(Debug)]
pub enum DatabaseServer {
    /// There is none: SQLite.
    File,
    /// MariaDB.
    Mariadb(Mariadb),
    /// PostgreSQL.
    Postgres(Postgres),
}

impl DatabaseServer {
    /// Starts it on the data that it has.
    pub async fn start(&self) -> Result<()> {
        match self {
            Self::File => Ok(()),
            Self::Mariadb(server) => server.start().await,
            Self::Postgres(server) => server.start().await,
        }
    }

    /// Stops it in good order.
    pub async fn stop(&self) -> Result<()> {
        match self {
            Self::File => Ok(()),
            Self::Mariadb(server) => server.stop().await,
            Self::Postgres(server) => server.stop().await,
        }
    }

    /// `kill -9`.
    pub async fn kill(&self) -> Result<()> {
        match self {
            Self::File => Ok(()),
            Self::Mariadb(server) => server.kill().await,
            Self::Postgres(server) => server.kill().await,
        }
    }

    /// Sends all its processes a signal. Returns the first one's number.
    pub async fn signal(&self, signal: Signal) -> Result<u32> {
        let pid = match self {
            Self::File => None.context("a file is no process")?,
            Self::Mariadb(server) => server.pid().await?,
            Self::Postgres(server) => server.pid().await?,
        };
        signal_group(pid, signal);
        Ok(pid)
    }
}

/// All of it.
pub struct World {
    /// What it was made for.
    pub shape: Shape,
    /// The server that keeps the rows.
    pub server: DatabaseServer,
    /// The clock of its host.
    pub server_clock: FakeClock,
    /// The broker.
    pub broker: Rabbitmq,
    /// What all programs share.
    pub deployment: Deployment,
    /// Conductors.
    pub conductors: Vec<ConductorHost>,
    /// The place of one that joins for a while.
    pub guest: ConductorHost,
    /// APIs.
    pub apis: Vec<ApiHost>,
    /// The disk of SQLite's file.
    pub disk: Option<FullDisk>,
    /// Connections to the database that no fault of a line meets.
    pub direct: Database,
    taken: BTreeMap<(Place, Resource), Mutex<()>>,
}

impl World {
    /// Starts everything and waits for it.
    pub async fn start(shape: Shape) -> Result<Self> {
        let broker = Rabbitmq::dedicated().await?;
        // PostgreSQL's user has to read it, who may not enter every checkout.
        let server_clock = server_clock()?;
        let (server, database) = match shape.backend {
            Backend::Sqlite => (DatabaseServer::File, TestDatabase::sqlite()?),
            Backend::Mariadb => {
                let server = Mariadb::with_clock(&server_clock).await?;
                let database = TestDatabase::on_mariadb(&server).await?;
                (DatabaseServer::Mariadb(server), database)
            }
            Backend::Postgres => {
                let server = Postgres::with_clock(&server_clock).await?;
                let database = TestDatabase::on_postgres(&server).await?;
                (DatabaseServer::Postgres(server), database)
            }
        };
        let disk = match shape.backend {
            Backend::Sqlite => Some(FullDisk::new(&database.name)?),
            Backend::Mariadb | Backend::Postgres => None,
        };
        let mut deployment = Deployment::on(database, broker.vhost().await?).await?;
        options(&mut deployment);
        let (mut conductors, mut apis) = (Vec::new(), Vec::new());
        for number in 0..shape.conductors {
            conductors.push(ConductorHost::new(&deployment, number).await?);
        }
        for _ in 0..shape.apis {
            apis.push(ApiHost::new(&deployment).await?);
        }
        let places = conductors.len();
        let world = Self {
            shape,
            server,
            server_clock,
            broker,
            guest: ConductorHost::new(&deployment, places).await?,
            direct: probe::open(&deployment.database).await?,
            deployment,
            conductors,
            apis,
            disk,
            taken: resources(shape),
        };
        for host in &world.conductors {
            host.start(&world.deployment, world.disk.as_ref()).await?;
        }
        for number in 0..world.apis.len() {
            world.start_api(number)?;
        }
        world.is_up(START_WITHIN).await?;
        Ok(world)
    }

    /// Starts an API, and does not wait for it.
    pub fn start_api(&self, number: usize) -> Result<()> {
        let hold = |launch: Launch| match &self.disk {
            Some(disk) => disk.hold(launch),
            None => launch,
        };
        self.apis[number].start(&self.deployment, hold)
    }

    /// Waits until every conductor consumes and an API answers.
    pub async fn is_up(&self, within: Duration) -> Result<()> {
        wait::until("all programs to be up", within, async || {
            let consumers = self
                .deployment
                .vhost
                .management()
                .consumers("magnum-conductor")
                .await?;
            ensure!(
                consumers >= self.conductors.len(),
                "{consumers} conductors consume"
            );
            for api in &self.apis {
                let rest = api.rest().context("an API is away")?;
                rest.get("/clustertemplates?limit=1").await?.expect(200)?;
            }
            Ok(())
        })
        .await
    }

    /// A client of an API that is there.
    pub fn rest(&self, choice: usize) -> Option<Rest> {
        let count = self.apis.len();
        (0..count).find_map(|step| self.apis[(choice + step) % count].rest())
    }

    /// Waits until no other fault has this.
    pub async fn take(&self, place: Place, resource: Resource) -> Result<MutexGuard<'_, ()>> {
        let lock = self.taken.get(&(place, resource));
        Ok(lock
            .with_context(|| format!("no {resource:?} at {place:?}"))?
            .lock()
            .await)
    }

    /// The same, if no other has it.
    pub fn try_take(&self, place: Place, resource: Resource) -> Option<MutexGuard<'_, ()>> {
        self.taken.get(&(place, resource))?.try_lock().ok()
    }

    /// A conductor's host.
    pub fn conductor(&self, place: Place) -> Result<&ConductorHost> {
        match place {
            Place::Conductor(number) => self.conductors.get(number),
            Place::Api(_) | Place::Servers => None,
        }
        .with_context(|| format!("no conductor at {place:?}"))
    }
}

/// The clock of the database's host. PostgreSQL's user, who may not enter every checkout, has to read it.
fn server_clock() -> Result<FakeClock> {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = run_dir()?.outside_folder("clock")?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755))?;
    FakeClock::new(&folder)
}

fn resources(shape: Shape) -> BTreeMap<(Place, Resource), Mutex<()>> {
    use super::kind::Kind;
    let all = Kind::ALL.into_iter().flat_map(|kind| {
        let places = kind.places(shape.conductors, shape.apis);
        places.into_iter().map(move |place| (place, kind.resource()))
    });
    all.map(|one| (one, Mutex::new(()))).collect()
}

/// Short terms, so that a fault of seconds is longer than them, and no more programs at once than a small machine can carry.
fn options(deployment: &mut Deployment) {
    for (section, option, value) in [
        ("conductor", "operation_workers", "8"),
        ("conductor", "operation_retry_max_attempts", "100"),
        ("conductor", "shutdown_timeout", "8"),
        ("DEFAULT", "service_down_time", "20"),
        ("api", "publish_timeout", "5"),
        ("api", "accept_wait", "2"),
        ("oslo_messaging_rabbit", "heartbeat_timeout_threshold", "8"),
        ("quotas", "max_clusters_per_project", "100000"),
    ] {
        deployment.set(section, option, value);
    }
}
