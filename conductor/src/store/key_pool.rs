//! Private keys made ahead of need, sealed: `conductor_key_pool`, shared by all conductors.
//!
//! A key belongs to whoever deletes its row. The caller may use what [`take`] returns only after the transaction has
//! been committed; a caller that dies between the two has lost the key, and nobody gets it a second time.

use std::collections::HashMap;
use std::time::Duration;

use diesel::dsl::count_star;
use diesel::prelude::*;
use magnum_db::{self as db, AnyConnection, DbError, schema};
use rand::seq::SliceRandom;

use schema::conductor_key_pool::dsl as k;

/// An older key is not used any more, but discarded. So what can go wrong with keys that lie about has an end: a backup
/// of the database that is put back later holds no keys that were handed out since it was made.
pub const LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
/// Among so many of the oldest a taker chooses at random, so that conductors seldom want the same one.
const CHOICE: i64 = 32;

/// Takes one key of this type. `None`: there is none.
///
/// # Errors
/// The database's.
pub fn take(conn: &mut AnyConnection, key_type: &str) -> Result<Option<Vec<u8>>, DbError> {
    let mut candidates: Vec<i64> = k::conductor_key_pool
        .filter(k::key_type.eq(key_type))
        .filter(k::created_ms.gt(too_old()))
        .order(k::created_ms)
        .limit(CHOICE)
        .select(k::id)
        .load(conn)?;
    candidates.shuffle(&mut rand::rng());
    for id in candidates {
        let row = k::conductor_key_pool.filter(k::id.eq(id)).select(k::sealed);
        let Some(sealed) = row.first(conn).optional()? else {
            continue;
        };
        // Another conductor may have deleted it since it was read: then it is that one's.
        if diesel::delete(k::conductor_key_pool.filter(k::id.eq(id))).execute(conn)? == 1 {
            return Ok(Some(sealed));
        }
    }
    Ok(None)
}

/// Adds a key, unless there are `limit` of its type: `None`, then. Returns how many there are with it; conductors that
/// add at the same moment may exceed the limit by one each.
///
/// # Errors
/// The database's.
pub fn add(
    conn: &mut AnyConnection,
    key_type: &str,
    sealed: &[u8],
    limit: u32,
) -> Result<Option<u64>, DbError> {
    let before = depth(conn, key_type)?;
    if before >= u64::from(limit) {
        return Ok(None);
    }
    diesel::insert_into(k::conductor_key_pool)
        .values((
            k::key_type.eq(key_type),
            k::sealed.eq(sealed),
            k::created_ms.eq(db::now_ms_expr(conn)),
        ))
        .execute(conn)?;
    Ok(Some(before + 1))
}

/// How many keys of this type can be taken.
///
/// # Errors
/// The database's.
pub fn depth(conn: &mut AnyConnection, key_type: &str) -> Result<u64, DbError> {
    let count: i64 = k::conductor_key_pool
        .filter(k::key_type.eq(key_type))
        .filter(k::created_ms.gt(too_old()))
        .count()
        .get_result(conn)?;
    Ok(count.unsigned_abs())
}

/// How many keys of each type can be taken.
///
/// # Errors
/// The database's.
pub fn depths(conn: &mut AnyConnection) -> Result<HashMap<String, u64>, DbError> {
    let counts: Vec<(String, i64)> = k::conductor_key_pool
        .filter(k::created_ms.gt(too_old()))
        .group_by(k::key_type)
        .select((k::key_type, count_star()))
        .load(conn)?;
    Ok(counts
        .into_iter()
        .map(|(key_type, count)| (key_type, count.unsigned_abs()))
        .collect())
}

/// Deletes keys of any type that are older than [`LIFETIME`]. Returns how many.
///
/// # Errors
/// The database's.
pub fn discard_old(conn: &mut AnyConnection) -> Result<usize, DbError> {
    Ok(diesel::delete(k::conductor_key_pool.filter(k::created_ms.le(too_old()))).execute(conn)?)
}

fn too_old() -> db::NowMs {
    let lifetime = i64::try_from(LIFETIME.as_millis()).unwrap_or(i64::MAX);
    db::now_plus_ms_expr(-lifetime)
}
