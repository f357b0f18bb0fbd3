//! Where the cases with the same options are played, all at once: each has a cluster of its own, with uuids of its own, in
//! one deployment with one conductor.

use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_conductor::seal::{ALWAYS, Beginning, JournalKey};
use magnum_db::Database;
use magnum_tests::deployment::Deployment;
use magnum_tests::ports::free_port;
use magnum_tests::{Backend, probe};
use serde_json::{Map, Value, json};

use super::super::replay::Columns;
use super::case::{Case, options};
use super::fixtures::{Scene, fixtures};
use super::request::{Request, request};
use super::rows::{self, Rows, is_created};
use super::words;
use super::worlds::Worlds;

pub const PATIENCE: Duration = Duration::from_secs(300);

/// What came of a case.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The rows as they are given.
    pub given: Columns,
    /// The state of the operation; of a look whether it was made.
    pub state: String,
    /// Why the operation failed, or waits.
    pub reason: Value,
    /// What the driver asked the cloud for, in order.
    pub calls: Vec<Value>,
    /// The rows afterwards.
    pub after: Columns,
}

/// A deployment with the clusters of some cases.
pub struct Stage {
    pub deployment: Deployment,
    pub db: Database,
    pub clusters: Vec<Prepared>,
    worlds: Worlds,
    key: JournalKey,
}

/// A case whose rows and world are there.
pub struct Prepared {
    pub case: Case,
    pub rows: Rows,
    /// What asks for the operation; none of a look.
    pub request: Option<Request>,
    given: Columns,
}

impl Prepared {
    /// The uuid of its cluster.
    pub fn cluster(&self) -> &str {
        self.rows.cluster.uuid.as_str()
    }
}

impl Stage {
    /// Plays the cases, which have the same options, and are all looks or all operations.
    ///
    /// The conductor starts when the rows are there. Its first round of looks is the only one, as the next would come in an
    /// hour: so each cluster that is in progress then is looked at once.
    pub async fn play(backend: Backend, cases: Vec<Case>) -> Result<Vec<Outcome>> {
        let first = cases.first().context("a case")?.clone();
        let mut stage = Self::new(backend, &first).await?;
        for case in cases {
            stage.prepare(case).await?;
        }
        let mut conductor = stage.deployment.conductor("one").await?;
        let ends = if first.is_look() {
            stage.looks_made().await?
        } else {
            stage.operations_made().await?
        };
        conductor.terminate(PATIENCE).await?;
        let mut outcomes = Vec::new();
        for (number, (state, reason)) in ends.into_iter().enumerate() {
            outcomes.push(stage.outcome(number, state, reason.as_deref()).await?);
        }
        Ok(outcomes)
    }

    async fn new(backend: Backend, case: &Case) -> Result<Self> {
        let mut deployment = Deployment::new(backend).await?;
        let worlds = Worlds::in_deployment(&mut deployment).await?;
        deployment.set("DEFAULT", "debug", false);
        // What fails for now shall be seen waiting.
        deployment.set("conductor", "operation_retry_initial", 3600);
        deployment.set("conductor", "operation_retry_max_interval", 3600);
        deployment.set("conductor", "operation_lease", 30);
        deployment.set("conductor", "status_poll_interval", 3600);
        if case.is_look() {
            // The driver of a cluster that is gone was recorded with this one.
            deployment.set("certificates", "cert_manager_type", "barbican");
        }
        // Every trust is there already, so nobody asks Keystone for one.
        let nowhere = format!("http://127.0.0.1:{}/v3", free_port()?);
        for (section, option, value) in [
            ("keystone_auth", "auth_type", "password"),
            ("keystone_auth", "auth_url", nowhere.as_str()),
            ("keystone_auth", "username", "magnum"),
            ("keystone_auth", "password", "secret"),
            ("keystone_auth", "project_name", "service"),
            ("keystone_auth", "user_domain_id", "default"),
            ("keystone_auth", "project_domain_id", "default"),
            ("trust", "trustee_domain_name", "magnum"),
            ("trust", "trustee_domain_admin_name", "trustee_domain_admin"),
            ("trust", "trustee_domain_admin_password", "secret"),
        ] {
            deployment.set(section, option, value);
        }
        for ((section, option), value) in options(&fixtures()?["conf"]).into_iter().chain(case.options()) {
            deployment.set(&section, &option, text(&deployment, &option, &value)?);
        }
        Ok(Self {
            db: probe::open(&deployment.database).await?,
            clusters: Vec::new(),
            worlds,
            key: bound(JournalKey::load_or_create(
                &deployment.folder.join("journal.key"),
            )?),
            deployment,
        })
    }

    async fn prepare(&mut self, case: Case) -> Result<()> {
        let number = self.clusters.len();
        let scene = Scene::of(&case, number)?;
        let mut rows = Rows::given(&scene)?;
        let given = rows.columns(number)?;
        let unrequested = if is_created(&case) {
            rows.unrequested()
        } else {
            Map::new()
        };
        let request = if case.is_look() {
            None
        } else {
            Some(request(&case, &mut rows, &scene.fixtures["context"])?)
        };
        let world = scene.world(&unrequested, case.is_look());
        self.worlds.put(rows.cluster.uuid.as_str(), &world)?;
        rows.put(&self.db, &self.key, is_created(&case)).await?;
        self.clusters.push(Prepared {
            case,
            rows,
            request,
            given,
        });
        Ok(())
    }

    async fn outcome(&self, number: usize, state: String, reason: Option<&str>) -> Result<Outcome> {
        let prepared = &self.clusters[number];
        let calls = json!(self.worlds.calls(prepared.cluster())?);
        let calls = words::shared(number, &calls)?;
        Ok(Outcome {
            given: prepared.given.clone(),
            state,
            reason: words::shared(number, &json!(reason))?,
            calls: calls.as_array().cloned().unwrap_or_default(),
            after: rows::read(&self.db, &prepared.rows, number).await?,
        })
    }
}

/// An option's value in `magnum.conf`; some name a file with a recorded content.
fn text(deployment: &Deployment, option: &str, value: &Value) -> Result<String> {
    if value != "<file>" {
        return Ok(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let content = fixtures()?["files"][option].as_str().context("a content")?;
    let path = deployment.folder.join(option);
    std::fs::write(&path, content)?;
    Ok(path.display().to_string())
}

/// As the conductors have it, which have started on an empty database.
fn bound(key: JournalKey) -> JournalKey {
    key.begun().begin(Beginning::BoundValues, ALWAYS);
    key
}
