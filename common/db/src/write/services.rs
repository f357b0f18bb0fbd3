//! The heartbeat of a service: `magnum_service`, which `GET /v1/mservices` shows and Python services share.

use diesel::prelude::*;

use super::unless_exists;
use crate::connection::AnyConnection;
use crate::error::DbError;
use crate::rows::{MagnumServiceRow, RowTime};
use crate::schema::magnum_service;

/// Says that `binary` on `host` is alive: counts up and writes `last_seen_up`, making the row at the first
/// time.
///
/// Counted inside the database, so that several processes of one host, Python ones included, all move the
/// count; Magnum's own read-then-write lets two processes starve each other's timestamp.
///
/// # Errors
/// The database failed.
pub fn report(conn: &mut AnyConnection, host: &str, binary: &str) -> Result<(), DbError> {
    if beat(conn, host, binary)? {
        return Ok(());
    }
    let now = RowTime::now();
    let row = MagnumServiceRow {
        id: 0,
        host: Some(host.to_owned()),
        binary: Some(binary.to_owned()),
        disabled: Some(false),
        disabled_reason: None,
        last_seen_up: Some(now),
        forced_down: Some(false),
        report_count: 1,
        created_at: Some(now),
        updated_at: None,
    };
    // Another process of this host may have made it since.
    if !unless_exists(conn, |conn| {
        diesel::insert_into(magnum_service::table)
            .values(&row)
            .execute(conn)
    })? {
        beat(conn, host, binary)?;
    }
    Ok(())
}

fn beat(conn: &mut AnyConnection, host: &str, binary: &str) -> Result<bool, DbError> {
    let now = RowTime::now();
    let touched = diesel::update(
        magnum_service::table
            .filter(magnum_service::host.eq(host))
            .filter(magnum_service::binary.eq(binary)),
    )
    .set((
        magnum_service::report_count.eq(magnum_service::report_count + 1),
        magnum_service::last_seen_up.eq(now),
        magnum_service::updated_at.eq(now),
    ))
    .execute(conn)?;
    Ok(touched > 0)
}
