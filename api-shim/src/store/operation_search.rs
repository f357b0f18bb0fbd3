//! Operations of all projects for operators: what they look for, and the history of one.

use std::collections::HashMap;

use magnum_db::read::clusters;
use magnum_db::read::operations::{self, Operation, OperationEvent, OperationFilter, OperationRecord};
use magnum_db::{AnyConnection, Database, DbError, now_ms};
use uuid::Uuid;

use super::overview::names;
use super::{StoreError, reading};

/// Without an index to go by, so many of the newest operations are looked through.
pub const LOOKED_THROUGH: i64 = 100_000;

/// Most events that are read of one operation; of more, the latest.
const MOST_EVENTS: u32 = 1000;

/// Which operations an operator looks for. `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// The id of an operation, of a message, of a request (`req-…`), or the uuid or name of a cluster.
    pub text: Option<String>,
    /// Of this project.
    pub project: Option<String>,
    /// Of this kind.
    pub kind: Option<String>,
    /// In one of these states.
    pub states: Option<Vec<String>>,
    /// Older than the operation with this number.
    pub before_id: Option<i64>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct FoundOperations {
    /// The operations, the latest first.
    pub operations: Vec<Operation>,
    /// Whether there are older ones.
    pub has_older: bool,
    /// Whether only the newest [`LOOKED_THROUGH`] operations were looked through, of more.
    pub is_partial: bool,
    /// The database's time, in milliseconds since 1970.
    pub now_ms: i64,
    names: HashMap<String, String>,
}

impl FoundOperations {
    /// The name of a cluster that still exists.
    pub fn name_of(&self, cluster: &str) -> Option<&str> {
        self.names.get(cluster).map(String::as_str)
    }
}

/// Looks for at most `most` operations.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn find(database: &Database, search: Search, most: u32) -> Result<FoundOperations, StoreError> {
    reading(database, move |connection| Ok(found(connection, search, most)?)).await
}

fn found(connection: &mut AnyConnection, search: Search, most: u32) -> Result<FoundOperations, DbError> {
    let mut filter = OperationFilter {
        project: search.project,
        kind: search.kind,
        states: search.states,
        before_id: search.before_id,
        ..OperationFilter::default()
    };
    if let Some(text) = search.text {
        about(connection, &mut filter, text)?;
    }
    let newest = operations::newest_id(connection)?;
    let has_index = filter.id.is_some() || filter.clusters.is_some() || filter.states.is_some();
    let is_filtered = filter.project.is_some() || filter.kind.is_some() || filter.request.is_some();
    let is_partial = is_filtered && !has_index && newest > LOOKED_THROUGH;
    if is_partial {
        filter.after_id = Some(newest - LOOKED_THROUGH);
    }
    // One more than is shown, which tells whether there are more.
    let mut operations = operations::list(connection, &filter, most.saturating_add(1))?;
    let shown = usize::try_from(most).unwrap_or(usize::MAX);
    let has_older = operations.len() > shown;
    operations.truncate(shown);
    Ok(FoundOperations {
        now_ms: now_ms(connection)?,
        names: names(connection, operations.iter())?,
        operations,
        has_older,
        is_partial,
    })
}

/// Narrows the filter to what the text names.
fn about(connection: &mut AnyConnection, filter: &mut OperationFilter, text: String) -> Result<(), DbError> {
    if text.starts_with("req-") {
        filter.request = Some(text);
    } else if let Ok(uuid) = Uuid::try_parse(&text) {
        // Message ids are uuids without dashes where oslo.messaging has made them.
        let (usual, simple) = (uuid.to_string(), uuid.simple().to_string());
        filter.id = operations::number_of(connection, &usual, &[&text, &usual, &simple])?;
        if filter.id.is_none() {
            filter.clusters = Some(vec![usual]);
        }
    } else {
        // Of none there are no operations: names are those of clusters that exist, since the journal has none.
        filter.clusters = Some(clusters::named(connection, &text)?);
    }
    Ok(())
}

/// An operation with everything that happened to it.
#[derive(Debug)]
pub struct History {
    /// The operation.
    pub record: OperationRecord,
    /// What happened to it, in order; of very much, the latest.
    pub events: Vec<OperationEvent>,
    /// The operation of the same cluster that it waits for, while it is queued.
    pub ahead: Option<Operation>,
    /// The cluster's name, if it still exists and has one.
    pub cluster_name: Option<String>,
    /// The database's time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// The operation with this id; `None` when the journal has none.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn history(database: &Database, id: Uuid) -> Result<Option<History>, StoreError> {
    let id = id.to_string();
    reading(database, move |connection| {
        let Some(record) = operations::find(connection, &id)? else {
            return Ok(None);
        };
        let operation = &record.operation;
        let ahead = if operation.state == "queued" {
            operations::ahead_of(connection, operation)?
        } else {
            None
        };
        let mut names = names(connection, [operation].into_iter())?;
        Ok(Some(History {
            events: operations::history(connection, &id, MOST_EVENTS)?,
            ahead,
            cluster_name: names.remove(&operation.cluster_uuid),
            now_ms: now_ms(connection)?,
            record,
        }))
    })
    .await
}
