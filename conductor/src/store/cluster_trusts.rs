//! Users and trusts of clusters in Keystone: `conductor_cluster_trust`. The password is sealed before it gets here.
//!
//! A row is there before the first request to Keystone, so nothing is made there that no row tells of. It gets the ids as
//! they become known, and goes when both are removed: conductors claim rows that are due ([`claim_removals`]), and a claim
//! ends by itself.

use std::time::Duration;

use diesel::prelude::*;
use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_db::rows::FreeText;
use magnum_db::write::unless_exists;
use magnum_db::{self as db, AnyConnection, DbError, lock, schema};

use schema::conductor_cluster_trust::dsl as t;

/// A cluster's user and trust, as far as they are made.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = schema::conductor_cluster_trust)]
pub struct TrustRow {
    /// Whose they are.
    #[diesel(deserialize_as = String)]
    pub cluster_uuid: ClusterUuid,
    /// The user's name.
    pub trustee_username: String,
    /// The user, once it is known to be there.
    pub trustee_user_id: Option<String>,
    /// The trust, once it is known to be there.
    pub trust_id: Option<String>,
    /// The user's password.
    pub sealed_password: Vec<u8>,
    /// Attempts to remove them that failed.
    pub failures: i32,
    /// When the row was made, by the database's clock; [`insert`] sets it.
    pub created_ms: i64,
}

/// Adds a row for a cluster that has none. `false`: it has one, or the cluster is gone.
///
/// # Errors
/// The database's.
pub fn insert(conn: &mut AnyConnection, row: &TrustRow) -> Result<bool, DbError> {
    if !lock::cluster(conn, &row.cluster_uuid)? {
        return Ok(false);
    }
    let values = (
        t::cluster_uuid.eq(row.cluster_uuid.as_str()),
        t::trustee_username.eq(&row.trustee_username),
        t::trustee_user_id.eq(&row.trustee_user_id),
        t::trust_id.eq(&row.trust_id),
        t::sealed_password.eq(&row.sealed_password),
        t::created_ms.eq(db::now_ms_expr(conn)),
    );
    unless_exists(conn, |conn| {
        diesel::insert_into(t::conductor_cluster_trust)
            .values(values)
            .execute(conn)
    })
}

/// The rows of these clusters.
///
/// # Errors
/// The database's.
pub fn find_many(conn: &mut AnyConnection, clusters: &[&str]) -> Result<Vec<TrustRow>, DbError> {
    Ok(t::conductor_cluster_trust
        .filter(t::cluster_uuid.eq_any(clusters))
        .select(TrustRow::as_select())
        .load(conn)?)
}

/// Writes down the cluster's user.
///
/// # Errors
/// The database's.
pub fn set_trustee(conn: &mut AnyConnection, cluster: &ClusterUuid, user: &str) -> Result<(), DbError> {
    diesel::update(t::conductor_cluster_trust.find(cluster.as_str()))
        .set(t::trustee_user_id.eq(user))
        .execute(conn)?;
    Ok(())
}

/// Writes down the cluster's trust.
///
/// # Errors
/// The database's.
pub fn set_trust(conn: &mut AnyConnection, cluster: &ClusterUuid, trust: &str) -> Result<(), DbError> {
    diesel::update(t::conductor_cluster_trust.find(cluster.as_str()))
        .set(t::trust_id.eq(trust))
        .execute(conn)?;
    Ok(())
}

/// The cluster is gone: its user and trust are to be removed. To be called in the transaction that deletes it.
///
/// # Errors
/// The database's.
pub fn remove(conn: &mut AnyConnection, cluster: &ClusterUuid) -> Result<(), DbError> {
    let row = t::conductor_cluster_trust.find(cluster.as_str());
    diesel::update(row.filter(t::next_attempt_ms.is_null()))
        .set(t::next_attempt_ms.eq(db::now_ms_expr(conn).nullable()))
        .execute(conn)?;
    Ok(())
}

/// Claims at most `limit` rows whose user and trust are to be removed, for `term` from now. To be run in a transaction of
/// its own.
///
/// # Errors
/// The database's.
pub fn claim_removals(
    conn: &mut AnyConnection,
    me: &ConductorId,
    term: Duration,
    limit: i64,
) -> Result<Vec<TrustRow>, DbError> {
    let now = db::now_ms_expr(conn);
    let due: Vec<String> = t::conductor_cluster_trust
        .filter(t::next_attempt_ms.le(now.nullable()))
        .order(t::next_attempt_ms)
        .limit(limit)
        .select(t::cluster_uuid)
        .load(conn)?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let rows = t::conductor_cluster_trust.filter(t::cluster_uuid.eq_any(&due));
    // Compared again: another conductor may have claimed some of them since.
    diesel::update(rows.filter(t::next_attempt_ms.le(now.nullable())))
        .set((
            t::owner.eq(me.as_str()),
            t::next_attempt_ms.eq(after(term).nullable()),
        ))
        .execute(conn)?;
    Ok(t::conductor_cluster_trust
        .filter(t::cluster_uuid.eq_any(&due))
        .filter(t::owner.eq(me.as_str()))
        .select(TrustRow::as_select())
        .load(conn)?)
}

/// Both are removed: so is the row.
///
/// # Errors
/// The database's.
pub fn removed(conn: &mut AnyConnection, cluster: &ClusterUuid) -> Result<(), DbError> {
    diesel::delete(t::conductor_cluster_trust.find(cluster.as_str())).execute(conn)?;
    Ok(())
}

/// They are not: the row is due again after `delay`, unless another conductor has claimed it since.
///
/// # Errors
/// The database's.
pub fn retry_later(
    conn: &mut AnyConnection,
    me: &ConductorId,
    row: &TrustRow,
    delay: Duration,
    reason: &str,
) -> Result<(), DbError> {
    let claimed = t::conductor_cluster_trust
        .find(row.cluster_uuid.as_str())
        .filter(t::owner.eq(me.as_str()));
    diesel::update(claimed)
        .set((
            t::owner.eq(None::<String>),
            t::failures.eq(row.failures.saturating_add(1)),
            t::next_attempt_ms.eq(after(delay).nullable()),
            t::reason.eq(Some(FreeText::from(reason))),
        ))
        .execute(conn)?;
    Ok(())
}

fn after(delay: Duration) -> db::NowMs {
    db::now_plus_ms_expr(i64::try_from(delay.as_millis()).unwrap_or(i64::MAX))
}
