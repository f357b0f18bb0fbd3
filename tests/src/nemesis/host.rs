//! A conductor or an API as if it were on a machine of its own: its own lines to the servers, its own clock, drivers and limits,
//! which outlive its process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;

use super::service_manager::is_restarted;
use crate::builders::ConfigFile;
use crate::chaos_proxy::ChaosProxy;
use crate::deployment::{self, Deployment};
use crate::fake_clock::FakeClock;
use crate::files::copy_folder;
use crate::full_disk::FullDisk;
use crate::no_processes::NoProcesses;
use crate::process::{Launch, Program};
use crate::rest::Rest;

/// The lines of a host. SQLite has none.
#[derive(Debug)]
pub struct Lines {
    /// To the database.
    pub database: Option<ChaosProxy>,
    /// To the broker.
    pub broker: ChaosProxy,
}

impl Lines {
    /// From one more host to the servers of a deployment.
    pub async fn of(deployment: &Deployment) -> Result<Self> {
        let database = match deployment.database.address() {
            Ok(address) => Some(ChaosProxy::start(address).await?),
            Err(_) => None,
        };
        let broker = ChaosProxy::start(deployment.vhost.address).await?;
        Ok(Self { database, broker })
    }

    fn lead(&self, deployment: &Deployment, config: ConfigFile) -> ConfigFile {
        let broker = deployment.vhost.transport_url_via(self.broker.address());
        let config = config.set("DEFAULT", "transport_url", broker);
        match &self.database {
            Some(line) => config.set(
                "database",
                "connection",
                deployment.database.url_via(line.address()),
            ),
            None => config,
        }
    }
}

/// A process that may be away, and all that were there before. A killed one is kept, so that what it has started goes on as
/// after a crash.
#[derive(Debug, Default)]
struct Slot {
    now: Option<Program>,
    before: Vec<Program>,
    /// What each of them logs, also while it is taken away to be ended.
    logs: Vec<PathBuf>,
}

/// A conductor's host.
#[derive(Debug)]
pub struct ConductorHost {
    /// Its name.
    pub name: String,
    /// Its lines.
    pub lines: Lines,
    /// Its clock.
    pub clock: FakeClock,
    /// Its room for processes.
    pub processes: NoProcesses,
    drivers: PathBuf,
    slot: Mutex<Slot>,
}

/// The versions of the driver that the conductors have. The first has all of them, and keeps them.
const VERSIONS: [&[&str]; 3] = [&["1.0.0", "1.1.0"], &["1.0.0"], &["1.1.0"]];

impl ConductorHost {
    /// A host, on which nothing runs yet.
    pub async fn new(deployment: &Deployment, number: usize) -> Result<Self> {
        let name = format!("host-{number}");
        let drivers = deployment.folder.join(&name).join("drivers");
        for version in VERSIONS[number % VERSIONS.len()] {
            install(&drivers.join(format!("scripted-{version}")), version)?;
        }
        Ok(Self {
            lines: Lines::of(deployment).await?,
            clock: FakeClock::new(&deployment.folder.join(&name))?,
            processes: NoProcesses::new()?,
            drivers,
            slot: Mutex::default(),
            name,
        })
    }

    /// Starts its conductor, and does not wait for it: its servers may be away.
    pub async fn start(&self, deployment: &Deployment, disk: Option<&FullDisk>) -> Result<()> {
        let launch = deployment
            .conductor_launch_with(&self.name, |config| {
                let config = self.lines.lead(deployment, config);
                config.set("drivers", "driver_path", self.drivers.display())
            })
            .await?;
        let launch = self.clock.hold(self.processes.hold(launch));
        let launch = match disk {
            Some(disk) => disk.hold(launch),
            None => launch,
        };
        let program = launch.spawn()?;
        self.with_slot(|slot| {
            slot.logs.push(program.log_file().to_owned());
            slot.before.extend(slot.now.replace(program));
        });
        Ok(())
    }

    /// Takes its process away, to be ended.
    pub fn take(&self) -> Option<Program> {
        self.with_slot(|slot| slot.now.take())
    }

    /// Keeps a process that has ended with an error, and says how it has. At once: a fault that comes now finds none.
    pub fn set_aside_if_failed(&self) -> Result<Option<ExitStatus>> {
        self.with_slot(|slot| {
            let ended = slot.now.as_ref().map(Program::ended).transpose()?.flatten();
            let ended = ended.filter(|status| is_restarted(*status));
            if ended.is_some() {
                slot.before.extend(slot.now.take());
            }
            Ok(ended)
        })
    }

    /// Keeps a process that has ended.
    pub fn keep(&self, program: Program) {
        self.with_slot(|slot| slot.before.push(program));
    }

    /// Its process, if it has one.
    pub fn pid(&self) -> Option<u32> {
        self.with_slot(|slot| slot.now.as_ref().map(Program::pid))
    }

    /// Sends its process a signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.with_slot(|slot| slot.now.as_ref().map(|program| program.signal(signal)))
            .transpose()
            .map(|_| ())
    }

    /// What all its processes have logged.
    pub fn log(&self) -> String {
        let logs = self.with_slot(|slot| slot.logs.clone());
        let read = |log: &PathBuf| fs::read(log).map(|text| String::from_utf8_lossy(&text).into_owned());
        logs.iter().flat_map(read).collect()
    }

    /// The folders of its drivers.
    pub fn drivers(&self) -> &Path {
        &self.drivers
    }

    /// Every driver's program.
    pub fn driver_programs(&self) -> Result<Vec<PathBuf>> {
        let folders = fs::read_dir(&self.drivers).with_context(|| self.drivers.display().to_string())?;
        folders
            .map(|folder| Ok(folder?.path().join("driver.py")))
            .collect()
    }

    fn with_slot<T>(&self, what: impl FnOnce(&mut Slot) -> T) -> T {
        what(&mut self.slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The scripted driver, as another version of itself.
fn install(folder: &Path, version: &str) -> Result<()> {
    copy_folder(&deployment::drivers().join("scripted"), folder)?;
    let manifest = folder.join("driver.toml");
    let text = fs::read_to_string(&manifest)?;
    let named = text.replace("version = \"1.0.0\"", &format!("version = \"{version}\""));
    fs::write(&manifest, named).with_context(|| manifest.display().to_string())
}

/// An API's host.
#[derive(Debug)]
pub struct ApiHost {
    /// Its lines.
    pub lines: Lines,
    now: Mutex<Option<(Program, Rest)>>,
}

impl ApiHost {
    /// A host, on which nothing runs yet.
    pub async fn new(deployment: &Deployment) -> Result<Self> {
        let lines = Lines::of(deployment).await?;
        let now = Mutex::default();
        Ok(Self { lines, now })
    }

    /// Starts its API, and does not wait for it.
    pub fn start(&self, deployment: &Deployment, hold: impl FnOnce(Launch) -> Launch) -> Result<()> {
        let (launch, rest) = deployment.api_launch(|config| self.lines.lead(deployment, config))?;
        let program = hold(launch).spawn()?;
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = Some((program, rest));
        Ok(())
    }

    /// Takes its process away, to be ended.
    pub fn take(&self) -> Option<Program> {
        let taken = self.now.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map(|(program, _)| program)
    }

    /// Takes away a process that has ended with an error, and says how it has.
    pub fn set_aside_if_failed(&self) -> Result<Option<ExitStatus>> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let ended = now.as_ref().map(|(program, _)| program.ended());
        let ended = ended
            .transpose()?
            .flatten()
            .filter(|status| is_restarted(*status));
        if ended.is_some() {
            now.take();
        }
        Ok(ended)
    }

    /// A client, if there is somebody to ask.
    pub fn rest(&self) -> Option<Rest> {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.as_ref().map(|(_, rest)| rest.clone())
    }
}
