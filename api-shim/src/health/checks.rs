//! What health is asked of: files, the database, the broker.

use std::path::PathBuf;
use std::sync::Arc;

use magnum_config::{HealthBackend, HealthcheckSection};
use magnum_db::Database;
use magnum_rpc::{Health as BrokerHealth, Transport};

use super::probe::Probe;
use crate::store;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether requests should come here.
    pub available: bool,
    /// In two or three words.
    pub reason: String,
    /// In a sentence, or empty.
    pub details: String,
}

impl Finding {
    fn good(details: String) -> Self {
        Self {
            available: true,
            reason: "OK".to_owned(),
            details,
        }
    }

    /// A failed check.
    pub fn bad(reason: &str, details: String) -> Self {
        Self {
            available: false,
            reason: reason.to_owned(),
            details,
        }
    }
}

/// A check of `[healthcheck] backends`.
pub enum Check {
    /// 503 while this file is there.
    DisableByFile(Option<PathBuf>),
    /// 503 while the file of the port is there.
    DisableByFilesPorts(Vec<(u16, PathBuf)>),
    /// 503 unless all of these are there.
    EnableByFiles(Vec<PathBuf>),
    /// 503 while the database does not answer.
    Database(Arc<Probe>),
    /// 503 while the broker does not answer.
    Messaging(Arc<Probe>),
}

impl Check {
    /// Those of `[healthcheck] backends`.
    pub fn all(section: &HealthcheckSection, database: &Arc<Probe>, broker: &Arc<Probe>) -> Vec<Self> {
        let one = |backend: &HealthBackend| match backend {
            HealthBackend::DisableByFile => Self::DisableByFile(section.disable_by_file_path.clone()),
            HealthBackend::DisableByFilesPorts => {
                let pairs = section.disable_by_file_paths.iter().filter_map(|pair| {
                    let (port, path) = pair.split_once(':')?;
                    Some((port.trim().parse().ok()?, PathBuf::from(path)))
                });
                Self::DisableByFilesPorts(pairs.collect())
            }
            HealthBackend::EnableByFiles => Self::EnableByFiles(section.enable_by_file_paths.clone()),
            HealthBackend::Database => Self::Database(Arc::clone(database)),
            HealthBackend::Messaging => Self::Messaging(Arc::clone(broker)),
        };
        section.backends.iter().map(one).collect()
    }

    /// Asks, for a request to this port.
    pub async fn ask(&self, port: u16) -> Finding {
        match self {
            Self::DisableByFile(path) => disabled_by(path.as_ref()),
            Self::DisableByFilesPorts(files) => {
                disabled_by(files.iter().find(|(of, _)| *of == port).map(|(_, path)| path))
            }
            Self::EnableByFiles(paths) => match paths.iter().find(|path| !path.exists()) {
                Some(path) => Finding::bad(
                    "FILE PATH MISSING",
                    format!("File path {} is missing", path.display()),
                ),
                None => Finding::good("Specified file paths are available".to_owned()),
            },
            Self::Database(probe) => match probe.ask().await {
                Ok(()) => Finding::good("The database answers".to_owned()),
                Err(why) => Finding::bad("DATABASE UNAVAILABLE", why),
            },
            Self::Messaging(probe) => match probe.ask().await {
                Ok(()) => Finding::good("The broker answers".to_owned()),
                Err(why) => Finding::bad("BROKER UNAVAILABLE", why),
            },
        }
    }
}

fn disabled_by(path: Option<&PathBuf>) -> Finding {
    match path {
        None => Finding::good("No file is specified".to_owned()),
        Some(path) if path.exists() => {
            Finding::bad("DISABLED BY FILE", format!("Path '{}' was found", path.display()))
        }
        Some(path) => Finding::good(format!("Path '{}' was not found", path.display())),
    }
}

/// The probe of a database.
pub(crate) fn database_probe(database: Database) -> Arc<Probe> {
    Arc::new(Probe::new(move || {
        let database = database.clone();
        Box::pin(async move {
            if store::is_reachable(&database).await {
                Ok(())
            } else {
                Err("The database refuses, or cannot be reached".to_owned())
            }
        })
    }))
}

/// The probe of a broker. It fails, too, while the connection by which answers come is being made again.
pub(crate) fn broker_probe(transport: Arc<dyn Transport>) -> Arc<Probe> {
    Arc::new(Probe::new(move || {
        let transport = Arc::clone(&transport);
        Box::pin(async move {
            match transport.health() {
                BrokerHealth::Closed => Err("The connection is closed".to_owned()),
                BrokerHealth::Reconnecting => Err("The connection is being made again".to_owned()),
                BrokerHealth::Idle | BrokerHealth::Connected => {
                    transport.reach().await.map_err(|error| error.to_string())
                }
            }
        })
    }))
}
