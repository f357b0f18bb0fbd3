//! What this conductor has loaded, in `conductor_driver`: the API resolves against it, operators read it. Each row says, too, which
//! format of the journal the conductor knows.
//!
//! The rows of one conductor are replaced together. Rows that were not renewed for long belong to a conductor
//! that has gone, and are removed by whoever announces next.

use std::time::Duration;

use diesel::prelude::*;
use magnum_common::ids::ConductorId;
use magnum_db::read::announced_drivers;
use magnum_db::{self as db, AnyConnection, DbError, schema};
use magnum_drivers::{Announcement, DriverInfo, LoadError};

use crate::workflows::format;

use schema::conductor_driver::dsl as d;

/// Length of the columns.
const NAME: usize = 255;
const VERSION: usize = 64;

/// One row to announce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    announcement: Announcement,
    error: Option<String>,
}

impl Row {
    /// A driver that works.
    pub fn loaded(announcement: Announcement) -> Self {
        Self {
            announcement,
            error: None,
        }
    }

    /// A folder that could not be loaded. Without a name of its own it is announced by the folder's path.
    pub fn failed(error: &LoadError) -> Self {
        let folder = error.dir.display().to_string();
        Self {
            announcement: Announcement {
                name: clip(error.name.clone().unwrap_or_else(|| folder.clone()), NAME),
                version: clip(error.version.clone().unwrap_or_default(), VERSION),
                beta: false,
                cluster_types: "[]".to_owned(),
                capabilities: "{}".to_owned(),
                master_size_rule: "odd".to_owned(),
                api_routes: None,
            },
            error: Some(format!("{folder}: {}", error.reason())),
        }
    }

    /// The same under the folder's path: for a folder whose driver is there already.
    pub fn failed_folder(error: &LoadError) -> Self {
        Self::failed(&LoadError {
            name: None,
            version: None,
            ..error.clone()
        })
    }

    /// What makes a row unique for one conductor.
    pub fn key(&self) -> (&str, &str) {
        (&self.announcement.name, &self.announcement.version)
    }
}

fn clip(mut text: String, longest: usize) -> String {
    if let Some((cut, _)) = text.char_indices().nth(longest) {
        text.truncate(cut);
    }
    text
}

/// Replaces this conductor's rows, and removes those that nobody renewed for `stale`.
///
/// # Errors
/// The database failed.
pub fn announce(
    conn: &mut AnyConnection,
    me: &ConductorId,
    host: &str,
    rows: &[Row],
    stale: Duration,
) -> Result<(), DbError> {
    let stale = i64::try_from(stale.as_millis()).unwrap_or(i64::MAX);
    let forgotten = db::now_plus_ms_expr(stale.saturating_neg());
    diesel::delete(
        d::conductor_driver.filter(d::conductor.eq(me.as_str()).or(d::announced_ms.lt(forgotten))),
    )
    .execute(conn)?;
    let now = db::now_ms(conn)?;
    for row in rows {
        let about = &row.announcement;
        diesel::insert_into(d::conductor_driver)
            .values((
                d::conductor.eq(me.as_str()),
                d::host.eq(host),
                d::name.eq(&about.name),
                d::version.eq(&about.version),
                d::beta.eq(about.beta),
                d::cluster_types.eq(&about.cluster_types),
                d::capabilities.eq(&about.capabilities),
                d::master_size_rule.eq(&about.master_size_rule),
                d::error.eq(row.error.as_deref()),
                d::announced_ms.eq(now),
                d::api_routes.eq(about.api_routes.as_deref()),
                d::journal_format.eq(format::KNOWN),
            ))
            .execute(conn)?;
    }
    Ok(())
}

/// Removes this conductor's rows: it ends.
///
/// # Errors
/// The database failed.
pub fn withdraw(conn: &mut AnyConnection, me: &ConductorId) -> Result<(), DbError> {
    diesel::delete(d::conductor_driver.filter(d::conductor.eq(me.as_str()))).execute(conn)?;
    Ok(())
}

/// The drivers that conductors have announced within `alive`. What a newer release announces in words that this one does not
/// know is left to those that do.
///
/// # Errors
/// The database failed.
pub fn loaded(conn: &mut AnyConnection, alive: Duration) -> Result<Vec<DriverInfo>, DbError> {
    let announced = announced_drivers::list(conn, alive)?.into_iter();
    let loaded = announced.filter(|driver| driver.error.is_none());
    Ok(loaded
        .filter_map(|driver| DriverInfo::try_from(&driver.announcement).ok())
        .collect())
}
