//! One database and one configuration for whole conductors, ours and Python's: the recorded template, and a driver
//! that does its work at once.
//!
//! Ours runs that driver as a program (`/bin/sh`, one process with its guard per call), Python's as a plug-in inside
//! of its process: the peer has the easier part.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use diesel::sql_types::{BigInt, Text};
use diesel::{Connection as _, MysqlConnection, QueryableByName, RunQueryDsl as _, sql_query};
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate, NodeGroup};
use magnum_common::secret::Secret;
use magnum_conductor::operations::JournalError;
use magnum_conductor::store;
use magnum_config::DatabaseSection;
use magnum_db::{self as db, Database, DbError};
use tokio::process::Command;
use tokio::time::Instant;

use super::Environment;
use super::journal::template;
use crate::TestDatabase;
use crate::builders::ConfigFile;
use crate::driver_record::DriverRecord;
use crate::python_magnum::{PythonMagnum, Release};
use crate::rabbitmq::Vhost;
use crate::run_dir::run_dir;

/// The name that the Python plug-in has, so that one template serves both.
const DRIVER: &str = "scripted";

const MANIFEST: &str = r#"[driver]
name = "scripted"
version = "1.0.0"
engine = "exec"

[[provides]]
server_type = "vm"
os = "ubuntu"
coe = "kubernetes"

[capabilities]
health = true

[masters]
sizes = "any"

[exec]
program = "driver.sh"
timeout = 60
observe_timeout = 60
observe_batch = 500
"#;

/// Has done at once what it is asked; of clusters that it looks at, nothing is new, and all are healthy. It looks at all of a batch together,
/// as one that lists the stacks of its cloud would.
const PROGRAM: &str = r#"#!/bin/sh
if [ "$MAGNUM_CALL" = observe ]; then
    grep -o '"cluster":{"uuid":"[^"]*"' | sed 's/.*:"\(.*\)"/{"cluster": "\1", "result": {}}/'
elif [ "$MAGNUM_CALL" = health ]; then
    grep -o '"cluster":{"uuid":"[^"]*"' \
        | sed 's/.*:"\(.*\)"/{"cluster": "\1", "result": {"cluster": {"health_status": "HEALTHY"}}}/'
else
    echo '{"result": {"cluster": {"status": "CREATE_COMPLETE", "stack_id": "bench"}}}'
fi
"#;

/// Rows of one statement that fills the tables.
const ROWS: usize = 500;

/// Where conductors work.
pub(super) struct Site {
    pub(super) database: TestDatabase,
    pub(super) vhost: Vhost,
    folder: PathBuf,
    config: ConfigFile,
    template: ClusterTemplate,
}

impl Site {
    /// Tables, the template, the driver; no conductor yet.
    pub(super) async fn prepare(environment: &Environment<'_>) -> Result<Self> {
        let mut template = template()?;
        template.driver = Some(DRIVER.to_owned());
        Self::with_template(environment, template).await
    }

    /// The same with another template.
    pub(super) async fn with_template(
        environment: &Environment<'_>,
        template: ClusterTemplate,
    ) -> Result<Self> {
        let folder = run_dir()?.folder("bench-site")?;
        let vhost = environment.broker.vhost().await?;
        let database = TestDatabase::on_mariadb(environment.database).await?;
        db::migrate::upgrade(&section(&database)).await?;
        let inserted = template.clone();
        Database::connect(&section(&database))
            .await?
            .transaction::<_, DbError, _>(move |conn| db::write::cluster_templates::insert(conn, &inserted))
            .await?;
        let config = ConfigFile::new()
            .set("DEFAULT", "transport_url", vhost.transport_url())
            .set("DEFAULT", "state_path", folder.display())
            .set("database", "connection", database.url())
            .set("drivers", "driver_path", drivers(&folder)?.display())
            .set("certificates", "cert_manager_type", "x509keypair")
            // A sweep in each run, and no second one.
            .set("conductor", "status_poll_interval", 3600)
            .set("kubernetes", "health_polling_interval", 0)
            .set("conductor", "shutdown_timeout", 1);
        Ok(Self {
            database,
            vhost,
            folder,
            config,
            template,
        })
    }

    /// The same with an option of our conductors.
    pub(super) fn with(mut self, section: &str, option: &str, value: impl std::fmt::Display) -> Self {
        self.config = self.config.set(section, option, value);
        self
    }

    /// The configuration, for conductors of other kinds.
    pub(super) fn config(&self) -> &ConfigFile {
        &self.config
    }

    /// The database as our own code opens it.
    pub(super) async fn open(&self) -> Result<Database> {
        Ok(Database::connect(&section(&self.database)).await?)
    }

    /// A conductor of ours called `name`, with this type of keys, and at most so many of them made ahead of need.
    pub(super) fn ours(
        &self,
        environment: &Environment<'_>,
        name: &str,
        key_type: &str,
        key_pool_size: u64,
    ) -> Result<Command> {
        let config = self
            .config
            .clone()
            .set("DEFAULT", "host", name)
            .set("certificates", "key_type", key_type)
            .set("certificates", "key_pool_size", key_pool_size)
            .write(&self.folder.join(format!("{name}.conf")))?;
        let mut command = Command::new(&environment.program);
        command.args(["conductor", "--config-file"]).arg(config);
        Ok(command)
    }

    /// The real Magnum beside it.
    pub(super) async fn python(&self) -> Result<PythonMagnum> {
        let record = DriverRecord::new(self.folder.join("record"));
        std::fs::create_dir_all(record.folder())?;
        PythonMagnum::on(Release::Magnum23, &self.config, record).await
    }

    /// Makes clusters that a driver has begun with, with the stacks `bench-0` and so on, each with its two default
    /// groups.
    pub(super) async fn fill(&self, count: u64, status: ClusterStatus) -> Result<()> {
        let template = &self.template;
        let database = self.open().await?;
        let mut left = usize::try_from(count)?;
        while left > 0 {
            let part = left.min(ROWS);
            left -= part;
            let (mut clusters, mut groups) = (Vec::new(), Vec::new());
            for number in (left..left + part).rev() {
                let mut cluster = Cluster::new(ClusterUuid::random(), template.uuid.clone());
                cluster.name = Some("bench".to_owned());
                cluster.project_id.clone_from(&template.project_id);
                cluster.stack_id = Some(format!("bench-{number}"));
                cluster.status = Some(status);
                for (name, role) in [("default-master", "master"), ("default-worker", "worker")] {
                    let project = template.project_id.as_deref().unwrap_or_default();
                    let mut group =
                        NodeGroup::new(NodeGroupUuid::random(), name, cluster.uuid.clone(), project, role);
                    group.status = Some(status);
                    group.is_default = true;
                    groups.push(group);
                }
                clusters.push(cluster);
            }
            database
                .transaction::<_, JournalError, _>(move |conn| {
                    store::clusters::insert(conn, &clusters)?;
                    Ok(store::node_groups::insert(conn, &groups)?)
                })
                .await?;
        }
        Ok(())
    }

    /// The number that a query selects as `n`.
    pub(super) async fn number(&self, query: &str) -> Result<u64> {
        let (url, query) = (self.database.plain_url(), query.to_owned());
        tokio::task::spawn_blocking(move || {
            let mut connection = MysqlConnection::establish(&url)?;
            number(&mut connection, &query)
        })
        .await?
    }

    /// Any cluster's uuid.
    pub(super) async fn cluster(&self) -> Result<String> {
        #[derive(QueryableByName)]
        struct Uuid {
            #[diesel(sql_type = Text)]
            uuid: String,
        }
        let url = self.database.plain_url();
        tokio::task::spawn_blocking(move || {
            let mut connection = MysqlConnection::establish(&url)?;
            let found = sql_query("SELECT uuid FROM cluster ORDER BY id LIMIT 1");
            Ok(found.get_result::<Uuid>(&mut connection)?.uuid)
        })
        .await?
    }

    /// Looks until the query selects at least `until`; returns when it did.
    pub(super) async fn wait_for(&self, query: &str, until: u64, within: Duration) -> Result<Instant> {
        let (url, query) = (self.database.plain_url(), query.to_owned());
        let deadline = Instant::now() + within;
        tokio::task::spawn_blocking(move || {
            let mut connection = MysqlConnection::establish(&url)?;
            loop {
                let there = number(&mut connection, &query)?;
                let now = Instant::now();
                if there >= until {
                    return Ok(now);
                }
                ensure!(
                    now < deadline,
                    "{there} of {until} after {within:?} (see --limit): {query}"
                );
                #[expect(clippy::disallowed_methods, reason = "a thread of its own")]
                std::thread::sleep(Duration::from_millis(5));
            }
        })
        .await?
    }

    /// Somebody who looks at the database without being counted.
    pub(super) async fn eye(&self) -> Result<Eye> {
        let url = self.database.plain_url();
        let connection = tokio::task::spawn_blocking(move || MysqlConnection::establish(&url)).await??;
        Ok(Eye {
            connection: Some(connection),
            asked: 0,
        })
    }
}

/// One connection for looking on, which knows how much of the server's counters is its own doing.
pub(super) struct Eye {
    /// Away while a query runs.
    connection: Option<MysqlConnection>,
    asked: u64,
}

impl Eye {
    /// The number that a query selects as `n`.
    pub(super) async fn number(&mut self, query: &'static str) -> Result<u64> {
        self.ask(move |connection| number(connection, query)).await
    }

    /// Statements that our programs have had executed since the server's start: all of them are prepared, but for the
    /// ends of transactions. The server's count of questions cannot tell how often they were prepared.
    pub(super) async fn statements_of_ours(&mut self) -> Result<u64> {
        let mut all = 0;
        for name in ["Com_stmt_execute", "Com_begin", "Com_commit", "Com_rollback"] {
            all += self.counter(name).await?;
        }
        Ok(all.saturating_sub(self.asked))
    }

    /// What Magnum's programs have asked since the server's start: they prepare nothing.
    pub(super) async fn questions_of_magnum(&mut self) -> Result<u64> {
        let all = self.counter("Questions").await?;
        Ok(all.saturating_sub(self.asked))
    }

    /// A counter of the server, as `SHOW GLOBAL STATUS` has it.
    pub(super) async fn counter(&mut self, name: &'static str) -> Result<u64> {
        #[derive(QueryableByName)]
        struct Status {
            #[diesel(sql_type = Text, column_name = "Value")]
            value: String,
        }
        let show = format!("SHOW GLOBAL STATUS LIKE '{name}'");
        self.ask(move |connection| {
            let status: Status = sql_query(show).get_result(connection)?;
            status.value.parse().context("a counter that is no number")
        })
        .await
    }

    async fn ask<T: Send + 'static>(
        &mut self,
        query: impl FnOnce(&mut MysqlConnection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.asked += 1;
        let mut connection = self.connection.take().context("a query that did not return")?;
        let (connection, answer) = tokio::task::spawn_blocking(move || {
            let answer = query(&mut connection);
            (connection, answer)
        })
        .await?;
        self.connection = Some(connection);
        answer
    }
}

fn section(database: &TestDatabase) -> DatabaseSection {
    DatabaseSection {
        connection: Secret::new(database.url()),
        ..DatabaseSection::default()
    }
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

fn number(connection: &mut MysqlConnection, query: &str) -> Result<u64> {
    Ok(u64::try_from(
        sql_query(query).get_result::<Number>(connection)?.n,
    )?)
}

fn drivers(folder: &Path) -> Result<PathBuf> {
    let drivers = folder.join("drivers");
    let driver = drivers.join(DRIVER);
    std::fs::create_dir_all(&driver)?;
    std::fs::write(driver.join("driver.toml"), MANIFEST)?;
    let program = driver.join("driver.sh");
    std::fs::write(&program, PROGRAM)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(drivers)
}
