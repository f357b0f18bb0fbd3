//! What the objects RPC answered to calls that changed something, by message: `conductor_object_answer`.
//!
//! A row is written in the transaction of the change that it answers, so a message that is delivered again finds
//! either both or neither.

use diesel::prelude::*;
use magnum_common::ids::MessageId;
use magnum_db::write::unless_exists;
use magnum_db::{self as db, AnyConnection, DbError, schema};

use schema::conductor_object_answer::dsl as a;

/// The answer to this message, if it was answered.
///
/// # Errors
/// The database failed.
pub fn find(conn: &mut AnyConnection, message: &MessageId) -> Result<Option<Vec<u8>>, DbError> {
    Ok(a::conductor_object_answer
        .filter(a::message_id.eq(message.as_str()))
        .select(a::answer)
        .first(conn)
        .optional()?)
}

/// Keeps an answer. `false`: the message was answered by another delivery meanwhile, and what was changed in this
/// transaction must not be kept.
///
/// # Errors
/// The database failed.
pub fn record(conn: &mut AnyConnection, message: &MessageId, answer: &[u8]) -> Result<bool, DbError> {
    let now = db::now_ms_expr(conn);
    unless_exists(conn, |conn| {
        diesel::insert_into(a::conductor_object_answer)
            .values((
                a::message_id.eq(message.as_str()),
                a::answer.eq(answer),
                a::created_ms.eq(now),
            ))
            .execute(conn)
    })
}

/// Forgets, oldest first, at most `window` answers that are older than `history_ms`; returns how many it forgot.
///
/// # Errors
/// The database failed.
pub fn purge(conn: &mut AnyConnection, history_ms: i64, window: i64) -> Result<usize, DbError> {
    let limit = db::now_ms(conn)?.saturating_sub(history_ms);
    let old: Vec<String> = a::conductor_object_answer
        .filter(a::created_ms.le(limit))
        .order(a::created_ms)
        .limit(window)
        .select(a::message_id)
        .load(conn)?;
    if old.is_empty() {
        return Ok(0);
    }
    Ok(diesel::delete(a::conductor_object_answer.filter(a::message_id.eq_any(old))).execute(conn)?)
}
