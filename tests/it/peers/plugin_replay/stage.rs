//! Where the cases of a group are played: a deployment with the adopted packages, one conductor, and the doubles.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use diesel::prelude::*;
use magnum_conductor::operations::journal::read;
use magnum_conductor::operations::journal::{JournalError, OperationRow};
use magnum_db::{Database, schema};
use magnum_drivers::{ClusterType, MasterSizeRule};
use magnum_tests::deployment::Deployment;
use magnum_tests::plugin_world::{PluginWorld, adopted, shipped};
use magnum_tests::process::Program;
use magnum_tests::raw_rpc::RawRpc;
use magnum_tests::{Backend, probe, wait};
use serde_json::Value;

use super::case::Case;
use super::looks::{self, Look};
use super::rows::{self, CLUSTER};

pub const PATIENCE: Duration = Duration::from_secs(120);

/// Where a create waits until its rows are as given: all that the conductor does before the driver is called is done.
const GATE: &str = "cluster_create/create_cluster/before_intent";

/// Whose drivers play.
#[derive(Debug, Clone, Copy)]
pub enum Drivers {
    /// The adopted packages.
    Packages,
    /// The one of `deploy/drivers` that has the name of a package's.
    Ours,
}

/// A deployment for cases with the same options.
pub struct Stage {
    pub world: PluginWorld,
    pub db: Database,
    pub rpc: RawRpc,
    pub drivers: BTreeMap<String, Announced>,
    /// Clusters that were built for cases, by what they were built from.
    pub built: BTreeMap<String, Built>,
    gate: PathBuf,
    /// They run as long as this.
    _running: (Deployment, Program),
}

/// What a conductor has announced of a driver.
pub struct Announced {
    pub master_size: MasterSizeRule,
    pub resizes_masters: bool,
    systems: Vec<String>,
}

/// A cluster that was created: the doubles keep its world under the same name.
pub struct Built {
    pub stack: String,
    pub rows: rows::Rows,
    pub certificates: BTreeMap<String, String>,
}

impl Stage {
    /// For cases with these options. Looks at clusters are made when a case wants one, which has to be soon where the
    /// cases are looks.
    pub async fn new(
        backend: Backend,
        drivers: Drivers,
        options: &[(String, String, String)],
        looks: bool,
    ) -> Result<Self> {
        let mut deployment = Deployment::new(backend).await?;
        let world = PluginWorld::start(&mut deployment).await?;
        let drivers = match drivers {
            Drivers::Packages => adopted(&world).await?.to_owned(),
            Drivers::Ours => shipped(&deployment.folder)?,
        };
        deployment.set("drivers", "driver_path", drivers.display());
        // The recordings call drivers whatever the template's system is.
        deployment.set("drivers", "cluster_type_check", "lenient");
        deployment.set(
            "python",
            "runtime_directory",
            deployment.folder.display().to_string(),
        );
        deployment.set("DEFAULT", "debug", false);
        // What fails for now shall be seen waiting.
        deployment.set("conductor", "operation_retry_initial", 3600);
        deployment.set("conductor", "operation_retry_max_interval", 3600);
        deployment.set("conductor", "operation_lease", 30);
        deployment.set(
            "conductor",
            "status_poll_interval",
            if looks { 0.4 } else { 3600.0 },
        );
        // Its rounds are ten times as often.
        deployment.set(
            "kubernetes",
            "health_polling_interval",
            if looks { 4 } else { 36_000 },
        );
        for (section, option, value) in options {
            deployment.set(section, option, value);
        }
        let gate = deployment.folder.join("gate");
        deployment.set_environment("MAGNUM_TEST_CRASH_POINT", GATE);
        deployment.set_environment("MAGNUM_TEST_CRASH_POINT_FILE", &gate.display().to_string());
        let conductor = deployment.conductor("one").await?;
        let db = probe::open(&deployment.database).await?;
        Ok(Self {
            rpc: RawRpc::connect(&deployment.vhost).await?,
            drivers: announced(&db).await?,
            built: BTreeMap::new(),
            world,
            db,
            gate,
            _running: (deployment, conductor),
        })
    }

    /// The driver of a case: that of its file, or the one of the same package for the template's system.
    pub fn driver(&self, case: &Case) -> Result<String> {
        let own = self.drivers.get(&case.driver);
        let own = own.with_context(|| format!("the conductor has no driver {}", case.driver))?;
        let Some(system) = case.given()["template"]["cluster_distro"].as_str() else {
            return Ok(case.driver.clone());
        };
        let is_for = |driver: &Announced| driver.systems.iter().any(|one| one == system);
        let family = |name: &str| name.rsplit_once('_').map(|(family, _)| family.to_owned());
        let mut others = self.drivers.iter();
        let other = others.find(|(name, driver)| family(name) == family(&case.driver) && is_for(driver));
        Ok(match other {
            Some((name, _)) if !is_for(own) => name.clone(),
            _ => case.driver.clone(),
        })
    }

    /// Waits until a create stands before its driver's call. `false`: it has ended before.
    pub async fn at_gate(&self) -> Result<bool> {
        wait::until("the create at its driver's call", PATIENCE, async || {
            if self.gate.with_extension("reached").exists() {
                return Ok(true);
            }
            match self.operation().await? {
                Some(operation) if !is_open(&operation) => Ok(false),
                Some(operation) => bail!("{} at {:?}", operation.state, operation.step),
                None => bail!("no operation"),
            }
        })
        .await
    }

    /// Lets the create go on, and waits until its driver's call has ended.
    pub async fn pass_gate(&self) -> Result<OperationRow> {
        let (reached, go) = (
            self.gate.with_extension("reached"),
            self.gate.with_extension("go"),
        );
        std::fs::write(&go, "")?;
        let ended = self.ended().await;
        std::fs::remove_file(&reached)?;
        std::fs::remove_file(&go)?;
        ended
    }

    /// Waits until the operation's attempt has ended, well or not.
    pub async fn ended(&self) -> Result<OperationRow> {
        let waited = wait::until("the end of the driver's call", PATIENCE, async || {
            let operation = self.operation().await?.context("no operation")?;
            ensure!(
                !is_open(&operation),
                "{} at {:?}",
                operation.state,
                operation.step
            );
            Ok::<_, anyhow::Error>(operation)
        });
        waited.await
    }

    /// The cluster's only operation.
    pub async fn operation(&self) -> Result<Option<OperationRow>> {
        let wanted = || read::Wanted {
            clusters: Some(vec![CLUSTER.to_owned()]),
            limit: 2,
            ..read::Wanted::default()
        };
        let found = self.db.transaction(move |conn| read::list(conn, &wanted()));
        let mut found = found.await.map_err(|error: JournalError| error)?;
        ensure!(found.len() < 2, "{} operations", found.len());
        Ok(found.pop())
    }

    /// Waits for the `number`th look, and for its end.
    pub async fn looked(&self, look: Look, number: i64) -> Result<()> {
        wait::until("a look at the cluster", PATIENCE, async || {
            match looks::begun(&self.db, look).await? {
                // With a cluster's row goes that of its looks.
                None => Ok(()),
                Some((begun, true)) if begun >= number => Ok(()),
                Some((begun, is_over)) => bail!("{begun} looks; over: {is_over}"),
            }
        })
        .await
    }
}

/// Whether the driver has not been called, or not returned.
fn is_open(operation: &OperationRow) -> bool {
    matches!(operation.state.as_str(), "queued" | "running")
}

async fn announced(db: &Database) -> Result<BTreeMap<String, Announced>> {
    use schema::conductor_driver::dsl as driver;
    type Row = (String, String, String, String, Option<String>);
    let found: Vec<Row> = db
        .run(|conn| {
            let columns = (
                driver::name,
                driver::cluster_types,
                driver::capabilities,
                driver::master_size_rule,
                driver::error,
            );
            Ok::<_, magnum_db::DbError>(driver::conductor_driver.select(columns).load(conn)?)
        })
        .await?;
    let mut drivers = BTreeMap::new();
    for (name, types, capabilities, rule, error) in found {
        ensure!(error.is_none(), "{name}: {error:?}");
        let types: Vec<ClusterType> = serde_json::from_str(&types)?;
        let capabilities: Value = serde_json::from_str(&capabilities)?;
        let announced = Announced {
            master_size: rule.parse().map_err(|()| anyhow::anyhow!("the rule {rule}"))?,
            resizes_masters: capabilities["resize_masters"] == true,
            systems: types.into_iter().map(|one| one.os).collect(),
        };
        drivers.insert(name, announced);
    }
    Ok(drivers)
}
