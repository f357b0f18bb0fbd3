//! Everything that the operators' page shows, in one piece of work.

use std::collections::HashMap;
use std::time::Duration;

use magnum_common::model::MagnumService;
use magnum_db::Database;
use magnum_db::read::announced_drivers::{self, AnnouncedDriver};
use magnum_db::read::operations::{self, Operation};
use magnum_db::read::{clusters, records};

use super::{StoreError, reading};

/// The state of the deployment.
#[derive(Debug, Default)]
pub struct Overview {
    /// Every service that has ever reported.
    pub services: Vec<MagnumService>,
    /// What conductors have announced lately, with what does not load.
    pub drivers: Vec<AnnouncedDriver>,
    /// Operations that have not ended, the latest first.
    pub open: Vec<Operation>,
    /// Operations that failed, the latest first.
    pub failed: Vec<Operation>,
    names: HashMap<String, String>,
}

impl Overview {
    /// The name of a cluster that still exists.
    pub fn name_of(&self, cluster: &str) -> Option<&str> {
        self.names.get(cluster).map(String::as_str)
    }
}

/// Looks at everything; of each kind of operation, at most `most`.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn look(
    database: &Database,
    announced_within: Duration,
    most: u32,
) -> Result<Overview, StoreError> {
    reading(database, move |connection| {
        let (open, failed) = operations::open_and_failed(connection, most)?;
        let mut uuids: Vec<&str> = open
            .iter()
            .chain(&failed)
            .map(|one| one.cluster_uuid.as_str())
            .collect();
        uuids.sort_unstable();
        uuids.dedup();
        Ok(Overview {
            services: records::services(connection)?,
            drivers: announced_drivers::list(connection, announced_within)?,
            names: clusters::names(connection, &uuids)?,
            open,
            failed,
        })
    })
    .await
}
