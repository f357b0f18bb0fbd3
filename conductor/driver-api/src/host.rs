//! What an engine is made from.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use magnum_config::{CinderSection, Declared, DriversSection, Section, Settings};
use magnum_drivers::{DriverFolder, Problem};

use crate::{Clock, Cloud, ClusterCertificates, ClusterTrusts, RandomSource};

/// Everything the engine of one driver may use.
///
/// Not in it are progress, which belongs to a call ([`crate::DriverCall::progress`]), and metrics: what every engine's calls
/// take and how they end is measured around them, by whoever makes them.
#[derive(Clone)]
pub struct EngineHost {
    /// The driver's folder, with its manifest and the settings in it.
    pub folder: DriverFolder,
    /// What the conductor offers to all engines.
    pub services: EngineServices,
}

/// What the conductor offers to all engines: one for a process, cheap to clone.
#[derive(Clone)]
pub struct EngineServices {
    /// How to start a guard for a program.
    pub guard: GuardProgram,
    /// The term of an operation's lease. It is renewed at a third; when it was not, everything that an engine has
    /// started outside of this process must have ended before two thirds of it are over.
    pub lease: Duration,
    /// `magnum.conf`.
    pub options: EngineOptions,
    /// Other OpenStack services.
    pub cloud: Cloud,
    /// Clusters' certificates.
    pub certificates: Arc<dyn ClusterCertificates>,
    /// Clusters' trusts.
    pub trusts: Arc<dyn ClusterTrusts>,
    /// The time of day.
    pub clock: Clock,
    /// For names and delays.
    pub random: RandomSource,
    /// What the drivers of an engine share.
    pub shared: Shared,
}

/// What drivers that are loaded together share, such as a process for several of them: one value of each type. Drivers
/// that are loaded later, after a SIGHUP, get another one.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>>);

impl Shared {
    /// The value of this type; the first who asks makes it.
    pub fn get_or_default<T: Any + Send + Sync + Default>(&self) -> Arc<T> {
        // A panic while a value was made has left the map as it was.
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let value = values
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::<T>::default());
        // The key is the type's, so it is one.
        Arc::downcast(Arc::clone(value)).unwrap_or_default()
    }
}

/// The sections of `magnum.conf` that engines declare. An engine does not see those of others.
#[derive(Clone, Default)]
pub struct EngineOptions(Arc<Settings>);

impl EngineOptions {
    /// Of these settings.
    pub fn new(settings: &Settings) -> Self {
        Self(Arc::new(settings.clone()))
    }

    /// A section, declared with [`magnum_config::config_section`]. What looks wrong in it but is harmless has been told
    /// by whoever loads the drivers.
    ///
    /// # Errors
    /// Every value that cannot be used, with its file and line.
    pub fn section<S: Section>(&self) -> Result<S, Vec<Problem>> {
        match self.0.section::<S>() {
            Ok(read) => Ok(read.section),
            Err(errors) => Err(errors
                .0
                .iter()
                .map(|problem| Problem::of_folder(problem.to_string()))
                .collect()),
        }
    }

    /// `[cinder]`
    pub fn cinder(&self) -> &CinderSection {
        &self.0.cinder
    }

    /// `[drivers]`
    pub fn drivers(&self) -> &DriversSection {
        &self.0.drivers
    }

    /// The files of `magnum.conf`, in the order in which they were read: later ones win.
    pub fn files(&self) -> &[PathBuf] {
        &self.0.files
    }

    /// What looks wrong in these sections but is harmless.
    pub fn warnings(&self, sections: &[Declared]) -> Vec<String> {
        let found = sections.iter().flat_map(|section| section.warnings(&self.0));
        found.map(|problem| problem.to_string()).collect()
    }
}

/// How to start a guard, the small process that ends a driver's program when the conductor cannot.
#[derive(Debug, Clone)]
pub struct GuardProgram {
    /// The program, which must know the guard's sub-command.
    pub program: PathBuf,
    /// Arguments before the sub-command.
    pub arguments: Vec<OsString>,
}

impl GuardProgram {
    /// The running program itself. On Linux by its inode, so that a package upgrade under a running conductor
    /// does not change or break its guards.
    ///
    /// # Errors
    /// The program does not know its own file.
    pub fn this_program() -> io::Result<Self> {
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            std::env::current_exe()?
        };
        Ok(Self {
            program,
            arguments: Vec::new(),
        })
    }
}
