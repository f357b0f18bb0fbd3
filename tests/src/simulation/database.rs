//! The connection that all conductors of all schedules of a process share: a database in memory, with a clock of its own.
//!
//! Tables are made once and emptied before each schedule. SQLite's `julianday`, by which our statements ask for the time, is
//! replaced on this connection: it tells the schedule's virtual time, and the offset of whoever asks.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use diesel::connection::SimpleConnection as _;
use diesel::prelude::*;
use diesel::sql_types::Text;
use magnum_common::model::ClusterTemplate;
use magnum_db::{AnyConnection, Database, DatabaseUrl, PoolOptions, migrate, write};

use super::plan::DRIVERS;

/// What the schedule's clock tells at its begin, in milliseconds since 1970.
pub const EPOCH_MS: i64 = 1_800_000_000_000;

#[diesel::declare_sql_function]
#[allow(missing_docs, unused_qualifications, reason = "made by the macro")]
extern "SQL" {
    fn julianday(when: Text) -> Double;
}

/// The database of a process.
pub struct Store {
    conn: Mutex<AnyConnection>,
    now_ms: Arc<AtomicI64>,
    empty: String,
    /// Only its name and options are used: its work goes through seams.
    pub base: Database,
}

#[derive(QueryableByName)]
struct Table {
    #[diesel(sql_type = Text)]
    name: String,
}

impl Store {
    /// With all tables, and a template for each driver.
    pub fn new() -> Result<Self> {
        let now_ms = Arc::new(AtomicI64::new(EPOCH_MS));
        let mut sqlite = SqliteConnection::establish(":memory:")?;
        sqlite.batch_execute("PRAGMA foreign_keys = ON")?;
        let clock = Arc::clone(&now_ms);
        julianday_utils::register_nondeterministic_impl(&mut sqlite, move |_: String| {
            days(clock.load(Ordering::Relaxed))
        })?;
        let mut conn = AnyConnection::Sqlite(sqlite);
        migrate::upgrade_on(&mut conn)?;
        for driver in DRIVERS {
            write::cluster_templates::insert(&mut conn, &template(driver))?;
        }
        let tables: Vec<Table> =
            diesel::sql_query("SELECT name FROM sqlite_master WHERE type = 'table'").load(&mut conn)?;
        let kept = [
            "alembic_version",
            "__diesel_schema_migrations",
            "cluster_template",
        ];
        let emptied = tables.iter().filter(|table| !kept.contains(&table.name.as_str()));
        let deletions: Vec<String> = emptied
            .map(|table| format!("DELETE FROM {};", table.name))
            .collect();
        let empty = format!("BEGIN; {} COMMIT;", deletions.concat());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let base = runtime.block_on(Database::open(
            DatabaseUrl::parse("sqlite://").context("url")?,
            PoolOptions::default(),
        ))?;
        Ok(Self {
            conn: Mutex::new(conn),
            now_ms,
            empty,
            base,
        })
    }

    /// As it was at its begin.
    pub fn empty(&self) -> Result<()> {
        let empty = self.empty.clone();
        self.with(EPOCH_MS, |conn| conn.batch_execute(&empty))?;
        Ok(())
    }

    /// Runs `work` while the database's clock tells `now_ms`.
    pub fn with<T>(&self, now_ms: i64, work: impl FnOnce(&mut AnyConnection) -> T) -> T {
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        self.now_ms.store(now_ms, Ordering::Relaxed);
        work(&mut conn)
    }
}

/// As SQLite counts. A millisecond is far more than what is lost.
#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
fn days(now_ms: i64) -> f64 {
    now_ms as f64 / 86_400_000.0 + 2_440_587.5
}

/// The uuid of the template that names this driver.
pub fn template_of(driver: &str) -> String {
    let number = DRIVERS.iter().position(|one| *one == driver).unwrap_or_default();
    format!("c0ffee00-1111-4222-8333-{number:012}")
}

fn template(driver: &str) -> ClusterTemplate {
    let mut template = ClusterTemplate::new(template_of(driver).into());
    template.project_id = Some("p".into());
    template.name = Some(driver.into());
    template.coe = Some("kubernetes".into());
    template.cluster_distro = Some("ubuntu".into());
    template.driver = Some(driver.into());
    template.image_id = Some("image".into());
    template.flavor_id = Some("small".into());
    template.master_flavor_id = Some("big".into());
    template
}
