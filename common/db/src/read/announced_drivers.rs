//! What the conductors say they have loaded, and what they could not load: the rows of `conductor_driver`.
//!
//! Every conductor replaces its own rows with each heartbeat. One that died leaves its rows behind, so readers say
//! how fresh, by the database's clock, an announcement has to be.

use std::time::Duration;

use diesel::prelude::*;

use crate::schema::conductor_driver;
use crate::{AnyConnection, DbError, NowMs, now_plus_ms_expr};
use magnum_drivers::Announcement;

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
    api_routes: Option<String>,
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
                api_routes: row.api_routes,
            },
            error: row.error,
            announced_ms: row.announced_ms,
        }
    }
}

/// Everything that was announced within `fresh`, by name, version and conductor; failures included, and a driver
/// that several conductors have once for each of them.
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

/// Whether a conductor of ours has announced anything within `fresh`: then it, and not one of Magnum's alone, takes
/// requests.
///
/// # Errors
/// When the database fails.
pub fn any(conn: &mut AnyConnection, fresh: Duration) -> Result<bool, DbError> {
    let announced = conductor_driver::table.filter(conductor_driver::announced_ms.ge(before(fresh)));
    Ok(diesel::select(diesel::dsl::exists(announced)).get_result(conn)?)
}

/// The database's time, that long ago.
fn before(age: Duration) -> NowMs {
    now_plus_ms_expr(-i64::try_from(age.as_millis()).unwrap_or(i64::MAX))
}
