//! One database per test, on each of the three backends.
//!
//! [`on_every_database!`](crate::on_every_database) writes a test once and runs it on SQLite, MariaDB and
//! PostgreSQL. URLs are in SQLAlchemy's form, as they stand in a `magnum.conf`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, MysqlConnection, PgConnection, SqliteConnection};

use crate::run_dir::run_dir;
use crate::{galera, mariadb, postgres};

/// The databases that the programs support.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A file.
    Sqlite,
    /// MariaDB, standing for MySQL too.
    Mariadb,
    /// PostgreSQL.
    Postgres,
}

impl Backend {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Sqlite, Self::Mariadb, Self::Postgres];

    /// The name used in SQL files and test names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Mariadb => "mysql",
            Self::Postgres => "postgres",
        }
    }
}

/// A database of one test. It goes with the server at the end of the run.
#[derive(Debug, Clone)]
pub struct TestDatabase {
    /// On which backend.
    pub backend: Backend,
    /// Its name in the server; the file name for SQLite.
    pub name: String,
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    File(PathBuf),
    Server(SocketAddr),
}

impl TestDatabase {
    /// A database without any table, on the shared server of its backend.
    pub async fn empty(backend: Backend) -> Result<Self> {
        match backend {
            Backend::Sqlite => Self::sqlite(),
            Backend::Mariadb => Self::on_mariadb(mariadb::Mariadb::shared().await?).await,
            Backend::Postgres => Self::on_postgres(postgres::Postgres::shared().await?).await,
        }
    }

    /// A new file.
    pub fn sqlite() -> Result<Self> {
        let name = format!("{}.sqlite", new_name());
        let file = run_dir()?.folder("sqlite")?.join(&name);
        Ok(Self {
            backend: Backend::Sqlite,
            name,
            place: Place::File(file),
        })
    }

    /// A new empty database on this server.
    pub async fn on_mariadb(server: &mariadb::Mariadb) -> Result<Self> {
        let name = new_name();
        server
            .execute(&format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"))
            .await?;
        Ok(Self {
            backend: Backend::Mariadb,
            name,
            place: Place::Server(server.address()),
        })
    }

    /// A new empty database of a Galera cluster, reached at this address: a node's, or a balancer's.
    pub async fn on_galera(address: SocketAddr) -> Result<Self> {
        let name = new_name();
        galera::execute(
            address,
            &format!("CREATE DATABASE IF NOT EXISTS {name} CHARACTER SET utf8mb4"),
        )
        .await?;
        Ok(Self {
            backend: Backend::Mariadb,
            name,
            place: Place::Server(address),
        })
    }

    /// The same database, reached at another address.
    #[must_use]
    pub fn at(&self, address: SocketAddr) -> Self {
        Self {
            place: Place::Server(address),
            ..self.clone()
        }
    }

    /// A new empty database on this server.
    pub async fn on_postgres(server: &postgres::Postgres) -> Result<Self> {
        let name = new_name();
        server.execute(&format!("CREATE DATABASE {name}")).await?;
        Ok(Self {
            backend: Backend::Postgres,
            name,
            place: Place::Server(server.address()),
        })
    }

    /// SQLAlchemy's URL, as `[database] connection` holds it.
    pub fn url(&self) -> String {
        match &self.place {
            Place::File(file) => format!("sqlite:///{}", file.display()),
            Place::Server(address) => self.url_via(*address),
        }
    }

    /// The same through another address, such as a [`crate::chaos_proxy::ChaosProxy`]'s. SQLite has no
    /// address; its URL stays the same.
    pub fn url_via(&self, address: SocketAddr) -> String {
        match self.backend {
            Backend::Sqlite => self.url(),
            Backend::Mariadb => {
                format!(
                    "mysql+pymysql://{}:{}@{address}/{}?charset=utf8mb4",
                    mariadb::USER,
                    mariadb::PASSWORD,
                    self.name
                )
            }
            Backend::Postgres => format!(
                "postgresql+psycopg2://{}:{}@{address}/{}",
                postgres::USER,
                postgres::PASSWORD,
                self.name
            ),
        }
    }

    /// The URL without SQLAlchemy's additions, for `diesel` and command line tools; a plain path for SQLite.
    pub fn plain_url(&self) -> String {
        match &self.place {
            Place::File(file) => file.display().to_string(),
            Place::Server(address) if self.backend == Backend::Mariadb => {
                format!(
                    "mysql://{}:{}@{address}/{}",
                    mariadb::USER,
                    mariadb::PASSWORD,
                    self.name
                )
            }
            Place::Server(address) => format!(
                "postgres://{}:{}@{address}/{}",
                postgres::USER,
                postgres::PASSWORD,
                self.name
            ),
        }
    }

    /// Runs statements in it, past the programs.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        let (backend, url, sql) = (self.backend, self.plain_url(), sql.to_owned());
        tokio::task::spawn_blocking(move || {
            match backend {
                // The programs under test may be writing at this moment.
                Backend::Sqlite => SqliteConnection::establish(&url)?
                    .batch_execute(&format!("PRAGMA busy_timeout = 10000; {sql}")),
                Backend::Mariadb => MysqlConnection::establish(&url)?.batch_execute(&sql),
                Backend::Postgres => PgConnection::establish(&url)?.batch_execute(&sql),
            }
            .with_context(|| sql.clone())
        })
        .await?
    }

    /// Where its server listens; an error for SQLite.
    pub fn address(&self) -> Result<SocketAddr> {
        match &self.place {
            Place::File(_) => None.context("SQLite has no address"),
            Place::Server(address) => Ok(*address),
        }
    }

    /// Its file; an error for the servers.
    pub fn file(&self) -> Result<&PathBuf> {
        match &self.place {
            Place::File(file) => Ok(file),
            Place::Server(_) => None.with_context(|| format!("{:?} has no file", self.backend)),
        }
    }
}

fn new_name() -> String {
    format!("test_{:016x}", rand::random::<u64>())
}

/// Writes a test once and runs it on all three backends: `name::sqlite`, `name::mariadb`, `name::postgres`.
///
/// ```text
/// on_every_database! {
///     /// A doc comment may stand here.
///     async fn a_row_survives(database: TestDatabase) { … }
/// }
/// ```
/// The body gets an *empty* database. It may return `anyhow::Result<()>` by writing `-> Result` types itself.
#[macro_export]
macro_rules! on_every_database {
    ($($(#[$meta:meta])* async fn $name:ident($database:ident : $ty:ty) $(-> $out:ty)? $body:block)+) => { $(
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports, reason = "a test need not use what stands around it")]
            use super::*;

            async fn on($database: $ty) $(-> $out)? $body

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() $(-> $out)? {
                on($crate::TestDatabase::empty($crate::Backend::Sqlite).await.expect("SQLite")).await
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn mariadb() $(-> $out)? {
                on($crate::TestDatabase::empty($crate::Backend::Mariadb).await.expect("MariaDB")).await
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() $(-> $out)? {
                on($crate::TestDatabase::empty($crate::Backend::Postgres).await.expect("PostgreSQL")).await
            }
        }
    )+ };
}
