//! Which driver, in which version, built a cluster.

use std::collections::HashMap;

use diesel::prelude::*;

use crate::schema::conductor_cluster_driver::dsl as d;
use crate::{AnyConnection, DbError};

/// The driver that built a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltBy {
    /// Its name.
    pub driver: String,
    /// Its version, as semver.
    pub version: String,
}

/// The driver that built a cluster; none of one that a Python conductor built.
///
/// # Errors
/// When the database fails.
// Not by the function for many: a list of values makes another statement for each length, which is prepared each time.
pub fn of_cluster(conn: &mut AnyConnection, cluster: &str) -> Result<Option<BuiltBy>, DbError> {
    let found: Option<(String, String)> = d::conductor_cluster_driver
        .filter(d::cluster_uuid.eq(cluster))
        .select((d::driver, d::version))
        .first(conn)
        .optional()?;
    Ok(found.map(|(driver, version)| BuiltBy { driver, version }))
}

/// The drivers of clusters, by the uuid of the cluster; none of a cluster that a Python conductor built.
///
/// # Errors
/// When the database fails.
pub fn of_clusters(conn: &mut AnyConnection, clusters: &[&str]) -> Result<HashMap<String, BuiltBy>, DbError> {
    Ok(d::conductor_cluster_driver
        .filter(d::cluster_uuid.eq_any(clusters))
        .select((d::cluster_uuid, d::driver, d::version))
        .load::<(String, String, String)>(conn)?
        .into_iter()
        .map(|(cluster, driver, version)| (cluster, BuiltBy { driver, version }))
        .collect())
}
