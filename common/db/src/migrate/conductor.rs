//! Our own tables: diesel migrations, one folder per database, embedded in the program.

use diesel::migration::MigrationSource;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};

use crate::connection::AnyConnection;
use crate::error::DbError;

#[cfg(feature = "sqlite")]
const SQLITE: EmbeddedMigrations = embed_migrations!("../../migrations/sqlite");
#[cfg(feature = "mysql")]
const MYSQL: EmbeddedMigrations = embed_migrations!("../../migrations/mysql");
#[cfg(feature = "postgres")]
const POSTGRES: EmbeddedMigrations = embed_migrations!("../../migrations/postgres");

/// diesel's errors here are boxed; the database's own are looked for inside, so that "unavailable" stays that.
fn failed(error: Box<dyn std::error::Error + Send + Sync>) -> DbError {
    match error.downcast::<diesel::result::Error>() {
        Ok(error) => DbError::from(*error),
        Err(error) => DbError::Schema(format!("a migration of ours failed: {error}")),
    }
}

/// Applies what is missing and names it.
pub(super) fn upgrade(conn: &mut AnyConnection) -> Result<Vec<String>, DbError> {
    let (_, pending) = state(conn)?;
    let applied = match conn {
        #[cfg(feature = "sqlite")]
        AnyConnection::Sqlite(conn) => conn.run_pending_migrations(SQLITE).map(drop),
        #[cfg(feature = "mysql")]
        AnyConnection::Mysql(conn) => conn.run_pending_migrations(MYSQL).map(drop),
        #[cfg(feature = "postgres")]
        AnyConnection::Postgres(conn) => conn.run_pending_migrations(POSTGRES).map(drop),
    };
    applied.map_err(failed)?;
    Ok(pending)
}

/// Takes back all of our migrations; Magnum's tables stay. The journal is lost. For tests and for operators who
/// leave us for good; no program does it by itself.
///
/// # Errors
/// The database failed.
pub fn revert_all(conn: &mut AnyConnection) -> Result<(), DbError> {
    let reverted = match conn {
        #[cfg(feature = "sqlite")]
        AnyConnection::Sqlite(conn) => conn.revert_all_migrations(SQLITE).map(drop),
        #[cfg(feature = "mysql")]
        AnyConnection::Mysql(conn) => conn.revert_all_migrations(MYSQL).map(drop),
        #[cfg(feature = "postgres")]
        AnyConnection::Postgres(conn) => conn.revert_all_migrations(POSTGRES).map(drop),
    };
    reverted.map_err(failed)
}

/// (applied, pending) migrations of ours. Reads only: the bookkeeping table need not exist.
pub(super) fn state(conn: &mut AnyConnection) -> Result<(Vec<String>, Vec<String>), DbError> {
    let applied = applied(conn)?;
    let known: Vec<String> = match conn {
        #[cfg(feature = "sqlite")]
        AnyConnection::Sqlite(_) => names::<diesel::sqlite::Sqlite>(&SQLITE),
        #[cfg(feature = "mysql")]
        AnyConnection::Mysql(_) => names::<diesel::mysql::Mysql>(&MYSQL),
        #[cfg(feature = "postgres")]
        AnyConnection::Postgres(_) => names::<diesel::pg::Pg>(&POSTGRES),
    }
    .map_err(failed)?;
    // Versions in the table have no dashes and no name: 20261121000000.
    let version = |name: &str| name.split('_').next().unwrap_or_default().replace('-', "");
    let pending = known
        .iter()
        .filter(|name| !applied.contains(&version(name)))
        .cloned()
        .collect();
    let applied = applied
        .into_iter()
        .map(|number| {
            known
                .iter()
                .find(|name| version(name) == number)
                .cloned()
                .unwrap_or(number)
        })
        .collect();
    Ok((applied, pending))
}

fn applied(conn: &mut AnyConnection) -> Result<Vec<String>, DbError> {
    use diesel::prelude::*;

    diesel::table! {
        __diesel_schema_migrations (version) {
            version -> Text,
        }
    }
    if !super::magnum::table_exists(conn, "__diesel_schema_migrations")? {
        return Ok(Vec::new());
    }
    Ok(__diesel_schema_migrations::table
        .select(__diesel_schema_migrations::version)
        .order(__diesel_schema_migrations::version)
        .load(conn)?)
}

type Boxed = Box<dyn std::error::Error + Send + Sync>;

fn names<DB: diesel::backend::Backend>(source: &EmbeddedMigrations) -> Result<Vec<String>, Boxed> {
    let mut names: Vec<String> = MigrationSource::<DB>::migrations(source)?
        .iter()
        .map(|migration| migration.name().to_string())
        .collect();
    names.sort();
    Ok(names)
}
