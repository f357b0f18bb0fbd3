//! The conductor's reads and writes of `cluster`.

use std::collections::HashMap;

use diesel::prelude::*;
use magnum_common::ids::{ClusterUuid, TemplateUuid};
use magnum_common::model::{Cluster, ClusterStatus, ClusterTemplate};
use magnum_db::rows::json::to_text;
use magnum_db::rows::{self, ClusterRow, ClusterTemplateRow, FreeText, RowTime};
use magnum_db::{AnyConnection, DbError, schema};
use magnum_driver_api::ClusterChanges;

use crate::workflows::CertificateRefs;

use schema::cluster::dsl as c;

/// The cluster, whoever it belongs to.
///
/// # Errors
/// The database failed.
pub fn find(conn: &mut AnyConnection, uuid: &ClusterUuid) -> Result<Option<Cluster>, DbError> {
    c::cluster
        .filter(c::uuid.eq(uuid.as_str()))
        .select(ClusterRow::as_select())
        .first(conn)
        .optional()?
        .map(Cluster::try_from)
        .transpose()
}

/// Many clusters at once, by uuid. A row that cannot be read is left out, with an error in the log: it must not
/// stop the requests about others.
///
/// # Errors
/// The database failed.
pub fn find_many(conn: &mut AnyConnection, uuids: &[&str]) -> Result<HashMap<String, Cluster>, DbError> {
    let rows = c::cluster
        .filter(c::uuid.eq_any(uuids))
        .select(ClusterRow::as_select())
        .load(conn)?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            Cluster::try_from(row)
                .inspect_err(|error| tracing::error!(%error, "a cluster's row cannot be read"))
                .ok()
        })
        .map(|cluster| (cluster.uuid.to_string(), cluster))
        .collect())
}

/// The template, whoever it belongs to: the API has checked that its user may use it.
///
/// # Errors
/// The database failed.
pub fn template(conn: &mut AnyConnection, uuid: &TemplateUuid) -> Result<Option<ClusterTemplate>, DbError> {
    use schema::cluster_template::dsl as t;
    let row: Option<ClusterTemplateRow> = t::cluster_template
        .filter(t::uuid.eq(uuid.as_str()))
        .select(ClusterTemplateRow::as_select())
        .first(conn)
        .optional()?;
    // A database may compare without regard to case.
    Ok(row.and_then(readable).filter(|found| found.uuid == *uuid))
}

/// Many templates at once, by uuid.
///
/// # Errors
/// The database failed.
pub fn templates(
    conn: &mut AnyConnection,
    uuids: &[&str],
) -> Result<HashMap<String, ClusterTemplate>, DbError> {
    use schema::cluster_template::dsl as t;
    let rows = t::cluster_template
        .filter(t::uuid.eq_any(uuids))
        .select(ClusterTemplateRow::as_select())
        .load(conn)?;
    Ok(rows
        .into_iter()
        .filter_map(readable)
        .map(|template| (template.uuid.to_string(), template))
        .collect())
}

fn readable(row: ClusterTemplateRow) -> Option<ClusterTemplate> {
    ClusterTemplate::try_from(row)
        .inspect_err(|error| tracing::error!(%error, "a cluster template's row cannot be read"))
        .ok()
}

/// New clusters, in one statement.
///
/// # Errors
/// The database failed.
pub fn insert(conn: &mut AnyConnection, clusters: &[Cluster]) -> Result<(), DbError> {
    if clusters.is_empty() {
        return Ok(());
    }
    let rows: Vec<ClusterRow> = clusters.iter().map(ClusterRow::from).collect();
    super::insert_many!(conn, c::cluster, rows)?;
    Ok(())
}

/// Compare-and-set of the status, with its reason. `from: None` does not compare: for a status that is not known.
/// `false`: the status is another one, or the cluster is gone; nothing was written.
///
/// # Errors
/// The database failed.
pub fn set_status(
    conn: &mut AnyConnection,
    uuid: &ClusterUuid,
    from: Option<ClusterStatus>,
    to: ClusterStatus,
    reason: Option<&str>,
) -> Result<bool, DbError> {
    let set = (
        c::status.eq(Some(to.as_str())),
        c::status_reason.eq(reason.map(|reason| FreeText(reason.to_owned()))),
        c::updated_at.eq(Some(RowTime::now())),
    );
    let row = c::cluster.filter(c::uuid.eq(uuid.as_str()));
    let changed = match from {
        Some(from) => diesel::update(row.filter(c::status.eq(from.as_str())))
            .set(set)
            .execute(conn)?,
        None => diesel::update(row).set(set).execute(conn)?,
    };
    Ok(changed > 0)
}

/// The certificates that the cluster has from now on.
///
/// # Errors
/// The database failed.
pub fn set_certificates(
    conn: &mut AnyConnection,
    uuid: &ClusterUuid,
    refs: &CertificateRefs,
) -> Result<(), DbError> {
    diesel::update(c::cluster.filter(c::uuid.eq(uuid.as_str())))
        .set((
            c::ca_cert_ref.eq(Some(&refs.ca)),
            c::magnum_cert_ref.eq(Some(&refs.magnum)),
            c::etcd_ca_cert_ref.eq(Some(&refs.etcd_ca)),
            c::front_proxy_ca_cert_ref.eq(Some(&refs.front_proxy_ca)),
            c::updated_at.eq(Some(RowTime::now())),
        ))
        .execute(conn)?;
    Ok(())
}

/// The template that the cluster follows from now on.
///
/// # Errors
/// The database failed.
pub fn set_template(
    conn: &mut AnyConnection,
    uuid: &ClusterUuid,
    template: &TemplateUuid,
) -> Result<(), DbError> {
    diesel::update(c::cluster.filter(c::uuid.eq(uuid.as_str())))
        .set((
            c::cluster_template_id.eq(Some(template.as_str())),
            c::updated_at.eq(Some(RowTime::now())),
        ))
        .execute(conn)?;
    Ok(())
}

/// What a driver learned about a cluster. Not its status: that is [`set_status`]'s.
///
/// # Errors
/// The database failed.
pub fn apply(conn: &mut AnyConnection, uuid: &ClusterUuid, changes: &ClusterChanges) -> Result<(), DbError> {
    let set = |change: &Option<String>| change.clone().map(Some);
    let columns = rows::ClusterChanges {
        stack_id: set(&changes.stack_id),
        user_id: set(&changes.user_id),
        api_address: set(&changes.api_address),
        coe_version: set(&changes.coe_version),
        container_version: set(&changes.container_version),
        discovery_url: set(&changes.discovery_url),
        health_status: changes
            .health_status
            .map(|health| Some(health.as_str().to_owned())),
        health_status_reason: changes
            .health_status_reason
            .as_ref()
            .map(|reasons| Some(to_text(reasons))),
        ..rows::ClusterChanges::default()
    };
    if columns.is_empty() {
        return Ok(());
    }
    diesel::update(c::cluster.filter(c::uuid.eq(uuid.as_str())))
        .set(columns)
        .execute(conn)?;
    Ok(())
}

/// Takes a deleted cluster out of the database: certificates and trust (what is kept elsewhere is remembered as to
/// be removed), node groups, the cluster, and what we keep beside it. The journal stays. May be repeated.
///
/// # Errors
/// The database failed.
pub fn remove(conn: &mut AnyConnection, uuid: &ClusterUuid) -> Result<(), DbError> {
    use schema::conductor_cluster_driver::dsl as d;
    use schema::conductor_cluster_health::dsl as h;
    use schema::conductor_cluster_poll::dsl as p;
    use schema::nodegroup::dsl as n;

    if let Some(cluster) = find(conn, uuid)? {
        let certificates: Vec<String> = [
            cluster.ca_cert_ref,
            cluster.magnum_cert_ref,
            cluster.etcd_ca_cert_ref,
            cluster.front_proxy_ca_cert_ref,
        ]
        .into_iter()
        .flatten()
        .collect();
        super::certificate_removals::remove(conn, uuid, &certificates)?;
    }
    super::cluster_trusts::remove(conn, uuid)?;
    diesel::delete(n::nodegroup.filter(n::cluster_id.eq(uuid.as_str()))).execute(conn)?;
    diesel::delete(c::cluster.filter(c::uuid.eq(uuid.as_str()))).execute(conn)?;
    diesel::delete(p::conductor_cluster_poll.filter(p::cluster_uuid.eq(uuid.as_str()))).execute(conn)?;
    diesel::delete(h::conductor_cluster_health.filter(h::cluster_uuid.eq(uuid.as_str()))).execute(conn)?;
    diesel::delete(d::conductor_cluster_driver.filter(d::cluster_uuid.eq(uuid.as_str()))).execute(conn)?;
    Ok(())
}
