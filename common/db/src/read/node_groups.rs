//! Reading node groups.

use std::collections::HashMap;

use diesel::prelude::*;

use super::{Page, Tenancy, filled, readable};
use crate::MOST_BINDS;
use crate::connection::{AnyConnection, MultiBackend};
use crate::error::DbError;
use crate::rows::NodeGroupRow;
use crate::schema::nodegroup;
use magnum_common::ids::{ClusterUuid, NodeGroupUuid};
use magnum_common::model::{NodeCounts, NodeGroup, Role};

type Boxed<'a> = nodegroup::BoxedQuery<'a, MultiBackend>;

/// Which groups of a cluster a list holds. Empty: all. Of a column, the outer `None` does not filter, the inner one
/// wants NULL.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct Filter {
    pub name: Option<Option<String>>,
    pub role: Option<Option<String>>,
    pub node_count: Option<Option<i32>>,
    /// Exactly this text of JSON.
    pub node_addresses: Option<Option<String>>,
    pub is_default: Option<Option<bool>>,
    /// Any of these; of none of these there are no groups.
    pub statuses: Option<Vec<String>>,
}

/// The group of this cluster with this uuid, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_uuid(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    cluster: &ClusterUuid,
    uuid: &NodeGroupUuid,
) -> Result<Option<NodeGroup>, DbError> {
    let query = of(tenancy, cluster).filter(nodegroup::uuid.eq(uuid.to_string()));
    one(conn, query)
}

/// The group of this cluster with this name, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_name(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    cluster: &ClusterUuid,
    name: &str,
) -> Result<Option<NodeGroup>, DbError> {
    let query = of(tenancy, cluster).filter(nodegroup::name.eq(name.to_owned()));
    one(conn, query)
}

/// The group of this cluster with this row number, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_id(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    cluster: &ClusterUuid,
    id: i32,
) -> Result<Option<NodeGroup>, DbError> {
    one(conn, of(tenancy, cluster).filter(nodegroup::id.eq(id)))
}

/// How many groups of this cluster the caller may see.
///
/// # Errors
/// The database failed.
pub fn count(conn: &mut AnyConnection, tenancy: &Tenancy, cluster: &ClusterUuid) -> Result<i64, DbError> {
    Ok(of(tenancy, cluster)
        .select(diesel::dsl::count_star())
        .get_result(conn)?)
}

/// All groups of a cluster, oldest first. A group that cannot be read is an error here: a driver that is
/// called without it would take its nodes away.
///
/// # Errors
/// The database failed.
pub fn of_cluster(conn: &mut AnyConnection, cluster: &ClusterUuid) -> Result<Vec<NodeGroup>, DbError> {
    let rows: Vec<NodeGroupRow> = of(&Tenancy::All, cluster)
        .select(NodeGroupRow::as_select())
        .order(nodegroup::id)
        .load(conn)?;
    rows.into_iter().map(NodeGroup::try_from).collect()
}

/// The groups of many clusters in one query (one per thousand clusters), by cluster, oldest first.
///
/// # Errors
/// The database failed.
pub fn of_clusters(
    conn: &mut AnyConnection,
    clusters: &[ClusterUuid],
) -> Result<HashMap<ClusterUuid, Vec<NodeGroup>>, DbError> {
    let mut rows: Vec<NodeGroupRow> = Vec::new();
    for part in clusters.chunks(MOST_BINDS) {
        rows.extend(
            of_any(part)
                .select(NodeGroupRow::as_select())
                .order(nodegroup::id)
                .load::<NodeGroupRow>(conn)?,
        );
    }
    let mut groups: HashMap<ClusterUuid, Vec<NodeGroup>> = HashMap::new();
    for group in readable::<_, NodeGroup>(rows) {
        groups.entry(group.cluster_id.clone()).or_default().push(group);
    }
    Ok(groups)
}

/// How many nodes many clusters have, in one query (one per thousand clusters): for lists that show no more of the
/// groups than that.
///
/// # Errors
/// The database failed.
pub fn counts(
    conn: &mut AnyConnection,
    clusters: &[ClusterUuid],
) -> Result<HashMap<ClusterUuid, NodeCounts>, DbError> {
    let mut counts: HashMap<ClusterUuid, NodeCounts> = HashMap::new();
    for part in clusters.chunks(MOST_BINDS) {
        let rows: Vec<(Option<String>, Option<String>, Option<i32>)> = of_any(part)
            .select((nodegroup::cluster_id, nodegroup::role, nodegroup::node_count))
            .load(conn)?;
        for (cluster, role, nodes) in rows {
            let cluster = ClusterUuid::new(cluster.unwrap_or_default());
            let is_master = role.as_deref() == Some(Role::Master.as_str());
            counts
                .entry(cluster)
                .or_default()
                .add(is_master, nodes.unwrap_or(NodeGroup::DEFAULT_NODE_COUNT));
        }
    }
    Ok(counts)
}

/// One page of a cluster's groups.
///
/// # Errors
/// The database failed.
pub fn list(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    cluster: &ClusterUuid,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<NodeGroup>, DbError> {
    filled(
        page,
        |row: &NodeGroupRow| row.id,
        |page| {
            let mut query = of(tenancy, cluster);
            macro_rules! equal {
                ($($column:ident),*) => {
                    $(match filter.$column.clone() {
                        None => {}
                        Some(None) => query = query.filter(nodegroup::$column.is_null()),
                        Some(Some(value)) => query = query.filter(nodegroup::$column.eq(value)),
                    })*
                };
            }
            equal!(name, role, node_count, node_addresses, is_default);
            if let Some(statuses) = filter.statuses.clone() {
                query = query.filter(nodegroup::status.eq_any(statuses));
            }
            if let Some(start) = page.start("nodegroup") {
                query = query.filter(start);
            }
            if let Some(limit) = page.limit {
                query = query.limit(i64::from(limit));
            }
            query
                .select(NodeGroupRow::as_select())
                .order(page.order("nodegroup"))
                .load(conn)
                .map_err(DbError::from)
        },
    )
}

/// The groups of any of these clusters.
fn of_any(clusters: &[ClusterUuid]) -> Boxed<'static> {
    let query = nodegroup::table.into_boxed();
    match clusters {
        // A statement with `IN` is prepared anew each time, since there is one for every number of values.
        [one] => query.filter(nodegroup::cluster_id.eq(one.to_string())),
        many => {
            let texts: Vec<String> = many.iter().map(ToString::to_string).collect();
            query.filter(nodegroup::cluster_id.eq_any(texts))
        }
    }
}

fn of(tenancy: &Tenancy, cluster: &ClusterUuid) -> Boxed<'static> {
    let query = nodegroup::table
        .filter(nodegroup::cluster_id.eq(cluster.to_string()))
        .into_boxed();
    match tenancy {
        Tenancy::All => query,
        Tenancy::Project(project) => query.filter(nodegroup::project_id.eq(project.clone())),
        // The table has no user.
        Tenancy::User(_) | Tenancy::Nobody => query.filter(nodegroup::id.lt(0)),
    }
}

fn one(conn: &mut AnyConnection, query: Boxed<'_>) -> Result<Option<NodeGroup>, DbError> {
    query
        .select(NodeGroupRow::as_select())
        .first::<NodeGroupRow>(conn)
        .optional()?
        .map(NodeGroup::try_from)
        .transpose()
}
