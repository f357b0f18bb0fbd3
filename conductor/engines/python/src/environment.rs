//! The Python environments of the loaded drivers: one zygote each, started when it is first needed and again when it has
//! ended, and a bound on the workers at a time. A start goes on when the call has given up that wanted it first.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use magnum_driver_api::{DriverError, EngineServices, Reason};
use magnum_drivers::{Problem, PythonSpec};
use magnum_engine_process::GuardTiming;
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tracing::Instrument as _;

use super::connection::Connection;
use super::options::PythonSection;
use super::zygote::{Settings, Zygote};

/// How long a failed start is told to others before the next one.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// What a zygote is one of: an interpreter, and what its calls may use.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    interpreter: PathBuf,
    memory_mib: Option<u64>,
    open_files: u64,
}

/// The environments of the drivers that were loaded together.
#[derive(Default)]
pub struct Environments(Mutex<HashMap<Key, Arc<Environment>>>);

impl Environments {
    /// The environment of a driver, which is imported there from now on.
    ///
    /// # Errors
    /// `[python]` of `magnum.conf` has values that cannot be used.
    pub fn of(&self, spec: &PythonSpec, services: &EngineServices) -> Result<Arc<Environment>, Vec<Problem>> {
        let options = services.options.section::<PythonSection>()?;
        let key = Key {
            interpreter: spec.interpreter.clone(),
            memory_mib: spec.memory_mib,
            open_files: spec.open_files,
        };
        // A panic while an environment was added has left the map as it was.
        let mut environments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let environment = environments
            .entry(key)
            .or_insert_with(|| Arc::new(Environment::new(spec, &options, services)));
        environment.add(&spec.entry_point);
        Ok(Arc::clone(environment))
    }
}

/// One Python environment.
pub struct Environment {
    settings: Settings,
    timing: GuardTiming,
    drivers: Mutex<BTreeSet<String>>,
    workers: Semaphore,
    zygote: Arc<tokio::sync::Mutex<State>>,
}

/// What became of the last start.
enum State {
    None,
    Ready(Arc<Zygote>),
    Failed { why: String, at: Instant },
}

/// A connection, and the right to have it.
pub struct Worker<'a> {
    /// The connection.
    pub connection: Connection,
    /// What forked it. Its folder has those of its calls, so it stays as long as they run.
    pub zygote: Arc<Zygote>,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Environment {
    fn new(spec: &PythonSpec, options: &PythonSection, services: &EngineServices) -> Self {
        let timing = GuardTiming::for_lease(services.lease);
        Self {
            settings: Settings {
                spec: spec.clone(),
                drivers: Vec::new(),
                config: services.options.files().to_vec(),
                runtime_directory: options.runtime_directory.clone(),
                start_timeout: options.start_timeout,
                silence: timing.silence,
            },
            timing,
            drivers: Mutex::default(),
            workers: Semaphore::new(options.workers.max(1)),
            zygote: Arc::new(tokio::sync::Mutex::new(State::None)),
        }
    }

    fn add(&self, entry_point: &str) {
        self.names().insert(entry_point.to_owned());
    }

    fn names(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        // Names are added whole.
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker for one connection, when one may run.
    ///
    /// # Errors
    /// [`DriverError::NotHere`], since nothing of it is the request's fault: the environment cannot be started, or forks no
    /// workers.
    pub async fn worker(&self) -> Result<Worker<'_>, DriverError> {
        // The semaphore is never closed; if it were, calls would run without a bound.
        let permit = self.workers.acquire().await.ok();
        let mut retried = false;
        loop {
            let zygote = self.zygote().await?;
            match Connection::open(&zygote.socket(), self.timing).await {
                Ok(connection) => {
                    return Ok(Worker {
                        connection,
                        zygote,
                        _permit: permit,
                    });
                }
                // It may have ended just now.
                Err(_) if zygote.has_ended() && !retried => retried = true,
                Err(error) => {
                    let interpreter = self.settings.spec.interpreter.display();
                    let whole = format!("the plug-in host of {interpreter} starts no worker: {error}");
                    return Err(not_started(whole));
                }
            }
        }
    }

    async fn zygote(&self) -> Result<Arc<Zygote>, DriverError> {
        let state = Arc::clone(&self.zygote).lock_owned().await;
        match &*state {
            State::Ready(zygote) if !zygote.has_ended() => return Ok(Arc::clone(zygote)),
            State::Failed { why, at } if at.elapsed() < PAUSE_AFTER_FAILURE => {
                return Err(not_started(why.clone()));
            }
            State::Ready(_) => tracing::warn!(
                interpreter = %self.settings.spec.interpreter.display(),
                "the plug-in host has ended; it is started again"
            ),
            State::None | State::Failed { .. } => {}
        }
        let settings = Settings {
            drivers: self.names().iter().cloned().collect(),
            ..self.settings.clone()
        };
        // By itself: a call that gives up, as one for a cluster's health does after seconds, would take with it the imports
        // that the next one waits for, and on a busy machine they would never end.
        let started = tokio::spawn(start(settings, state).in_current_span()).await;
        started
            .unwrap_or_else(|error| Err(format!("the plug-in host was not started: {error}")))
            .map_err(not_started)
    }
}

/// Nothing of it is the driver's or its users' affair.
fn not_started(why: String) -> DriverError {
    DriverError::NotHere(Reason::internal(
        "The conductor cannot start the environment of the cluster's driver",
        why,
    ))
}

/// Starts a zygote and writes down what became of it. Whoever wants one meanwhile waits for `state`.
async fn start(settings: Settings, mut state: OwnedMutexGuard<State>) -> Result<Arc<Zygote>, String> {
    match Zygote::start(&settings).await {
        Ok(zygote) => {
            for (driver, problem) in &zygote.about.drivers {
                if let Some(problem) = problem {
                    tracing::error!(driver, problem, "a driver's package cannot be imported");
                }
            }
            tracing::info!(
                interpreter = %settings.spec.interpreter.display(),
                magnum = zygote.about.magnum, seconds = zygote.about.seconds,
                "the plug-in host is ready"
            );
            let zygote = Arc::new(zygote);
            *state = State::Ready(Arc::clone(&zygote));
            Ok(zygote)
        }
        Err(why) => {
            *state = State::Failed {
                why: why.clone(),
                at: Instant::now(),
            };
            Err(why)
        }
    }
}
