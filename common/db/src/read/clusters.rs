//! Reading clusters.

use std::collections::HashMap;

use diesel::dsl::count_star;
use diesel::prelude::*;

use super::tenancy::keep_to;
use super::{Page, Tenancy, filled};
use crate::MOST_BINDS;
use crate::connection::{AnyConnection, MultiBackend};
use crate::error::DbError;
use crate::rows::ClusterRow;
use crate::schema::{cluster, nodegroup};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{Cluster, Role};

type Boxed<'a> = cluster::BoxedQuery<'a, MultiBackend>;

/// Which clusters a list holds. Empty: all that the tenancy allows. Of a column, the outer `None` does not filter,
/// the inner one wants NULL.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct Filter {
    pub cluster_template_id: Option<Option<String>>,
    pub name: Option<Option<String>>,
    pub stack_id: Option<Option<String>>,
    pub api_address: Option<Option<String>>,
    pub project_id: Option<Option<String>>,
    pub user_id: Option<Option<String>>,
    /// Any of these; of none of these there are no clusters.
    pub statuses: Option<Vec<String>>,
    /// Sum over the groups that are not of role `master`.
    pub node_count: Option<i64>,
    /// Sum over the groups of role `master`.
    pub master_count: Option<i64>,
}

/// The cluster with this uuid, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_uuid(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    uuid: &ClusterUuid,
) -> Result<Option<Cluster>, DbError> {
    let query = cluster::table
        .filter(cluster::uuid.eq(uuid.as_str()))
        .into_boxed();
    one(conn, keep_to!(query, tenancy, cluster))
}

/// The cluster with this row number, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_id(conn: &mut AnyConnection, tenancy: &Tenancy, id: i32) -> Result<Option<Cluster>, DbError> {
    let query = cluster::table.filter(cluster::id.eq(id)).into_boxed();
    one(conn, keep_to!(query, tenancy, cluster))
}

/// The clusters with this name that the caller may see; two at most, since two are already one too many for a
/// caller who wants one. MySQL's collation compares names without regard to case.
///
/// # Errors
/// The database failed.
pub fn find_by_name(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    name: &str,
) -> Result<Vec<Cluster>, DbError> {
    if name.contains('\0') {
        // PostgreSQL cannot hold such a name, nor be asked for it.
        return Ok(Vec::new());
    }
    let query = cluster::table
        .filter(cluster::name.eq(name.to_owned()))
        .into_boxed();
    let rows: Vec<ClusterRow> = keep_to!(query, tenancy, cluster)
        .select(ClusterRow::as_select())
        .order(cluster::id)
        .limit(2)
        .load(conn)?;
    rows.into_iter().map(Cluster::try_from).collect()
}

/// One page of clusters.
///
/// # Errors
/// The database failed.
pub fn list(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<Cluster>, DbError> {
    filled(
        page,
        |row: &ClusterRow| row.id,
        |page| {
            let mut query = keep_to!(filtered(filter), tenancy, cluster);
            if let Some(start) = page.start("cluster") {
                query = query.filter(start);
            }
            if let Some(limit) = page.limit {
                query = query.limit(i64::from(limit));
            }
            query
                .select(ClusterRow::as_select())
                .order(page.order("cluster"))
                .load(conn)
                .map_err(DbError::from)
        },
    )
}

/// How many clusters a list without end would hold.
///
/// # Errors
/// The database failed.
pub fn count_listed(conn: &mut AnyConnection, tenancy: &Tenancy, filter: &Filter) -> Result<i64, DbError> {
    let query = keep_to!(filtered(filter), tenancy, cluster);
    Ok(query.select(count_star()).get_result(conn)?)
}

/// How many clusters there are, in one project or in all: for quotas and statistics.
///
/// # Errors
/// The database failed.
pub fn count(conn: &mut AnyConnection, project_id: Option<&str>) -> Result<i64, DbError> {
    let mut query = cluster::table.select(count_star()).into_boxed();
    if let Some(project) = project_id {
        query = query.filter(cluster::project_id.eq(project.to_owned()));
    }
    Ok(query.get_result(conn)?)
}

/// How many clusters a project has besides these, which may be any number. One that is made meanwhile counts, whether
/// it is one of these or not.
///
/// # Errors
/// The database failed.
pub fn count_besides(conn: &mut AnyConnection, project_id: &str, besides: &[String]) -> Result<i64, DbError> {
    let mut there = 0;
    for part in besides.chunks(MOST_BINDS) {
        there += cluster::table
            .filter(cluster::project_id.eq(project_id))
            .filter(cluster::uuid.eq_any(part))
            .select(count_star())
            .get_result::<i64>(conn)?;
    }
    Ok(count(conn, Some(project_id))? - there)
}

/// How many nodes there are, masters included, in one project or in all.
///
/// # Errors
/// The database failed.
pub fn count_nodes(conn: &mut AnyConnection, project_id: Option<&str>) -> Result<i64, DbError> {
    let mut query = nodegroup::table
        .select(diesel::dsl::sum(nodegroup::node_count))
        .into_boxed();
    if let Some(project) = project_id {
        query = query.filter(nodegroup::project_id.eq(project.to_owned()));
    }
    Ok(query.get_result::<Option<i64>>(conn)?.unwrap_or(0))
}

/// How many clusters each project has, by project.
///
/// # Errors
/// The database failed.
pub fn count_by_project(conn: &mut AnyConnection) -> Result<Vec<(Option<String>, i64)>, DbError> {
    Ok(cluster::table
        .group_by(cluster::project_id)
        .select((cluster::project_id, count_star()))
        .order(cluster::project_id)
        .load(conn)?)
}

fn one(conn: &mut AnyConnection, query: Boxed<'_>) -> Result<Option<Cluster>, DbError> {
    query
        .select(ClusterRow::as_select())
        .first::<ClusterRow>(conn)
        .optional()?
        .map(Cluster::try_from)
        .transpose()
}

fn filtered(filter: &Filter) -> Boxed<'static> {
    let mut query = cluster::table.into_boxed();
    macro_rules! equal {
        ($($column:ident),*) => {
            $(match filter.$column.clone() {
                None => {}
                Some(None) => query = query.filter(cluster::$column.is_null()),
                Some(Some(value)) => query = query.filter(cluster::$column.eq(value)),
            })*
        };
    }
    equal!(
        cluster_template_id,
        name,
        stack_id,
        api_address,
        project_id,
        user_id
    );
    if let Some(statuses) = filter.statuses.clone() {
        query = query.filter(cluster::status.eq_any(statuses));
    }
    // A group without a count has one node; a cluster without a group of the role has none.
    let count_of = |masters: bool, wanted: i64| {
        let role = Role::Master.as_str();
        let comparison = if masters { "=" } else { "<>" };
        diesel::dsl::sql::<diesel::sql_types::Bool>(&format!(
            "(SELECT COALESCE(SUM(COALESCE(counted.node_count, 1)), 0) FROM nodegroup counted \
             WHERE counted.cluster_id = cluster.uuid AND counted.role {comparison} '{role}') = {wanted}"
        ))
    };
    if let Some(wanted) = filter.node_count {
        query = query.filter(count_of(false, wanted));
    }
    if let Some(wanted) = filter.master_count {
        query = query.filter(count_of(true, wanted));
    }
    query
}

/// The uuids of all clusters of this name, in any project.
///
/// # Errors
/// When the database fails.
pub fn named(conn: &mut AnyConnection, name: &str) -> Result<Vec<String>, DbError> {
    let found: Vec<Option<String>> = cluster::table
        .filter(cluster::name.eq(name))
        .select(cluster::uuid)
        .order(cluster::id)
        .load(conn)?;
    Ok(found.into_iter().flatten().collect())
}

/// The names of those of these clusters that exist and have one.
///
/// # Errors
/// When the database fails.
pub fn names(conn: &mut AnyConnection, uuids: &[&str]) -> Result<HashMap<String, String>, DbError> {
    let found: Vec<(Option<String>, Option<String>)> = cluster::table
        .filter(cluster::uuid.eq_any(uuids))
        .select((cluster::uuid, cluster::name))
        .load(conn)?;
    Ok(found
        .into_iter()
        .filter_map(|(uuid, name)| uuid.zip(name))
        .collect())
}
