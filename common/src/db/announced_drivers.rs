//! `conductor_driver`: which conductor has loaded which driver, and what it could not load.
//!
//! Every conductor replaces its own rows as a whole with each heartbeat, so that what it no longer has is gone
//! with the next one. A conductor that died leaves its rows behind; readers ask for those that are fresh by the
//! database's clock, and [`forget`] removes the rest.

use std::collections::HashSet;
use std::time::Duration;

use diesel::prelude::*;

use super::clock::{now_ms, now_plus_ms_expr};
use super::connection::AnyConnection;
use super::error::DbError;
use super::schema::conductor_driver;
use crate::drivers::{Announcement, DriverInfo, LoadError};
use crate::ids::ConductorId;

/// Longest texts of the columns.
const LONGEST_NAME: usize = 255;
const LONGEST_VERSION: usize = 64;

/// A driver, or a folder that could not be loaded, as one conductor announced it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnouncedDriver {
    /// The conductor.
    pub conductor: String,
    /// Its host.
    pub host: String,
    /// The driver. Of one that could not be loaded only name and version mean something, as far as known.
    pub announcement: Announcement,
    /// Why it could not be loaded.
    pub error: Option<String>,
    /// When it was last announced, in milliseconds since 1970 by the database's clock.
    pub announced_ms: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = conductor_driver)]
struct Row {
    conductor: String,
    host: String,
    name: String,
    version: String,
    beta: bool,
    cluster_types: String,
    capabilities: String,
    master_size_rule: String,
    error: Option<String>,
    announced_ms: i64,
}

impl From<Row> for AnnouncedDriver {
    fn from(row: Row) -> Self {
        Self {
            conductor: row.conductor,
            host: row.host,
            announcement: Announcement {
                name: row.name,
                version: row.version,
                beta: row.beta,
                cluster_types: row.cluster_types,
                capabilities: row.capabilities,
                master_size_rule: row.master_size_rule,
            },
            error: row.error,
            announced_ms: row.announced_ms,
        }
    }
}

/// Everything that was announced within `fresh`, by name, version and conductor; failures included.
///
/// # Errors
/// When the database fails.
pub fn list(conn: &mut AnyConnection, fresh: Duration) -> Result<Vec<AnnouncedDriver>, DbError> {
    let rows: Vec<Row> = conductor_driver::table
        .filter(conductor_driver::announced_ms.ge(before(fresh)))
        .order((
            conductor_driver::name,
            conductor_driver::version,
            conductor_driver::conductor,
        ))
        .select(Row::as_select())
        .load(conn)?;
    Ok(rows.into_iter().map(AnnouncedDriver::from).collect())
}

/// The drivers that some conductor has loaded and announced within `fresh`; what one cannot be read is left out
/// with a warning.
///
/// # Errors
/// When the database fails.
pub fn loaded(conn: &mut AnyConnection, fresh: Duration) -> Result<Vec<DriverInfo>, DbError> {
    let announced = list(conn, fresh)?;
    let loaded = announced.iter().filter(|announced| announced.error.is_none());
    Ok(loaded
        .filter_map(|announced| match DriverInfo::try_from(&announced.announcement) {
            Ok(info) => Some(info),
            Err(error) => {
                tracing::warn!(conductor = announced.conductor, "a driver is left out: {error}");
                None
            }
        })
        .collect())
}

/// Says what `conductor` has now, in place of what it said before. Call it in a transaction, so that readers see
/// the old or the new.
///
/// # Errors
/// When the database fails.
pub fn announce(
    conn: &mut AnyConnection,
    conductor: &ConductorId,
    host: &str,
    drivers: &[DriverInfo],
    failed: &[LoadError],
) -> Result<(), DbError> {
    let now = now_ms(conn)?;
    diesel::delete(conductor_driver::table.filter(conductor_driver::conductor.eq(conductor.as_str())))
        .execute(conn)?;
    let loaded = drivers.iter().map(|info| (Announcement::from(info), None));
    let failed = failed.iter().map(failure);
    let mut taken = HashSet::new();
    for (announcement, error) in loaded.chain(failed) {
        let name = cut(&announcement.name, LONGEST_NAME);
        let version = cut(&announcement.version, LONGEST_VERSION);
        // The one that is told first stays: a folder may fail because its driver is there already.
        if !taken.insert((name.clone(), version.clone())) {
            continue;
        }
        diesel::insert_into(conductor_driver::table)
            .values((
                conductor_driver::conductor.eq(conductor.as_str()),
                conductor_driver::host.eq(host),
                conductor_driver::name.eq(name),
                conductor_driver::version.eq(version),
                conductor_driver::beta.eq(announcement.beta),
                conductor_driver::cluster_types.eq(&announcement.cluster_types),
                conductor_driver::capabilities.eq(&announcement.capabilities),
                conductor_driver::master_size_rule.eq(&announcement.master_size_rule),
                conductor_driver::error.eq(error),
                conductor_driver::announced_ms.eq(now),
            ))
            .execute(conn)?;
    }
    Ok(())
}

/// Removes what `conductor` announced: it ends.
///
/// # Errors
/// When the database fails.
pub fn withdraw(conn: &mut AnyConnection, conductor: &ConductorId) -> Result<usize, DbError> {
    Ok(
        diesel::delete(conductor_driver::table.filter(conductor_driver::conductor.eq(conductor.as_str())))
            .execute(conn)?,
    )
}

/// Removes what was announced before `keep` ago: its conductor is gone.
///
/// # Errors
/// When the database fails.
pub fn forget(conn: &mut AnyConnection, keep: Duration) -> Result<usize, DbError> {
    Ok(
        diesel::delete(conductor_driver::table.filter(conductor_driver::announced_ms.lt(before(keep))))
            .execute(conn)?,
    )
}

/// The database's time, that long ago.
fn before(age: Duration) -> super::clock::NowMs {
    now_plus_ms_expr(-i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}

/// The row of a folder that failed: under its driver's name when that could be read and the version too, else
/// under the folder's path, so that two broken folders never share a row.
fn failure(error: &LoadError) -> (Announcement, Option<String>) {
    let duplicate = error.problems.iter().all(|problem| problem.line.is_none());
    let (name, version) = match (&error.name, &error.version) {
        (Some(name), Some(version)) if !duplicate => (name.clone(), version.clone()),
        _ => (error.dir.display().to_string(), String::new()),
    };
    let announcement = Announcement {
        name,
        version,
        beta: false,
        cluster_types: "[]".to_owned(),
        capabilities: "{}".to_owned(),
        master_size_rule: String::new(),
    };
    (announcement, Some(error.to_string()))
}

/// The end of a text, as the end of a path tells more than its beginning.
fn cut(text: &str, longest: usize) -> String {
    let excess = text.chars().count().saturating_sub(longest);
    text.chars().skip(excess).collect()
}
