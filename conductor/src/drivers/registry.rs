//! The drivers this conductor has loaded, by name and version; replaced as a whole on SIGHUP.
//!
//! A driver that cannot be loaded is kept with its reasons, to be announced, and disables itself only.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use magnum_config::Declared;
use magnum_driver_api::{Driver, EngineHost, EngineServices};
use magnum_drivers::{self as drivers, DriverFolder, DriverInfo, LoadError, Problem};
use magnum_engine_exec::ExecDriver;
use magnum_telemetry::field;

/// A cheap handle on the loaded drivers. Calls that run keep the driver they started with.
#[derive(Clone, Default)]
pub struct Registry {
    sets: Arc<RwLock<Sets>>,
}

/// What there is to choose from and to run: `known` is made when one of the others changes, not at each choice.
#[derive(Default)]
struct Sets {
    loaded: Arc<Loaded>,
    announced: Vec<DriverInfo>,
    known: Arc<drivers::Registry>,
}

impl Sets {
    /// One that is loaded here counts as it is here.
    fn merge(&mut self) {
        let mut known = self.loaded.infos.clone();
        known.extend(self.announced.iter().cloned());
        self.known = Arc::new(known);
    }
}

/// One set of drivers, as it was found.
#[derive(Default)]
pub struct Loaded {
    drivers: HashMap<(String, String), Arc<dyn Driver>>,
    infos: drivers::Registry,
    failed: Vec<LoadError>,
}

impl Loaded {
    /// Looks into every folder under `paths`. Blocks on the file system.
    pub fn from_folders(paths: &[PathBuf], services: &EngineServices) -> Self {
        for warning in services.options.warnings(&sections()) {
            tracing::warn!("{warning}");
        }
        let mut loaded = Self::default();
        for outcome in drivers::discover(paths) {
            match outcome.and_then(|folder| start_engine(folder, services)) {
                Ok(driver) => loaded.insert(driver),
                Err(error) => loaded.failed.push(error),
            }
        }
        loaded
    }

    /// Exactly these drivers.
    pub fn of(drivers: impl IntoIterator<Item = Arc<dyn Driver>>) -> Self {
        let mut loaded = Self::default();
        for driver in drivers {
            loaded.insert(driver);
        }
        loaded
    }

    fn insert(&mut self, driver: Arc<dyn Driver>) {
        let info = driver.info().clone();
        let key = (info.name.clone(), info.version.to_string());
        self.infos.insert(info);
        self.drivers.entry(key).or_insert(driver);
    }

    /// The driver `name` in exactly this version.
    pub fn get(&self, name: &str, version: &str) -> Option<Arc<dyn Driver>> {
        self.drivers.get(&(name.to_owned(), version.to_owned())).cloned()
    }

    /// What is known of them, for resolution.
    pub fn infos(&self) -> &drivers::Registry {
        &self.infos
    }

    /// The folders that could not be loaded.
    pub fn failed(&self) -> &[LoadError] {
        &self.failed
    }
}

/// Makes a driver, or tells the mistakes in its folder.
type Constructor = fn(EngineHost) -> Result<Arc<dyn Driver>, Vec<Problem>>;

/// An engine of this build.
struct Engine {
    /// As manifests call it.
    name: &'static str,
    /// The sections of `magnum.conf` that it reads.
    sections: fn() -> Vec<Declared>,
    new: Constructor,
}

/// The engines of this build.
const ENGINES: &[Engine] = &[
    Engine {
        name: "exec",
        sections: magnum_engine_exec::sections,
        new: |host| Ok(Arc::new(ExecDriver::new(host)?)),
    },
    #[cfg(feature = "cluster-api")]
    Engine {
        name: "cluster-api",
        sections: magnum_engine_cluster_api::sections,
        new: |host| Ok(Arc::new(magnum_engine_cluster_api::CapiHelmDriver::new(host)?)),
    },
    #[cfg(feature = "python")]
    Engine {
        name: "python",
        sections: magnum_engine_python::sections,
        new: |host| Ok(Arc::new(magnum_engine_python::PythonDriver::new(host)?)),
    },
];

/// Engines that this build could have: a feature switches each on.
const FEATURES: &[&str] = &["cluster-api", "python"];

/// The sections of `magnum.conf` that engines read.
pub fn sections() -> Vec<Declared> {
    ENGINES.iter().flat_map(|engine| (engine.sections)()).collect()
}

/// The driver of a folder, run by the engine that its manifest names.
fn start_engine(folder: DriverFolder, services: &EngineServices) -> Result<Arc<dyn Driver>, LoadError> {
    let name = folder.manifest.engine.name();
    let (dir, info) = (folder.dir.clone(), folder.manifest.info.clone());
    let host = EngineHost {
        folder,
        services: services.clone(),
    };
    let made = match ENGINES.iter().find(|engine| engine.name == name) {
        Some(engine) => (engine.new)(host),
        None if FEATURES.contains(&name) => Err(vec![Problem::of_folder(format!(
            "the engine '{name}' is not part of this build of the conductor: build it with the feature {name}"
        ))]),
        None => Err(vec![Problem::of_folder(format!(
            "the engine '{name}' is not part of this release of the conductor"
        ))]),
    };
    made.map_err(|problems| LoadError {
        dir,
        name: Some(info.name),
        version: Some(info.version.to_string()),
        problems,
    })
}

impl Registry {
    /// The drivers that are loaded here, and those that conductors that are alive have announced by the last announcement.
    /// A driver is chosen from all of them, so that it does not depend on who chooses.
    pub fn known(&self) -> Arc<drivers::Registry> {
        Arc::clone(&self.read().known)
    }

    /// Replaces what is known of the others.
    pub fn set_announced(&self, announced: Vec<DriverInfo>) {
        let mut sets = self.write();
        sets.announced = announced;
        sets.merge();
    }

    // A poisoned lock only means that a holder panicked; each set is replaced as a whole, never half.
    fn read(&self) -> RwLockReadGuard<'_, Sets> {
        self.sets.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Sets> {
        self.sets.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// A registry of exactly these drivers: for tests and in-process use.
    pub fn of(drivers: impl IntoIterator<Item = Arc<dyn Driver>>) -> Self {
        let registry = Self::default();
        registry.replace(Loaded::of(drivers));
        registry
    }

    /// The driver `name` in exactly this version.
    pub fn get(&self, name: &str, version: &str) -> Option<Arc<dyn Driver>> {
        self.current().get(name, version)
    }

    /// The set as it is now.
    pub fn current(&self) -> Arc<Loaded> {
        Arc::clone(&self.read().loaded)
    }

    /// Swaps the whole set, and logs what is new, gone or broken.
    pub fn replace(&self, loaded: Loaded) {
        for error in &loaded.failed {
            tracing::error!(
                { field::DRIVER } = error.name.as_deref().unwrap_or("?"),
                folder = %error.dir.display(),
                "a driver cannot be loaded and is left out: {}",
                error.reason()
            );
        }
        let before = self.current();
        let (new, gone) = (added(&before, &loaded), added(&loaded, &before));
        {
            let mut sets = self.write();
            sets.loaded = Arc::new(loaded);
            sets.merge();
        }
        tracing::info!(?new, ?gone, "drivers are loaded");
    }
}

/// What `after` has and `before` has not.
fn added(before: &Loaded, after: &Loaded) -> Vec<String> {
    let infos = after.infos.iter();
    infos
        .filter(|info| before.infos.get(&info.name, &info.version).is_none())
        .map(ToString::to_string)
        .collect()
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.current();
        f.debug_set()
            .entries(current.infos.iter().map(ToString::to_string))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use magnum_config::Settings;
    use magnum_driver_api::{
        Clock, Cloud, EngineOptions, GuardProgram, NoCertificates, NoTrusts, RandomSource, Shared,
    };

    use super::*;

    fn services() -> EngineServices {
        EngineServices {
            guard: GuardProgram::this_program().unwrap(),
            lease: std::time::Duration::from_secs(30),
            options: EngineOptions::default(),
            cloud: Cloud::new(&Settings::default()),
            certificates: Arc::new(NoCertificates),
            trusts: Arc::new(NoTrusts),
            clock: Clock::default(),
            random: RandomSource::default(),
            shared: Shared::default(),
        }
    }

    fn folder(root: &Path, name: &str, engine: &str) {
        let dir = root.join(name);
        fs::create_dir_all(&dir).unwrap();
        let section = if engine == "exec" {
            "[exec]\nprogram = 'run'"
        } else {
            ""
        };
        let manifest = format!(
            "[driver]\nname = '{name}'\nversion = '1.0.0'\nengine = '{engine}'\n[[provides]]\n\
             server_type = 'vm'\nos = 'ubuntu'\ncoe = 'kubernetes'\n{section}\n"
        );
        fs::write(dir.join("driver.toml"), manifest).unwrap();
        fs::write(dir.join("run"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_broken_driver_is_kept_with_its_reason_and_harms_no_other() {
        let root = tempfile::tempdir().unwrap();
        folder(root.path(), "good", "exec");
        folder(root.path(), "later", "heat");
        fs::create_dir(root.path().join("empty")).unwrap();
        let loaded = Loaded::from_folders(&[root.path().to_owned()], &services());
        assert!(loaded.get("good", "1.0.0").is_some());
        assert!(loaded.get("good", "2.0.0").is_none());
        assert_eq!(loaded.infos().names().collect::<Vec<_>>(), ["good"]);
        let reasons: Vec<_> = loaded.failed().iter().map(LoadError::reason).collect();
        assert_eq!(
            reasons,
            [
                "there is no driver.toml in it",
                "the engine 'heat' is not part of this release of the conductor"
            ]
        );
    }

    #[test]
    fn a_set_is_swapped_while_a_driver_is_held() {
        let root = tempfile::tempdir().unwrap();
        folder(root.path(), "good", "exec");
        let registry = Registry::default();
        registry.replace(Loaded::from_folders(&[root.path().to_owned()], &services()));
        let held = registry.get("good", "1.0.0").unwrap();
        registry.replace(Loaded::default());
        assert!(registry.get("good", "1.0.0").is_none());
        assert_eq!(held.info().name, "good");
    }

    #[test]
    fn the_shipped_drivers_load() {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/drivers");
        let loaded = Loaded::from_folders(&[shipped], &services());
        let names: Vec<_> = loaded.infos().names().collect();
        let reasons: Vec<_> = loaded.failed().iter().map(LoadError::reason).collect();
        if cfg!(feature = "cluster-api") {
            assert_eq!(names, ["ansible", "disk", "k8s_capi_helm_v1"]);
            assert!(reasons.is_empty(), "{reasons:?}");
        } else {
            assert_eq!(names, ["ansible", "disk"]);
            assert_eq!(
                reasons,
                [
                    "the engine 'cluster-api' is not part of this build of the conductor: build it with the feature cluster-api"
                ]
            );
        }
    }
}
