//! Node groups. Who may see a cluster may see all of its groups, whichever project they are of.

use magnum_common::context::RequestContext;
use magnum_common::error::Fault;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::NodeGroup;
use magnum_db::read::{self, SortKey, Tenancy};
use magnum_db::{AnyConnection, Database, DbError};

use super::clusters::{self, FoundCluster};
use super::{Ident, StoreError, acceptance, page_of, reading};
use crate::validation::query::Paging;

/// One page of the groups of a cluster, of one role or of all, with the cluster's uuid.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn page(
    database: &Database,
    context: &RequestContext,
    cluster: String,
    role: Option<String>,
    paging: Paging,
) -> Result<(ClusterUuid, Vec<NodeGroup>), StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let found = clusters::look_up(connection, &tenancy, &cluster)?;
        let cluster = found.cluster.uuid;
        let after = match &paging.marker {
            None => None,
            Some(marker) => {
                let uuid = NodeGroupUuid::from(marker.as_str());
                let group = read::node_groups::find_by_uuid(connection, &Tenancy::All, &cluster, &uuid)?;
                group.ok_or_else(|| Fault::node_group_not_found(marker))?.id
            }
        };
        let page = page_of(&paging, SortKey::of_node_group(&paging.sort_key), after)?;
        let filter = read::node_groups::Filter {
            role: role.map(Some),
            ..read::node_groups::Filter::default()
        };
        let mut groups = read::node_groups::list(connection, &Tenancy::All, &cluster, &filter, &page)?;
        for group in &mut groups {
            acceptance::show_in_group(&found.changes, group);
        }
        Ok((cluster, groups))
    })
    .await
}

/// A group of a cluster, by uuid, name or row number, with its cluster.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn find(
    database: &Database,
    context: &RequestContext,
    cluster: String,
    group: String,
) -> Result<(FoundCluster, NodeGroup), StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let found = clusters::look_up(connection, &tenancy, &cluster)?;
        let mut group = look_up(connection, &found.cluster.uuid, &group)?
            .ok_or_else(|| Fault::node_group_not_found(&group))?;
        acceptance::show_in_group(&found.changes, &mut group);
        Ok((found, group))
    })
    .await
}

/// Whether the cluster has a group of this name.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn has(database: &Database, cluster: ClusterUuid, name: String) -> Result<bool, StoreError> {
    reading(database, move |connection| {
        let found = read::node_groups::find_by_name(connection, &Tenancy::All, &cluster, &name)?;
        Ok(found.is_some())
    })
    .await
}

/// A text that reads as a number is one, unless there is no such row: then it is a name.
fn look_up(
    connection: &mut AnyConnection,
    cluster: &ClusterUuid,
    ident: &str,
) -> Result<Option<NodeGroup>, DbError> {
    if let Ok(number) = ident.parse::<i32>() {
        let found = read::node_groups::find_by_id(connection, &Tenancy::All, cluster, number)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    match Ident::of(ident) {
        Ident::Uuid(uuid) => {
            let uuid = NodeGroupUuid::from(uuid);
            read::node_groups::find_by_uuid(connection, &Tenancy::All, cluster, &uuid)
        }
        // PostgreSQL cannot hold such a name, nor be asked for it.
        Ident::Name(name) if name.contains('\0') => Ok(None),
        Ident::Name(name) => read::node_groups::find_by_name(connection, &Tenancy::All, cluster, &name),
    }
}
