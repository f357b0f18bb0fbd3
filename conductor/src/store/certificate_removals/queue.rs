//! Working the queue off: conductors claim entries that are due, and delete each when its certificates are gone.
//!
//! A claim ends by itself: what a conductor that died had claimed is due again then, and is removed once more, which
//! does no harm.

use std::time::Duration;

use diesel::prelude::*;
use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_config::CertManagerType;
use magnum_db::rows::FreeText;
use magnum_db::{self as db, AnyConnection, DbError, schema};

use super::{MadeBy, manager_of, millis};

use schema::conductor_certificate_removal::dsl as r;

/// An entry that this conductor has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Its row.
    pub id: i64,
    /// The certificate, or a [`MadeBy`].
    pub reference: String,
    /// The manager that has it; `None` for one that this release does not know.
    pub manager: Option<CertManagerType>,
    /// Whose it was.
    pub cluster: ClusterUuid,
    /// Attempts that failed.
    pub failures: u32,
    /// Why the last one did.
    pub reason: Option<String>,
}

/// Writes down the manager of entries that have none: of operations, and of what a conductor of an older release has
/// enqueued. `own` is the manager in use.
///
/// # Errors
/// The database's.
pub fn assign_managers(conn: &mut AnyConnection, own: CertManagerType) -> Result<(), DbError> {
    let entries: Vec<(i64, String)> = r::conductor_certificate_removal
        .filter(r::manager.is_null())
        .select((r::id, r::reference))
        .load(conn)?;
    for (id, reference) in entries {
        let manager = match MadeBy::read(&reference) {
            Some(_) => own,
            None => manager_of(&reference),
        };
        let entry = r::conductor_certificate_removal.filter(r::id.eq(id));
        // Compared again: another conductor may have been first.
        diesel::update(entry.filter(r::manager.is_null()))
            .set(r::manager.eq(manager.as_str()))
            .execute(conn)?;
    }
    Ok(())
}

/// Claims at most `limit` entries that are due, for `term` from now. To be run in a transaction of its own.
///
/// # Errors
/// The database's.
pub fn claim(
    conn: &mut AnyConnection,
    me: &ConductorId,
    term: Duration,
    limit: i64,
) -> Result<Vec<Claimed>, DbError> {
    let now = db::now_ms_expr(conn);
    let due: Vec<i64> = r::conductor_certificate_removal
        .filter(r::next_attempt_ms.le(now))
        .order(r::next_attempt_ms)
        .limit(limit)
        .select(r::id)
        .load(conn)?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let entries = r::conductor_certificate_removal.filter(r::id.eq_any(&due));
    // Compared again: another conductor may have claimed some of them since.
    diesel::update(entries.filter(r::next_attempt_ms.le(now)))
        .set((
            r::owner.eq(me.as_str()),
            r::next_attempt_ms.eq(db::now_plus_ms_expr(millis(term))),
        ))
        .execute(conn)?;
    let rows: Vec<Row> = r::conductor_certificate_removal
        .filter(r::id.eq_any(&due))
        .filter(r::owner.eq(me.as_str()))
        .select((
            r::id,
            r::reference,
            r::manager,
            r::cluster_uuid,
            r::failures,
            r::reason,
        ))
        .order(r::id)
        .load(conn)?;
    Ok(rows.into_iter().map(Claimed::from).collect())
}

type Row = (i64, String, Option<String>, String, i32, Option<String>);

impl From<Row> for Claimed {
    fn from((id, reference, manager, cluster, failures, reason): Row) -> Self {
        Self {
            id,
            reference,
            manager: manager.as_deref().and_then(CertManagerType::named),
            cluster: cluster.into(),
            failures: u32::try_from(failures).unwrap_or(0),
            reason,
        }
    }
}

/// Its certificates are gone: so is the entry.
///
/// # Errors
/// The database's.
pub fn complete(conn: &mut AnyConnection, id: i64) -> Result<(), DbError> {
    diesel::delete(r::conductor_certificate_removal.filter(r::id.eq(id))).execute(conn)?;
    Ok(())
}

/// They are not: the entry is due again after `delay`, unless another conductor has claimed it since.
///
/// # Errors
/// The database's.
pub fn retry_later(
    conn: &mut AnyConnection,
    me: &ConductorId,
    entry: &Claimed,
    delay: Duration,
    reason: &str,
) -> Result<(), DbError> {
    let claimed = r::conductor_certificate_removal
        .filter(r::id.eq(entry.id))
        .filter(r::owner.eq(me.as_str()));
    diesel::update(claimed)
        .set((
            r::owner.eq(None::<String>),
            r::failures.eq(i32::try_from(entry.failures.saturating_add(1)).unwrap_or(i32::MAX)),
            r::next_attempt_ms.eq(db::now_plus_ms_expr(millis(delay))),
            r::reason.eq(Some(FreeText::from(reason))),
        ))
        .execute(conn)?;
    Ok(())
}

/// Gives back everything that this conductor has claimed and not finished: due at once, for any other. Returns how
/// many entries that were.
///
/// # Errors
/// The database's.
pub fn release(conn: &mut AnyConnection, me: &ConductorId) -> Result<usize, DbError> {
    let mine = r::conductor_certificate_removal.filter(r::owner.eq(me.as_str()));
    Ok(diesel::update(mine)
        .set((
            r::owner.eq(None::<String>),
            r::next_attempt_ms.eq(db::now_ms_expr(conn)),
        ))
        .execute(conn)?)
}

/// How many entries there are, due or not.
///
/// # Errors
/// The database's.
pub fn depth(conn: &mut AnyConnection) -> Result<i64, DbError> {
    Ok(r::conductor_certificate_removal.count().get_result(conn)?)
}
