//! Certificates that nobody needs any more, until they are removed from where they are kept:
//! `conductor_certificate_removal`.
//!
//! A certificate in the table `x509keypair` is deleted in the transaction that has no use for it any more. Every other
//! store is another service or a file system, which may be away: what is to be removed there is enqueued here in the
//! same transaction, and the conductors work the queue off with repetitions ([`queue`]). So no certificate outlives its
//! cluster unnoticed, whatever crashes in between.
//!
//! An entry of the queue is one of two things:
//! - the reference of a cluster's row. Its form says which manager has it: Barbican's are URLs; a uuid that is no row
//!   of `x509keypair` is a file;
//! - an operation ([`MadeBy`]) whose certificates got into no row. They are found by the operation. They belong to the
//!   manager of the conductor that sees the entry first ([`queue::assign_managers`]).

pub mod queue;

use std::time::Duration;

use diesel::prelude::*;
use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_config::CertManagerType;
use magnum_db::write::unless_exists;
use magnum_db::{self as db, AnyConnection, DbError, NowMs, schema};

use schema::conductor_certificate_removal::dsl as r;
use schema::x509keypair::dsl as k;

/// How long certificates of an operation are left alone after its end: a request to a store that was under way then
/// has arrived or never will.
const REQUESTS_ARRIVE_WITHIN: Duration = Duration::from_secs(60);

/// All certificates that an operation has made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeBy {
    /// The operation.
    pub operation: OperationId,
    /// What the CAs are called.
    pub name: String,
}

impl MadeBy {
    /// No store's own reference begins so.
    const PREFIX: &str = "operation:";

    fn reference(&self) -> String {
        format!("{}{}:{}", Self::PREFIX, self.operation, self.name)
    }

    /// From the reference of an entry; `None`: the entry is a certificate.
    pub fn read(reference: &str) -> Option<Self> {
        let (operation, name) = reference.strip_prefix(Self::PREFIX)?.split_once(':')?;
        Some(Self {
            operation: operation.into(),
            name: name.to_owned(),
        })
    }
}

/// Removes certificates of a cluster: rows at once, everything else by the queue. To be called in the transaction that
/// takes the references out of the cluster's row. May be repeated.
///
/// # Errors
/// The database's.
pub fn remove(conn: &mut AnyConnection, cluster: &ClusterUuid, references: &[String]) -> Result<(), DbError> {
    let rows: Vec<Option<String>> = k::x509keypair
        .filter(k::uuid.eq_any(references))
        .select(k::uuid)
        .load(conn)?;
    if !rows.is_empty() {
        diesel::delete(k::x509keypair.filter(k::uuid.eq_any(references))).execute(conn)?;
    }
    for reference in references {
        let was_row = rows.iter().flatten().any(|row| row == reference);
        if !reference.is_empty() && !was_row {
            let now = db::now_ms_expr(conn);
            enqueue(conn, cluster, reference, Some(manager_of(reference)), now)?;
        }
    }
    Ok(())
}

/// Removes what an operation has made, which ended before its certificates were in the cluster's row. To be called in
/// the transaction that ends it. May be repeated.
///
/// # Errors
/// The database's.
pub fn remove_made_by(conn: &mut AnyConnection, cluster: &ClusterUuid, made: &MadeBy) -> Result<(), DbError> {
    let due = db::now_plus_ms_expr(millis(REQUESTS_ARRIVE_WITHIN));
    enqueue(conn, cluster, &made.reference(), None, due)
}

/// The operation is tried again: what it has made is wanted after all.
///
/// # Errors
/// The database's.
pub fn keep_made_by(conn: &mut AnyConnection, operation: &OperationId) -> Result<(), DbError> {
    let pattern = format!("{}{operation}:%", MadeBy::PREFIX);
    diesel::delete(r::conductor_certificate_removal.filter(r::reference.like(pattern))).execute(conn)?;
    Ok(())
}

/// Nothing happens where the reference is in the queue already.
fn enqueue(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    reference: &str,
    manager: Option<CertManagerType>,
    due: NowMs,
) -> Result<(), DbError> {
    let entry = (
        r::reference.eq(reference),
        r::manager.eq(manager.map(CertManagerType::as_str)),
        r::cluster_uuid.eq(cluster.as_str()),
        r::next_attempt_ms.eq(due),
        r::created_ms.eq(db::now_ms_expr(conn)),
    );
    unless_exists(conn, |conn| {
        diesel::insert_into(r::conductor_certificate_removal)
            .values(entry)
            .execute(conn)
    })?;
    Ok(())
}

fn manager_of(reference: &str) -> CertManagerType {
    if reference.contains("://") {
        CertManagerType::Barbican
    } else {
        CertManagerType::Local
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_read_back_from_its_reference_and_a_certificate_is_none() {
        let made = MadeBy {
            operation: "6a1f7e0c-0000-4000-8000-000000000001".into(),
            name: "a:b".to_owned(),
        };
        assert_eq!(MadeBy::read(&made.reference()), Some(made));
        for reference in [
            "http://b/v1/containers/1",
            "6a1f7e0c-0000-4000-8000-000000000001",
            "",
        ] {
            assert_eq!(MadeBy::read(reference), None);
        }
    }
}
