//! Everything that the operators' overview shows of the database, in one piece of work.
//!
//! The number of statements does not depend on what there is, and each reads a bounded number of rows.

use std::collections::HashMap;
use std::time::Duration;

use magnum_common::model::MagnumService;
use magnum_db::read::announced_drivers::{self, AnnouncedDriver};
use magnum_db::read::operations::{self, Operation, OperationFilter};
use magnum_db::read::{clusters, records};
use magnum_db::{AnyConnection, Database, DbError, now_ms};

use super::{StoreError, reading};

/// What is looked for, and how much of it.
#[derive(Debug, Clone, Copy)]
pub struct OverviewLimits {
    /// A driver announced longer ago does not count.
    pub announced_within: Duration,
    /// A queued operation whose turn it is should have begun within this time, and one whose conductor has lost it be
    /// taken by another.
    pub begins_within: Duration,
    /// Most operations of each kind: open, stuck, failed or refused, ended.
    pub most: u32,
}

/// The state of the deployment.
#[derive(Debug, Default)]
pub struct Overview {
    /// The database's time, in milliseconds since 1970.
    pub now_ms: i64,
    /// Every service that has ever reported.
    pub services: Vec<MagnumService>,
    /// What conductors have announced lately, with what does not load.
    pub drivers: Vec<AnnouncedDriver>,
    /// How many operations are in each open state, of those states that have any.
    pub open_counts: Vec<(String, i64)>,
    /// Operations that have not ended, the latest first.
    pub open: Vec<Operation>,
    /// Those of them that do not go on as they should, the oldest first.
    pub stuck: Vec<Operation>,
    /// Operations that failed or were refused, the latest first.
    pub failed: Vec<Operation>,
    /// Operations that have ended, however, of the latest first.
    pub ended: Vec<Operation>,
    /// Names of clusters that still exist, by uuid.
    pub names: HashMap<String, String>,
}

impl Overview {
    /// The name of a cluster that still exists.
    pub fn name_of(&self, cluster: &str) -> Option<&str> {
        self.names.get(cluster).map(String::as_str)
    }

    /// How many operations are in this open state.
    pub fn open_in(&self, state: &str) -> i64 {
        let counted = self.open_counts.iter().find(|(counted, _)| counted == state);
        counted.map_or(0, |(_, count)| *count)
    }
}

/// Looks at everything.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn look(database: &Database, limits: OverviewLimits) -> Result<Overview, StoreError> {
    reading(database, move |connection| Ok(read(connection, limits)?)).await
}

fn read(connection: &mut AnyConnection, limits: OverviewLimits) -> Result<Overview, DbError> {
    let now_ms = now_ms(connection)?;
    let patience_ms = i64::try_from(limits.begins_within.as_millis()).unwrap_or(i64::MAX);
    let mut in_states = |states: &[&str]| {
        let filter = OperationFilter {
            states: Some(states.iter().map(|state| (*state).to_owned()).collect()),
            ..OperationFilter::default()
        };
        operations::list(connection, &filter, limits.most)
    };
    let open = in_states(operations::OPEN_STATES)?;
    let failed = in_states(&["failed", "refused"])?;
    let stuck = operations::stuck(connection, now_ms, patience_ms, limits.most)?;
    let ended = operations::ended(connection, limits.most)?;
    let names = names(connection, [&open, &failed, &stuck, &ended].into_iter().flatten())?;
    Ok(Overview {
        now_ms,
        services: records::services(connection)?,
        drivers: announced_drivers::list(connection, limits.announced_within)?,
        open_counts: operations::open_counts(connection)?,
        open,
        stuck,
        failed,
        ended,
        names,
    })
}

/// The names of the clusters that these operations are about, as far as they exist.
pub(super) fn names<'a>(
    connection: &mut AnyConnection,
    operations: impl Iterator<Item = &'a Operation>,
) -> Result<HashMap<String, String>, DbError> {
    let mut uuids: Vec<&str> = operations
        .map(|operation| operation.cluster_uuid.as_str())
        .collect();
    uuids.sort_unstable();
    uuids.dedup();
    clusters::names(connection, &uuids)
}
