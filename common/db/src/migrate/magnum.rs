//! Magnum's own tables: creating them in an empty database, adopting those of an existing one.
//!
//! The steps between two revisions look at the columns that are there and do what is left to do, so that a
//! run cut short on MySQL (where DDL commits by itself) is completed by the next one. The new revision is
//! stamped last.

use std::fmt;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};

use crate::connection::{AnyConnection, Backend};
use crate::error::DbError;
use crate::schema::alembic_version;

/// A revision of Magnum's tables that we can start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    /// The head of releases 18 to 22 (2024.1 to 2026.1): `cluster_template.driver` is there, the trust columns
    /// of `cluster` still are, `node_labels` and `node_taints` are not yet.
    C0f832afc4fd,
    /// The head of release 23.
    B3e1cf4a2d5e,
}

/// What this release works on.
pub const HEAD: Revision = Revision::B3e1cf4a2d5e;

/// The tables, for telling an empty database from one that is in use.
const TABLES: &[&str] = &[
    "cluster",
    "cluster_template",
    "nodegroup",
    "x509keypair",
    "magnum_service",
    "quotas",
    "federation",
];
/// What the oldest releases called them; a database with these is in use as well.
const OLD_TABLES: &[&str] = &["bay", "baymodel", "baylock", "pod", "service", "container"];

/// Dropped by revision `d7e6a4d39fe4`, between the two that we know.
const TRUST_COLUMNS: &[&str] = &[
    "trust_id",
    "trustee_username",
    "trustee_user_id",
    "trustee_password",
];
/// Added by revision `b3e1cf4a2d5e`.
const NODE_COLUMNS: &[&str] = &["node_labels", "node_taints"];

impl Revision {
    /// Reads a revision's name; `head` is the head. `None`: we do not know it.
    pub fn named(text: &str) -> Option<Self> {
        match text {
            "c0f832afc4fd" => Some(Self::C0f832afc4fd),
            "b3e1cf4a2d5e" | "head" => Some(Self::B3e1cf4a2d5e),
            _ => None,
        }
    }

    /// The revision that a database is stamped with. An unknown one is refused by name.
    pub(super) fn of_stamp(text: &str) -> Result<Self, DbError> {
        Self::named(text).ok_or_else(|| {
            DbError::Schema(format!(
                "Magnum's tables are at revision '{text}', which this release does not know; it takes an empty \
                 database, c0f832afc4fd or b3e1cf4a2d5e. Nothing was changed. An older database: run the \
                 magnum-db-manage of Magnum 18 to 23 first. A newer one: use a newer release of this program."
            ))
        })
    }

    /// The name in `alembic_version`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::C0f832afc4fd => "c0f832afc4fd",
            Self::B3e1cf4a2d5e => "b3e1cf4a2d5e",
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of Magnum's tables in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SchemaState {
    /// None of Magnum's tables.
    Nothing,
    /// `alembic_version` is there and empty, and so are the tables: a creation that was cut short.
    Unfinished,
    /// Tables whose revision nobody wrote down.
    Unstamped {
        /// One of them.
        table: &'static str,
    },
    /// A revision, perhaps an unknown one.
    Stamped(String),
}

impl SchemaState {
    pub(super) fn into_stamp(self) -> Option<String> {
        match self {
            Self::Stamped(revision) => Some(revision),
            _ => None,
        }
    }
}

/// Looks, without changing anything.
///
/// # Errors
/// The database is another service's, or failed.
pub(super) fn found(conn: &mut AnyConnection) -> Result<SchemaState, DbError> {
    let mut present = Vec::new();
    for table in TABLES.iter().chain(OLD_TABLES) {
        if table_exists(conn, table)? {
            present.push(*table);
        }
    }
    let versioned = table_exists(conn, "alembic_version")?;
    let mut stamps: Vec<String> = if versioned {
        alembic_version::table
            .select(alembic_version::version_num)
            .order(alembic_version::version_num)
            .load(conn)?
    } else {
        Vec::new()
    };
    Ok(match (stamps.len(), present.first()) {
        // alembic's table has the same name in every service.
        (1.., None) if Revision::named(&stamps[0]).is_none() => {
            return Err(DbError::Schema(format!(
                "the database is another service's: alembic_version says '{}', and there is none of Magnum's tables. \
                 Nothing was changed. Look at [database] connection.",
                stamps.join(" and ")
            )));
        }
        (1, _) => SchemaState::Stamped(stamps.remove(0)),
        (0, None) if !versioned => SchemaState::Nothing,
        (0, None) => SchemaState::Unfinished,
        (0, Some(table)) => {
            if versioned && all_empty(conn, &present)? {
                SchemaState::Unfinished
            } else {
                SchemaState::Unstamped { table }
            }
        }
        _ => SchemaState::Stamped(stamps.join(" and ")),
    })
}

/// Brings Magnum's tables to the head.
pub(super) fn upgrade(conn: &mut AnyConnection) -> Result<Vec<String>, DbError> {
    match found(conn)? {
        SchemaState::Nothing | SchemaState::Unfinished => {
            create(conn)?;
            Ok(vec![format!("created Magnum's tables at revision {HEAD}")])
        }
        SchemaState::Unstamped { table } => Err(DbError::Schema(format!(
            "the database has a table '{table}' but no revision in alembic_version. Nothing was changed. If these \
             are Magnum's tables, find out their revision and run `magnum-db-manage stamp <revision>` first; if \
             not, give Magnum a database of its own."
        ))),
        SchemaState::Stamped(name) => match Revision::of_stamp(&name)? {
            Revision::B3e1cf4a2d5e => Ok(Vec::new()),
            Revision::C0f832afc4fd => {
                refuse_to_lose_trusts(conn)?;
                drop_columns(conn, "cluster", TRUST_COLUMNS)?;
                add_text_columns(conn, "nodegroup", NODE_COLUMNS)?;
                stamp(conn, HEAD)?;
                Ok(vec![format!(
                    "upgraded Magnum's tables from revision c0f832afc4fd to {HEAD}"
                )])
            }
        },
    }
}

/// Writes the revision, whatever was there.
pub(super) fn stamp(conn: &mut AnyConnection, revision: Revision) -> Result<(), DbError> {
    if !table_exists(conn, "alembic_version")? {
        conn.batch_execute(
            "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, \
             CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))",
        )?;
    }
    // One transaction also on MySQL: a reader must never see an empty table.
    conn.transaction::<_, diesel::result::Error, _>(|conn| {
        diesel::delete(alembic_version::table).execute(conn)?;
        diesel::insert_into(alembic_version::table)
            .values(alembic_version::version_num.eq(revision.as_str()))
            .execute(conn)
    })?;
    Ok(())
}

fn create(conn: &mut AnyConnection) -> Result<(), DbError> {
    let script = match conn.backend() {
        Backend::Sqlite => include_str!("../../../../migrations/magnum/sqlite.sql"),
        Backend::Mysql => include_str!("../../../../migrations/magnum/mysql.sql"),
        Backend::Postgres => include_str!("../../../../migrations/magnum/postgres.sql"),
    };
    conn.batch_execute(script)?;
    stamp(conn, HEAD)
}

/// Whether clusters have columns for trusts: at `c0f832afc4fd`, unless a run that was cut short has dropped one of them. It
/// had kept what was in them. Other revisions than the two known ones are refused.
pub(super) fn has_trusts(conn: &mut AnyConnection) -> Result<bool, DbError> {
    let Some(stamp) = found(conn)?.into_stamp() else {
        return Ok(false);
    };
    let is_former = Revision::of_stamp(&stamp)? == Revision::C0f832afc4fd;
    Ok(is_former && present_columns(conn, "cluster", TRUST_COLUMNS)?.len() == TRUST_COLUMNS.len())
}

/// A cluster's user and trust can neither be used nor removed by anybody who does not know them.
fn refuse_to_lose_trusts(conn: &mut AnyConnection) -> Result<(), DbError> {
    if !has_trusts(conn)? {
        return Ok(());
    }
    let lost = "SELECT COUNT(*) AS n FROM cluster WHERE (trust_id IS NOT NULL OR trustee_user_id IS NOT NULL) \
                AND NOT EXISTS (SELECT 1 FROM conductor_cluster_trust WHERE cluster_uuid = cluster.uuid)";
    let lost = diesel::sql_query(lost).get_result::<Count>(conn)?.n;
    if lost > 0 {
        return Err(DbError::Schema(format!(
            "{lost} clusters have a user or a trust in Keystone, in columns that the next revision of Magnum's tables \
             does not have. Run `magnum-db-manage upgrade`, which keeps them."
        )));
    }
    Ok(())
}

fn drop_columns(conn: &mut AnyConnection, table: &str, columns: &[&str]) -> Result<(), DbError> {
    for column in present_columns(conn, table, columns)? {
        conn.batch_execute(&format!("ALTER TABLE {table} DROP COLUMN {column}"))?;
    }
    Ok(())
}

fn add_text_columns(conn: &mut AnyConnection, table: &str, columns: &[&str]) -> Result<(), DbError> {
    let present = present_columns(conn, table, columns)?;
    for column in columns
        .iter()
        .filter(|column| !present.iter().any(|p| p == *column))
    {
        conn.batch_execute(&format!("ALTER TABLE {table} ADD COLUMN {column} TEXT"))?;
    }
    Ok(())
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

fn present_columns(conn: &mut AnyConnection, table: &str, wanted: &[&str]) -> Result<Vec<String>, DbError> {
    let query = match conn.backend() {
        Backend::Sqlite => format!("SELECT name FROM pragma_table_info('{table}')"),
        Backend::Mysql => format!(
            "SELECT column_name AS name FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND table_name = '{table}'"
        ),
        Backend::Postgres => format!(
            "SELECT CAST(column_name AS TEXT) AS name FROM information_schema.columns \
             WHERE table_schema = current_schema() AND table_name = '{table}'"
        ),
    };
    let names: Vec<Name> = diesel::sql_query(query).load(conn)?;
    Ok(names
        .into_iter()
        .map(|row| row.name)
        .filter(|name| wanted.contains(&name.as_str()))
        .collect())
}

/// Whether a table is there. `name` is one of our constants, never a caller's text.
pub(super) fn table_exists(conn: &mut AnyConnection, name: &'static str) -> Result<bool, DbError> {
    let query = match conn.backend() {
        Backend::Sqlite => {
            format!("SELECT COUNT(*) AS n FROM sqlite_master WHERE type = 'table' AND name = '{name}'")
        }
        Backend::Mysql => format!(
            "SELECT COUNT(*) AS n FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_name = '{name}'"
        ),
        Backend::Postgres => format!(
            "SELECT COUNT(*) AS n FROM information_schema.tables \
             WHERE table_schema = current_schema() AND table_name = '{name}'"
        ),
    };
    Ok(diesel::sql_query(query).get_result::<Count>(conn)?.n > 0)
}

fn all_empty(conn: &mut AnyConnection, tables: &[&str]) -> Result<bool, DbError> {
    for table in tables {
        // A table of another program may be large: one row is proof enough.
        let some = format!("SELECT COUNT(*) AS n FROM (SELECT 1 AS one FROM {table} LIMIT 1) AS some");
        if diesel::sql_query(some).get_result::<Count>(conn)?.n > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_revision_is_refused_by_name_with_a_way_out() {
        let error = Revision::of_stamp("d7e6a4d39fe4").unwrap_err().to_string();
        assert!(
            error.contains("'d7e6a4d39fe4'") && error.contains("Nothing was changed"),
            "{error}"
        );
        assert_eq!(Revision::named("head"), Some(HEAD));
    }
}
