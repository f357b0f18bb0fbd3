//! Which driver, in which version, built a cluster.

use std::collections::HashMap;

use diesel::prelude::*;
use magnum_common::ids::ClusterUuid;
use magnum_db::read::cluster_drivers::{self, BuiltBy};
use magnum_db::{AnyConnection, DbError, schema};

use crate::workflows::DriverRef;

use schema::conductor_cluster_driver::dsl as d;

/// The driver that built the cluster; none for clusters of a Python conductor.
///
/// # Errors
/// The database failed.
pub fn find(conn: &mut AnyConnection, cluster: &ClusterUuid) -> Result<Option<DriverRef>, DbError> {
    Ok(cluster_drivers::of_cluster(conn, cluster.as_str())?.map(driver_ref))
}

/// The drivers of many clusters at once.
///
/// # Errors
/// The database failed.
pub fn find_many(conn: &mut AnyConnection, clusters: &[&str]) -> Result<HashMap<String, DriverRef>, DbError> {
    let found = cluster_drivers::of_clusters(conn, clusters)?.into_iter();
    Ok(found
        .map(|(cluster, built_by)| (cluster, driver_ref(built_by)))
        .collect())
}

fn driver_ref(built_by: BuiltBy) -> DriverRef {
    DriverRef {
        name: built_by.driver,
        version: built_by.version,
    }
}

/// Remembers the driver of a cluster. The first one stays: a later call changes nothing. Callers hold the
/// cluster's operation, so two of them cannot race.
///
/// # Errors
/// The database failed.
pub fn pin(conn: &mut AnyConnection, cluster: &ClusterUuid, driver: &DriverRef) -> Result<(), DbError> {
    if find(conn, cluster)?.is_some() {
        return Ok(());
    }
    diesel::insert_into(d::conductor_cluster_driver)
        .values((
            d::cluster_uuid.eq(cluster.as_str()),
            d::driver.eq(&driver.name),
            d::version.eq(&driver.version),
        ))
        .execute(conn)?;
    Ok(())
}
