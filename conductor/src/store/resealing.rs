//! Sealed values in the form that they should have now: bound to their row, and sealed with the first key. Each is written
//! only if it is still what was read, so conductors may be at work meanwhile.

use diesel::prelude::*;
use magnum_db::{AnyConnection, DbError, schema};

use super::cluster_trusts::TrustRow;
use crate::seal::{JournalKey, Place};

/// What became of the values of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Written in the present form.
    pub renewed: usize,
    /// Those that cannot be opened, or may not be.
    pub refused: usize,
}

/// Contexts of operations that have not ended.
///
/// # Errors
/// The database's.
pub fn contexts(conn: &mut AnyConnection, key: &JournalKey) -> Result<Resealed, DbError> {
    use schema::conductor_operation::dsl as op;
    let rows: Vec<(String, Option<Vec<u8>>, i64)> = op::conductor_operation
        .filter(op::context.is_not_null())
        .select((op::uuid, op::context, op::created_ms))
        .load(conn)?;
    let mut done = Resealed::default();
    for (uuid, context, created_ms) in rows {
        let Some(before) = context else { continue };
        let Some(after) = renewed(key, Place::Context(&uuid), created_ms, &before, &mut done) else {
            continue;
        };
        let row = op::conductor_operation
            .filter(op::uuid.eq(&uuid))
            .filter(op::context.eq(&before));
        done.renewed += diesel::update(row).set(op::context.eq(after)).execute(conn)?;
    }
    Ok(done)
}

/// Passwords of clusters' users in Keystone.
///
/// # Errors
/// The database's.
pub fn trusts(conn: &mut AnyConnection, key: &JournalKey) -> Result<Resealed, DbError> {
    use schema::conductor_cluster_trust::dsl as t;
    let rows: Vec<TrustRow> = t::conductor_cluster_trust
        .select(TrustRow::as_select())
        .load(conn)?;
    let mut done = Resealed::default();
    for row in rows {
        let (cluster, before) = (row.cluster_uuid.as_str(), row.sealed_password);
        let place = Place::TrustPassword(cluster);
        let Some(after) = renewed(key, place, row.created_ms, &before, &mut done) else {
            continue;
        };
        let row = t::conductor_cluster_trust
            .find(cluster)
            .filter(t::sealed_password.eq(&before));
        done.renewed += diesel::update(row)
            .set(t::sealed_password.eq(after))
            .execute(conn)?;
    }
    Ok(done)
}

/// A value in its present form. `None`: it has that already, or cannot be opened, which is counted.
fn renewed(
    key: &JournalKey,
    place: Place<'_>,
    made_ms: i64,
    sealed: &[u8],
    done: &mut Resealed,
) -> Option<Vec<u8>> {
    if key.is_current(place, sealed) {
        return None;
    }
    let after = key
        .open(place, made_ms, sealed)
        .and_then(|plain| key.seal_bound(place, &plain));
    if after.is_err() {
        done.refused += 1;
    }
    after.ok()
}
