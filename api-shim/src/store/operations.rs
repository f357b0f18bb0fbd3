//! What happened to a cluster: its operations in the conductors' journal.
//!
//! A cluster that exists shows its operations to callers who may see it. Of one that is gone the journal may still know:
//! whoever had it (the project that its creation names) sees all of its operations; where the creation is forgotten
//! already, a project sees those that it has asked for itself. So an administrator's work on a foreign cluster does not
//! make it the administrator's project's.

use std::collections::HashMap;

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Cluster;
use magnum_db::read::operations::{self, Operation, OperationEvent, OperationPage};
use magnum_db::read::{SortDir, Tenancy};
use magnum_db::{AnyConnection, Database, DbError};
use serde_json::{Value, json};

use super::{Ident, StoreError, clusters, reading};
use crate::policy::Resource;
use crate::validation::query::{Direction, Paging, bad_sort_key};

/// Most events that are read for one page; of more, the latest.
const MOST_EVENTS: u32 = 10_000;

/// A page of operations.
#[derive(Debug)]
pub struct OperationsPage {
    /// The cluster.
    pub cluster: ClusterUuid,
    /// Its owner, for policy rules.
    pub owner: ClusterOwner,
    /// The operations, in the order of the list.
    pub operations: Vec<Operation>,
    events: HashMap<String, Vec<OperationEvent>>,
}

impl OperationsPage {
    /// What happened to one of the operations, in order.
    pub fn events_of(&self, operation: &Operation) -> &[OperationEvent] {
        self.events.get(&operation.uuid).map_or(&[], Vec::as_slice)
    }
}

/// The owner of a cluster, for policy rules.
#[derive(Debug)]
pub enum ClusterOwner {
    /// The cluster exists.
    Cluster(Box<Cluster>),
    /// The cluster was deleted: the owner is known from the journal only.
    Gone {
        /// Its project.
        project_id: Option<String>,
        /// The user who created it.
        user_id: Option<String>,
    },
}

impl Resource for ClusterOwner {
    fn attribute(&self, name: &str) -> Option<Value> {
        match (self, name) {
            (Self::Cluster(cluster), _) => cluster.attribute(name),
            (Self::Gone { project_id, .. }, "project_id") => Some(json!(project_id)),
            (Self::Gone { user_id, .. }, "user_id") => Some(json!(user_id)),
            (Self::Gone { .. }, _) => None,
        }
    }
}

/// The cluster whose operations are listed, and the tenant scope of the list.
struct Subject {
    cluster: ClusterUuid,
    owner: ClusterOwner,
    scope: Tenancy,
}

/// One page of the operations of the cluster with this uuid or name.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn page(
    database: &Database,
    context: &RequestContext,
    ident: String,
    paging: Paging,
) -> Result<OperationsPage, StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        if !["id", "created_at"].contains(&paging.sort_key.as_str()) {
            // Both are the order of acceptance.
            return Err(bad_sort_key(&paging.sort_key).into());
        }
        let Subject {
            cluster,
            owner,
            scope,
        } = subject(connection, &tenancy, &ident)?;
        let after = match &paging.marker {
            None => None,
            Some(marker) => {
                let number = operations::number(connection, &cluster, marker)?;
                let none = || {
                    let text = format!("Operation {marker} could not be found.");
                    Fault::new(Exception::ObjectNotFound, text)
                };
                Some(number.ok_or_else(none)?)
            }
        };
        let page = OperationPage {
            limit: paging.limit,
            after,
            direction: match paging.direction {
                Direction::Ascending => SortDir::Asc,
                Direction::Descending => SortDir::Desc,
            },
        };
        let found = operations::of_cluster(connection, &cluster, &scope, &page)?;
        let uuids: Vec<&str> = found.iter().map(|operation| operation.uuid.as_str()).collect();
        let mut events: HashMap<String, Vec<OperationEvent>> = HashMap::new();
        for event in operations::events(connection, &uuids, MOST_EVENTS)? {
            events
                .entry(event.operation_uuid.clone())
                .or_default()
                .push(event);
        }
        Ok(OperationsPage {
            cluster,
            owner,
            operations: found,
            events,
        })
    })
    .await
}

fn subject(connection: &mut AnyConnection, tenancy: &Tenancy, ident: &str) -> Result<Subject, StoreError> {
    let not_found = match clusters::look_up(connection, tenancy, ident) {
        Ok(found) => {
            let cluster = found.cluster;
            return Ok(Subject {
                cluster: cluster.uuid.clone(),
                owner: ClusterOwner::Cluster(Box::new(cluster)),
                scope: Tenancy::All,
            });
        }
        Err(StoreError::Refused(fault)) if fault.code() == 404 => StoreError::Refused(fault),
        Err(other) => return Err(other),
    };
    let Ident::Uuid(uuid) = Ident::of(ident) else {
        return Err(not_found);
    };
    let cluster = ClusterUuid::from(uuid);
    // A cluster that exists and was not found is somebody else's.
    if clusters::row_exists(connection, &cluster)? {
        return Err(not_found);
    }
    gone(connection, tenancy, cluster)?.ok_or(not_found)
}

/// A cluster that is in the journal only.
fn gone(
    connection: &mut AnyConnection,
    tenancy: &Tenancy,
    cluster: ClusterUuid,
) -> Result<Option<Subject>, DbError> {
    let (scope, shown) = match operations::creation(connection, &cluster)? {
        Some(creation) if owns(tenancy, &creation) => (Tenancy::All, Some(creation)),
        Some(_) => return Ok(None),
        None => {
            let first = OperationPage {
                limit: 1,
                after: None,
                direction: SortDir::Asc,
            };
            let shown = operations::of_cluster(connection, &cluster, tenancy, &first)?;
            (tenancy.clone(), shown.into_iter().next())
        }
    };
    Ok(shown.map(|operation| Subject {
        cluster,
        owner: ClusterOwner::Gone {
            project_id: operation.project_id,
            user_id: operation.user_id,
        },
        scope,
    }))
}

fn owns(tenancy: &Tenancy, creation: &Operation) -> bool {
    match tenancy {
        Tenancy::All => true,
        Tenancy::Project(project) => creation.project_id.as_ref() == Some(project),
        Tenancy::User(user) => creation.user_id.as_ref() == Some(user),
        Tenancy::Nobody => false,
    }
}
