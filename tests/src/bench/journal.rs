//! The journalled contestant: the whole conductor, with its journal on MariaDB.
//!
//! Options are the defaults but two: operations are built by a driver that only sleeps, one at a time, so that
//! what is measured is accepting and not the driver; and a short shutdown, for the same reason. The database
//! server has MariaDB's defaults for durability: each commit is flushed to the disk before it is answered
//! (`innodb_flush_log_at_trx_commit = 1`), and there is no binary log.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use diesel::sql_types::BigInt;
use diesel::{Connection as _, MysqlConnection, QueryableByName, RunQueryDsl as _, sql_query};
use magnum_common::model::ClusterTemplate;
use magnum_common::secret::Secret;
use magnum_config::DatabaseSection;
use magnum_db::{self as db, Database, DbError};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::Instant;

use super::Environment;
use super::load::recorded;
use crate::TestDatabase;
use crate::builders::ConfigFile;
use crate::rabbitmq::Vhost;
use crate::run_dir::run_dir;

/// How often the journal is looked at: the resolution of latencies.
const LOOK: Duration = Duration::from_millis(1);

const MANIFEST: &str = r#"[driver]
name = "sleeper"
version = "1.0.0"
engine = "exec"

[[provides]]
server_type = "vm"
os = "ubuntu"
coe = "kubernetes"

[masters]
sizes = "any"

[exec]
program = "sleeper.sh"
timeout = 86400
"#;

/// A database with all tables and the template that the message names, and a conductor's configuration.
pub(super) struct Journal {
    database: TestDatabase,
    config: PathBuf,
}

impl Journal {
    pub(super) async fn prepare(environment: &Environment<'_>, vhost: &Vhost) -> Result<Self> {
        let folder = run_dir()?.folder("journalled")?;
        let database = TestDatabase::on_mariadb(environment.database).await?;
        let section = DatabaseSection {
            connection: Secret::new(database.url()),
            ..DatabaseSection::default()
        };
        db::migrate::upgrade(&section).await?;
        let template = template()?;
        Database::connect(&section)
            .await?
            .transaction::<_, DbError, _>(move |conn| db::write::cluster_templates::insert(conn, &template))
            .await?;
        let config = ConfigFile::new()
            .set("DEFAULT", "transport_url", vhost.transport_url())
            .set("DEFAULT", "state_path", folder.display())
            .set("database", "connection", database.url())
            .set("drivers", "driver_path", sleeper(&folder)?.display())
            .set("conductor", "operation_workers", 1)
            .set("certificates", "cert_manager_type", "x509keypair")
            .set("certificates", "key_type", "ecdsa-p256")
            .set("conductor", "shutdown_timeout", 1)
            .write(&folder.join("magnum.conf"))?;
        Ok(Self { database, config })
    }

    /// The conductor.
    pub(super) fn conductor(&self, environment: &Environment<'_>) -> Command {
        let mut command = Command::new(&environment.program);
        command.args(["conductor", "--config-file"]).arg(&self.config);
        command
    }

    /// Looks on until the journal has `until` operations. Returns when each of those after the first `seen` was
    /// there.
    pub(super) async fn watch(&self, seen: u64, until: u64, within: Duration) -> Result<Vec<Instant>> {
        let url = self.database.plain_url();
        let deadline = Instant::now() + within;
        tokio::task::spawn_blocking(move || {
            let mut connection = MysqlConnection::establish(&url)?;
            let mut moments = Vec::new();
            while seen + (moments.len() as u64) < until {
                // Rows are numbered from 1 without gaps as long as nothing is rolled back; `check` counts them.
                let there = number(
                    &mut connection,
                    "SELECT COALESCE(MAX(id), 0) AS n FROM conductor_operation",
                )?;
                let now = Instant::now();
                let new = there.saturating_sub(seen).min(until - seen);
                moments.resize(usize::try_from(new)?.max(moments.len()), now);
                ensure!(
                    now < deadline,
                    "{there} of {until} casts are recorded after {within:?} (see --limit)"
                );
                #[expect(clippy::disallowed_methods, reason = "a thread of its own")]
                std::thread::sleep(LOOK);
            }
            Ok(moments)
        })
        .await?
    }

    /// An error unless `expected` casts are recorded as accepted, each with its cluster and its two groups.
    pub(super) async fn check(&self, expected: u64) -> Result<()> {
        let url = self.database.plain_url();
        tokio::task::spawn_blocking(move || {
            let mut connection = MysqlConnection::establish(&url)?;
            for (what, rows, query) in [
                ("operations", 1, "conductor_operation WHERE state <> 'refused'"),
                ("clusters", 1, "cluster"),
                ("node groups", 2, "nodegroup"),
            ] {
                let found = number(&mut connection, &format!("SELECT COUNT(*) AS n FROM {query}"))?;
                ensure!(found == rows * expected, "{found} {what} for {expected} casts");
            }
            Ok(())
        })
        .await?
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

/// The template of the recorded cluster.
pub(super) fn template() -> Result<ClusterTemplate> {
    let request = recorded()?;
    let text = |pointer: &str| {
        request.args["cluster"]
            .pointer(pointer)
            .and_then(Value::as_str)
            .with_context(|| format!("the recorded cluster has no {pointer}"))
    };
    let mut template = ClusterTemplate::new(text("/magnum_object.data/cluster_template_id")?.into());
    template.project_id = Some(text("/magnum_object.data/project_id")?.to_owned());
    template.name = Some("bench".to_owned());
    template.coe = Some("kubernetes".to_owned());
    template.cluster_distro = Some("ubuntu".to_owned());
    template.driver = Some("sleeper".to_owned());
    template.image_id = Some("image".to_owned());
    Ok(template)
}

/// A folder with a driver that never gets anything done.
fn sleeper(folder: &Path) -> Result<PathBuf> {
    let drivers = folder.join("drivers");
    let driver = drivers.join("sleeper");
    std::fs::create_dir_all(&driver)?;
    std::fs::write(driver.join("driver.toml"), MANIFEST)?;
    let program = driver.join("sleeper.sh");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 86400\n")?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(drivers)
}
