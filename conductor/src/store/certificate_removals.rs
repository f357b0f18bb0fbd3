//! Certificates that nobody needs any more, until they are removed from where they are kept.
//!
//! What is a row of `x509keypair` goes with the transaction that has no use for it any more. Everything else needs
//! another service or a file system, which may be away: it is written down here, in the same transaction, and removed
//! later with repetitions. So no certificate outlives its cluster unnoticed, whatever ends in between.
//!
//! Each says which certificate manager has it, so that a change of `[certificates] cert_manager_type` loses nothing. A
//! reference tells by its form; what is only known by its operation belongs to the manager of the conductors that see
//! it first ([`assign`]).

use std::time::Duration;

use diesel::prelude::*;
use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_config::CertManagerType;
use magnum_db::rows::FreeText;
use magnum_db::write::unless_exists;
use magnum_db::{self as db, AnyConnection, DbError, schema};

use schema::conductor_certificate_removal::dsl as r;
use schema::x509keypair::dsl as k;

/// Something to be removed, claimed by this conductor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Its row.
    pub id: i64,
    /// Where it is kept.
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

/// Which manager a reference is of. Barbican's are URLs; a uuid that is no row of `x509keypair` is a file.
fn manager_of(reference: &str) -> CertManagerType {
    if reference.contains("://") {
        CertManagerType::Barbican
    } else {
        CertManagerType::Local
    }
}

/// A cluster has no use for these any more. To be called in the transaction that takes the references out of its row.
/// May be repeated.
pub fn forget(conn: &mut AnyConnection, cluster: &ClusterUuid, references: &[String]) -> Result<(), DbError> {
    let rows: Vec<Option<String>> = k::x509keypair
        .filter(k::uuid.eq_any(references))
        .select(k::uuid)
        .load(conn)?;
    if !rows.is_empty() {
        diesel::delete(k::x509keypair.filter(k::uuid.eq_any(references))).execute(conn)?;
    }
    for reference in references {
        if reference.is_empty() || rows.iter().flatten().any(|row| row == reference) {
            continue;
        }
        let values = (
            r::reference.eq(reference),
            r::manager.eq(manager_of(reference).as_str()),
            r::cluster_uuid.eq(cluster.as_str()),
            r::next_attempt_ms.eq(db::now_ms_expr(conn)),
            r::created_ms.eq(db::now_ms_expr(conn)),
        );
        unless_exists(conn, |conn| {
            diesel::insert_into(r::conductor_certificate_removal)
                .values(values)
                .execute(conn)
        })?;
    }
    Ok(())
}

/// How long what an operation has made is left alone after its end: a request to a store that was under way then has
/// arrived or never will.
const SETTLED: Duration = Duration::from_secs(60);

/// What an operation has made and nobody refers to: found by the operation, since where it is was never written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeBy {
    /// The operation.
    pub operation: OperationId,
    /// What the CAs are called.
    pub name: String,
}

impl MadeBy {
    const PREFIX: &str = "operation:";

    fn reference(&self) -> String {
        format!("{}{}:{}", Self::PREFIX, self.operation, self.name)
    }

    /// Whether a reference is of this sort. No store's own begins so.
    pub fn read(reference: &str) -> Option<Self> {
        let (operation, name) = reference.strip_prefix(Self::PREFIX)?.split_once(':')?;
        Some(Self {
            operation: operation.into(),
            name: name.to_owned(),
        })
    }
}

/// An operation ended before its certificates were anybody's. To be called in the transaction that ends it.
pub fn forget_made(conn: &mut AnyConnection, cluster: &ClusterUuid, made: &MadeBy) -> Result<(), DbError> {
    let values = (
        r::reference.eq(made.reference()),
        r::cluster_uuid.eq(cluster.as_str()),
        r::next_attempt_ms.eq(db::now_plus_ms_expr(millis(SETTLED))),
        r::created_ms.eq(db::now_ms_expr(conn)),
    );
    unless_exists(conn, |conn| {
        diesel::insert_into(r::conductor_certificate_removal)
            .values(values)
            .execute(conn)
    })?;
    Ok(())
}

/// The operation is tried again: what it has made is wanted after all.
pub fn keep_made(conn: &mut AnyConnection, operation: &OperationId) -> Result<(), DbError> {
    let pattern = format!("{}{operation}:%", MadeBy::PREFIX);
    diesel::delete(r::conductor_certificate_removal.filter(r::reference.like(pattern))).execute(conn)?;
    Ok(())
}

/// Writes down whose it is where that is not known: of what an operation has made, and of what a conductor of an
/// older release forgot. `own` is the manager in use.
pub fn assign(conn: &mut AnyConnection, own: CertManagerType) -> Result<(), DbError> {
    let nobodys: Vec<(i64, String)> = r::conductor_certificate_removal
        .filter(r::manager.is_null())
        .select((r::id, r::reference))
        .load(conn)?;
    for (id, reference) in nobodys {
        let manager = match MadeBy::read(&reference) {
            Some(_) => own,
            None => manager_of(&reference),
        };
        let one = r::conductor_certificate_removal.filter(r::id.eq(id));
        diesel::update(one.filter(r::manager.is_null()))
            .set(r::manager.eq(manager.as_str()))
            .execute(conn)?;
    }
    Ok(())
}

/// Claims what is due, until `term` from now: a conductor that dies leaves it to another one then. To be run in a
/// transaction of its own.
pub fn claim(
    conn: &mut AnyConnection,
    me: &ConductorId,
    term: Duration,
    limit: i64,
) -> Result<Vec<Due>, DbError> {
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
    // Compared again: another conductor may have claimed some of them since.
    diesel::update(
        r::conductor_certificate_removal
            .filter(r::id.eq_any(&due))
            .filter(r::next_attempt_ms.le(now)),
    )
    .set((
        r::owner.eq(me.as_str()),
        r::next_attempt_ms.eq(db::now_plus_ms_expr(millis(term))),
    ))
    .execute(conn)?;
    type Row = (i64, String, Option<String>, String, i32, Option<String>);
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
    Ok(rows
        .into_iter()
        .map(|(id, reference, manager, cluster, failures, reason)| Due {
            id,
            manager: manager.as_deref().and_then(CertManagerType::named),
            reference,
            cluster: cluster.into(),
            failures: u32::try_from(failures).unwrap_or(0),
            reason,
        })
        .collect())
}

/// Gives back what this conductor has claimed and not finished: due at once, for any other.
pub fn release(conn: &mut AnyConnection, me: &ConductorId) -> Result<usize, DbError> {
    let given = diesel::update(r::conductor_certificate_removal.filter(r::owner.eq(me.as_str())))
        .set((
            r::owner.eq(None::<String>),
            r::next_attempt_ms.eq(db::now_ms_expr(conn)),
        ))
        .execute(conn)?;
    Ok(given)
}

/// It is gone.
pub fn done(conn: &mut AnyConnection, id: i64) -> Result<(), DbError> {
    diesel::delete(r::conductor_certificate_removal.filter(r::id.eq(id))).execute(conn)?;
    Ok(())
}

/// It is not: again after `delay`, unless somebody else has claimed it since.
pub fn failed(
    conn: &mut AnyConnection,
    me: &ConductorId,
    due: &Due,
    delay: Duration,
    reason: &str,
) -> Result<(), DbError> {
    diesel::update(
        r::conductor_certificate_removal
            .filter(r::id.eq(due.id))
            .filter(r::owner.eq(me.as_str())),
    )
    .set((
        r::owner.eq(None::<String>),
        r::failures.eq(i32::try_from(due.failures.saturating_add(1)).unwrap_or(i32::MAX)),
        r::next_attempt_ms.eq(db::now_plus_ms_expr(millis(delay))),
        r::reason.eq(Some(FreeText::from(reason))),
    ))
    .execute(conn)?;
    Ok(())
}

/// How many are still to be removed.
pub fn count(conn: &mut AnyConnection) -> Result<i64, DbError> {
    Ok(r::conductor_certificate_removal.count().get_result(conn)?)
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
