//! What the packages of a Python environment say of themselves: for tools, without a cluster.

use std::path::PathBuf;
use std::time::Duration;

use magnum_drivers::{Capabilities, ClusterType, MasterSizeRule, PythonSpec};
use magnum_engine_process::GuardTiming;
use serde::Deserialize;
use serde_json::json;
use tokio::time::timeout;

use super::connection::{Connection, Event};
use super::messages::FromWorker;
use super::zygote::{Settings, Zygote, check_interpreter};

/// A driver of an environment.
#[derive(Debug, Clone, Deserialize)]
pub struct Described {
    /// The name of its entry point.
    pub name: String,
    /// The package that has it.
    pub package: Option<String>,
    /// The package's version.
    pub version: Option<String>,
    /// What keeps it from being imported or made, in one line.
    pub error: Option<String>,
    /// Whether it calls itself beta.
    #[serde(default)]
    pub beta: bool,
    /// The cluster types that it provides.
    #[serde(default)]
    pub provides: Vec<ClusterType>,
    /// Methods of Magnum's base class that it overrides.
    #[serde(default)]
    overrides: Vec<String>,
    /// Of 1, 2 and 3 masters those that it builds.
    #[serde(default)]
    master_sizes: Vec<i32>,
    /// Whether it changes the number of masters.
    #[serde(default)]
    resizes_masters: bool,
}

/// An environment.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// The version of Magnum's library.
    pub magnum: String,
    /// Whether its clusters have a user and a trust in Keystone: those of Magnum 22 and before do.
    pub trusts: bool,
    /// Its drivers, by name.
    pub drivers: Vec<Described>,
}

impl Described {
    /// What it can do, as far as can be seen: upgrades and the removal of named nodes cannot, and count as there.
    pub fn capabilities(&self) -> Capabilities {
        let overrides = |method: &str| self.overrides.iter().any(|name| name == method);
        Capabilities {
            resize_masters: self.resizes_masters,
            remove_named_nodes: true,
            upgrade: true,
            rotate_ca: overrides("rotate_ca_certificate"),
            rotate_credential: overrides("rotate_credential"),
            health: overrides("get_monitor"),
            ..Capabilities::default()
        }
    }

    /// Which numbers of masters it builds.
    pub fn master_size(&self) -> MasterSizeRule {
        if self.master_sizes.contains(&2) {
            MasterSizeRule::Any
        } else {
            MasterSizeRule::Odd
        }
    }
}

/// Imports the drivers of an environment, makes one of each, and asks them.
///
/// # Errors
/// In words for a person: the environment cannot be used at all. What is wrong with one driver is in
/// [`Described::error`].
pub async fn inspect(
    interpreter: PathBuf,
    config: Vec<PathBuf>,
    drivers: Vec<String>,
) -> Result<Inspected, String> {
    const LIMIT: Duration = Duration::from_secs(120);
    check_interpreter(&interpreter)?;
    let timing = GuardTiming::for_lease(LIMIT);
    let zygote = Zygote::start(&Settings {
        spec: PythonSpec {
            interpreter,
            entry_point: String::new(),
            timeout: LIMIT,
            observe_timeout: LIMIT,
            observe_batch: 1,
            memory_mib: None,
            open_files: 1024,
            trusts: false,
        },
        drivers,
        config,
        runtime_directory: std::env::temp_dir(),
        start_timeout: LIMIT,
        silence: timing.silence,
    })
    .await?;
    let opened = Connection::open(&zygote.socket(), timing).await;
    let mut connection = opened.map_err(|error| error.to_string())?;
    let call = json!({"type": "call", "id": 1, "call": "list"});
    let listed = timeout(LIMIT, async {
        connection.send(&call).await;
        loop {
            match connection.next().await {
                Event::StandardError(line) => tracing::info!("driver: {line}"),
                Event::Message(said) => {
                    return match *said {
                        FromWorker::Done(done) => Ok(done.value),
                        FromWorker::Failed(failed) => Err(failed.message),
                        _ => Err("the plug-in host asks for objects while it lists drivers".to_owned()),
                    };
                }
                _ => return Err("the drivers end the process that makes them".to_owned()),
            }
        }
    });
    let listed = listed
        .await
        .unwrap_or_else(|_| Err(format!("the drivers cannot be made within {LIMIT:?}")));
    connection.end().await;
    let drivers = serde_json::from_value(listed?).map_err(|error| error.to_string())?;
    Ok(Inspected {
        magnum: zygote.about.magnum.clone(),
        trusts: zygote.about.has_trusts(),
        drivers,
    })
}
