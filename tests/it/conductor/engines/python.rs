//! The engine `python` with the tests' own package: its objects are rows of a real database.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use async_trait::async_trait;
use magnum_common::ids::ClusterUuid;
use magnum_conductor::drivers::Loaded;
use magnum_conductor::objects_rpc::ObjectsRpc;
use magnum_conductor::objects_rpc::cluster_objects::{Denied, OwnObjects, WriteRight};
use magnum_conductor::store::objects::Table as _;
use magnum_config::Settings;
use magnum_db::AnyConnection;
use magnum_driver_api::{
    Clock, Cloud, Driver, EngineOptions, EngineServices, GuardProgram, NoCertificates, NoTrusts,
    RandomSource, Shared, SharedObjects,
};
use magnum_tests::process::built;
use magnum_tests::python_plugin::{DRIVER, PythonPlugin};
use magnum_tests::run_dir::run_dir;
use magnum_tests::{TestDatabase, probe};
use tokio_util::sync::CancellationToken;

use super::scene::{Rows, Scene};
use super::subject::{Fault, LEASE, Subject};

/// The package's driver that builds folders.
pub struct Plugin {
    plugin: PythonPlugin,
    /// Each driver's calls are processes of their own, forked from one process for all.
    shared: Shared,
}

impl Plugin {
    /// In a folder of its own.
    pub fn new() -> Result<Self> {
        let plugin = PythonPlugin::new(&run_dir()?.folder("plugin")?)?;
        let folder = plugin.drivers.join(DRIVER);
        fs::create_dir(&folder)?;
        let manifest = format!(
            "[driver]\nname = '{DRIVER}'\nversion = '1.0.0'\nengine = 'python'\n\
             [[provides]]\nserver_type = 'vm'\nos = 'ubuntu'\ncoe = 'kubernetes'\n\
             [capabilities]\nremove_named_nodes = true\nupgrade = true\nrotate_ca = true\nrotate_credential = true\nhealth = true\n\
             [python]\ninterpreter = '{}'\n",
            plugin.interpreter()?.display()
        );
        fs::write(folder.join("driver.toml"), manifest)?;
        Ok(Self {
            plugin,
            shared: Shared::default(),
        })
    }
}

/// A database for each call, with the rows as they are then.
#[derive(Default)]
struct OwnDatabase {
    /// They last as long as the scene.
    kept: Mutex<Vec<TestDatabase>>,
}

/// Nobody takes the right away.
struct Always;

impl WriteRight for Always {
    fn hold(&self, _conn: &mut AnyConnection) -> Result<(), Denied> {
        Ok(())
    }
}

#[async_trait]
impl Rows for OwnDatabase {
    async fn of(&self, scene: &Scene) -> Result<SharedObjects> {
        let database = TestDatabase::sqlite()?;
        let db = probe::migrated(&database).await?;
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(database);
        let (cluster, groups) = (scene.cluster.clone(), scene.groups.clone());
        let uuid = cluster.uuid.clone();
        let inserted = db
            .transaction(move |conn| {
                let mut all = cluster.insert(conn)?;
                for group in &groups {
                    all &= group.insert(conn)?;
                }
                Ok::<_, magnum_db::DbError>(all)
            })
            .await?;
        ensure!(inserted);
        let rpc = ObjectsRpc::new(db);
        Ok(SharedObjects::new(OwnObjects::new(
            rpc,
            uuid,
            Arc::new(Always),
            CancellationToken::new(),
        )))
    }
}

#[async_trait]
impl Subject for Plugin {
    fn driver(&self) -> Result<Arc<dyn Driver>> {
        let settings = Settings::default();
        let services = EngineServices {
            guard: GuardProgram {
                program: built("magnum-conductor")?,
                arguments: Vec::new(),
            },
            lease: LEASE,
            options: EngineOptions::new(&settings),
            cloud: Cloud::new(&settings),
            certificates: Arc::new(NoCertificates),
            trusts: Arc::new(NoTrusts),
            clock: Clock::default(),
            random: RandomSource::default(),
            shared: self.shared.clone(),
        };
        let loaded = Loaded::from_folders(std::slice::from_ref(&self.plugin.drivers), &services);
        ensure!(loaded.failed().is_empty(), "{:?}", loaded.failed());
        loaded.get(DRIVER, "1.0.0").context("the driver is loaded")
    }

    fn scene(&self) -> Scene {
        Scene {
            rows: Some(Arc::new(OwnDatabase::default())),
            ..Scene::new()
        }
    }

    async fn effects(&self, cluster: &ClusterUuid) -> Result<BTreeMap<String, String>> {
        self.plugin.effects(cluster.as_str())
    }

    async fn nodes(&self, cluster: &ClusterUuid) -> Result<usize> {
        self.plugin.nodes(cluster.as_str())
    }

    fn slow_down(&self, scene: &mut Scene) -> Result<()> {
        scene.cluster.labels.insert("test_delay_ms".into(), "700".into());
        Ok(())
    }

    fn break_down(&self, scene: &mut Scene, fault: Fault) -> Result<()> {
        let trick = match fault {
            Fault::Garbage => "garbage",
            Fault::OverLimit => "over_limit",
        };
        scene.cluster.labels.insert("test_create".into(), trick.into());
        Ok(())
    }

    fn mend(&self, scene: &mut Scene) -> Result<()> {
        for label in ["test_delay_ms", "test_create"] {
            scene.cluster.labels.shift_remove(label);
        }
        Ok(())
    }
}
