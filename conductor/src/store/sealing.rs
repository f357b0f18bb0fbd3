//! Since when values are sealed in a stricter way: `conductor_sealing`. A time counts with its proof, which only holders of the
//! journal key can make.
//!
//! Who may write to the database and has no key can delete a row, and no more. Conductors that have seen it keep to it and
//! say that it is gone; the next one to start knows nothing of it.

use std::time::Duration;

use diesel::prelude::*;
use magnum_db::write::unless_exists;
use magnum_db::{self as db, AnyConnection, DbError, schema};

use crate::seal::{ALWAYS, Beginning, JournalKey, Place, SealError};

use schema::conductor_sealing::dsl as s;

/// Conductors that do not know yet have so long to learn it, and to be restarted with the same options.
pub const GRACE: Duration = Duration::from_secs(60 * 60);

/// A row.
#[derive(Debug, Clone, Queryable)]
pub struct SealingRow {
    /// That of a [`Beginning`].
    pub name: String,
    /// Since when, in milliseconds since 1970.
    pub since_ms: i64,
    /// The same, sealed.
    pub proof: Vec<u8>,
}

/// All rows.
///
/// # Errors
/// The database's.
pub fn list(conn: &mut AnyConnection) -> Result<Vec<SealingRow>, DbError> {
    Ok(s::conductor_sealing
        .select((s::name, s::since_ms, s::proof))
        .load(conn)?)
}

/// Takes over what the table says, and returns what is wrong with it. A row without a valid proof counts as if nothing older
/// were left.
///
/// # Errors
/// The database's.
pub fn refresh(conn: &mut AnyConnection, key: &JournalKey) -> Result<Vec<String>, DbError> {
    let rows = list(conn)?;
    let mut problems = Vec::new();
    for what in Beginning::ALL {
        let Some(row) = rows.iter().find(|row| row.name == what.as_str()) else {
            if key.begun().since(*what).is_some() {
                problems.push(format!(
                    "the row {} of conductor_sealing is gone; this conductor keeps to it",
                    what.as_str()
                ));
            }
            continue;
        };
        if !is_proven(key, *what, row) {
            problems.push(format!(
                "the row {} of conductor_sealing has no valid proof: it was changed, or made with a key that is not in \
                 [conductor] journal_key_file. Nothing that is not sealed in the stricter way is accepted; if the key \
                 file was replaced, delete the row",
                what.as_str()
            ));
            key.begun().begin(*what, ALWAYS);
            continue;
        }
        key.begun().begin(*what, row.since_ms);
        if !key.is_current(Place::Beginning(what.as_str()), &row.proof) {
            // Another line of the key file is the first now, and the old one may go.
            set(conn, key, *what, row.since_ms)?;
        }
    }
    Ok(problems)
}

/// Whether somebody with the key has written this time.
pub fn is_proven(key: &JournalKey, what: Beginning, row: &SealingRow) -> bool {
    let proof = key.open(Place::Beginning(what.as_str()), row.since_ms, &row.proof);
    proof.is_ok_and(|since| since == row.since_ms.to_be_bytes())
}

/// It begins so long from now, unless that is written already. Takes the table over.
///
/// # Errors
/// The database's, or the system has no random numbers.
pub fn begin(
    conn: &mut AnyConnection,
    key: &JournalKey,
    what: Beginning,
    after: Duration,
) -> Result<(), DbError> {
    let since = db::now_ms(conn)?.saturating_add(i64::try_from(after.as_millis()).unwrap_or(i64::MAX));
    let proof = proof(key, what, since)?;
    unless_exists(conn, |conn| {
        diesel::insert_into(s::conductor_sealing)
            .values((
                s::name.eq(what.as_str()),
                s::since_ms.eq(since),
                s::proof.eq(proof),
            ))
            .execute(conn)
    })?;
    refresh(conn, key).map(drop)
}

/// Nothing older is left.
///
/// # Errors
/// As those of [`begin`].
pub fn complete(conn: &mut AnyConnection, key: &JournalKey, what: Beginning) -> Result<(), DbError> {
    begin(conn, key, what, Duration::ZERO)?;
    set(conn, key, what, ALWAYS)?;
    key.begun().begin(what, ALWAYS);
    Ok(())
}

/// A database in which nothing is sealed, and nobody is at work, needs no exceptions. Returns whether this is one.
///
/// # Errors
/// As those of [`begin`].
pub fn complete_if_unused(conn: &mut AnyConnection, key: &JournalKey) -> Result<bool, DbError> {
    let counts: [i64; 4] = [
        schema::conductor_operation::table.count().get_result(conn)?,
        schema::conductor_cluster_trust::table.count().get_result(conn)?,
        schema::conductor_driver::table.count().get_result(conn)?,
        s::conductor_sealing.count().get_result(conn)?,
    ];
    if counts.iter().any(|count| *count > 0) {
        return Ok(false);
    }
    complete(conn, key, Beginning::BoundValues)?;
    Ok(true)
}

fn set(conn: &mut AnyConnection, key: &JournalKey, what: Beginning, since_ms: i64) -> Result<(), DbError> {
    let proof = proof(key, what, since_ms)?;
    diesel::update(s::conductor_sealing.find(what.as_str()))
        .set((s::since_ms.eq(since_ms), s::proof.eq(proof)))
        .execute(conn)?;
    Ok(())
}

fn proof(key: &JournalKey, what: Beginning, since_ms: i64) -> Result<Vec<u8>, DbError> {
    key.seal_bound(Place::Beginning(what.as_str()), &since_ms.to_be_bytes())
        .map_err(|error: SealError| DbError::Unavailable(error.to_string()))
}
