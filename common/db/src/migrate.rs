//! Bringing a database to what this release needs, and refusing what we do not know.
//!
//! Two kinds of tables, two kinds of bookkeeping:
//!
//! | tables | whose | revision kept in | steps |
//! |---|---|---|---|
//! | `cluster`, `nodegroup`, … | Magnum's | `alembic_version`, as Python reads it | [`magnum`] |
//! | `conductor_*` | ours | `__diesel_schema_migrations` | [`conductor`] |
//!
//! `alembic_version` is the only truth about Magnum's tables: a Python `magnum-db-manage` may have changed them
//! since we last looked. So their steps are not diesel migrations, which would keep a second, diverging record.
//!
//! | found | `upgrade` does |
//! |---|---|
//! | an empty database | creates Magnum's tables at the head, stamps them, creates ours |
//! | Magnum at the head | creates or upgrades ours |
//! | Magnum at `c0f832afc4fd` (2024.1 to 2026.1) | creates or upgrades ours, keeps what the next step drops ([`Keep`]), takes the two steps to the head |
//! | any other revision, or tables without one | refuses by name and changes nothing |
//! | a revision and none of Magnum's tables: another service's database | refuses and changes nothing |
//!
//! Guarantees: one `upgrade` at a time per database (others wait); on SQLite and PostgreSQL all of it is one
//! transaction; on MySQL, where every DDL statement commits by itself, an interrupted run is completed by the
//! next. Not guaranteed: that Python services older than the head work after the two steps; that is Magnum's
//! own rule for the same upgrade.

pub mod conductor;
pub mod magnum;

use std::path::{Path, PathBuf};

use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::connection::{AnyConnection, Backend};
use super::error::DbError;
use super::pool::{self, Database, PoolOptions};
use super::rows::{
    ClusterRow, ClusterTemplateRow, FederationRow, MagnumServiceRow, NodeGroupRow, QuotaRow, X509KeyPairRow,
};
use super::schema;
use super::url::DatabaseUrl;
use magnum_config::DatabaseSection;

pub use magnum::{HEAD, Revision};

/// What `upgrade` did, in order, for the person who ran it. Empty: nothing was to do.
pub type Report = Vec<String>;

/// Keeps the users and trusts of clusters, whose columns the next revision of Magnum's tables has not any more, in
/// `conductor_cluster_trust`: passwords are sealed there, and keys are not this crate's.
pub type Keep = fn(&mut AnyConnection, &Path) -> Result<Report, DbError>;

/// Where a database stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Magnum's revision, as `alembic_version` has it; `None`: no tables, or none stamped.
    pub magnum: Option<String>,
    /// Our migrations that are in, oldest first.
    pub conductor: Vec<String>,
    /// Our migrations that are missing.
    pub pending: Vec<String>,
}

/// Migrates the configured database to the schema of this release.
///
/// # Errors
/// The database is unreachable, its revision is unknown, or clusters have trusts that [`upgrade_keeping`] has to keep;
/// nothing was written then. A failed step leaves the steps before it, and can be repeated.
pub async fn upgrade(section: &DatabaseSection) -> Result<Report, DbError> {
    on_own_connection(section, |conn| {
        exclusively(conn, |conn| upgrade_locked(conn, |_| Ok(Report::new())))
    })
    .await
}

/// The same, and keeps trusts of clusters, sealed with the key file `key`.
///
/// # Errors
/// As [`upgrade`], and those of `keep`.
pub async fn upgrade_keeping(section: &DatabaseSection, keep: Keep, key: PathBuf) -> Result<Report, DbError> {
    on_own_connection(section, move |conn| {
        exclusively(conn, |conn| upgrade_locked(conn, |conn| keep(conn, &key)))
    })
    .await
}

/// Only keeps trusts of clusters, and makes the tables of ours for it: before somebody else upgrades Magnum's.
///
/// # Errors
/// As [`upgrade_keeping`]. Nothing is kept of a database at another revision than `c0f832afc4fd`.
pub async fn keep_trusts(section: &DatabaseSection, keep: Keep, key: PathBuf) -> Result<Report, DbError> {
    on_own_connection(section, move |conn| {
        exclusively(conn, |conn| {
            if magnum::has_trusts(conn)? {
                kept(conn, |conn| keep(conn, &key))
            } else {
                Ok(Report::new())
            }
        })
    })
    .await
}

/// The revision of the configured database. Changes nothing.
///
/// # Errors
/// The database is unreachable.
pub async fn version(section: &DatabaseSection) -> Result<Version, DbError> {
    let mut url = DatabaseUrl::parse(section.connection.expose())?;
    if let DatabaseUrl::Sqlite { path, .. } = &mut url
        && path.as_deref().is_some_and(is_to_be_made)
    {
        // SQLite would create the file, owned by the user that runs this command.
        *path = None;
    }
    on_connection_to(url, section, read_version).await
}

/// Whether there is no such file yet, in a folder that exists.
fn is_to_be_made(path: &str) -> bool {
    let path = Path::new(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    !path.exists() && folder.is_none_or(Path::exists)
}

/// Writes a revision of Magnum's tables without changing them: for a database whose tables are known to exist but
/// whose `alembic_version` was lost.
///
/// # Errors
/// The revision is unknown, or the database is another service's or unreachable.
pub async fn stamp(section: &DatabaseSection, revision: &str) -> Result<Revision, DbError> {
    let revision = Revision::named(revision).ok_or_else(|| {
        DbError::Schema(format!(
            "cannot stamp '{revision}': this release knows c0f832afc4fd and b3e1cf4a2d5e (head); nothing was changed"
        ))
    })?;
    on_own_connection(section, move |conn| {
        exclusively(conn, |conn| {
            magnum::found(conn)?;
            magnum::stamp(conn, revision)
        })?;
        Ok(revision)
    })
    .await
}

/// Checks at the start of a program that it can work on the database.
///
/// # Errors
/// The schema is missing, older or unknown; the error says what to run.
pub async fn check(database: &Database) -> Result<(), DbError> {
    database
        .run(|conn| {
            let version = read_version(conn)?;
            match version.magnum.as_deref().map(Revision::of_stamp) {
                None => Err(DbError::Schema(
                    "the database has no Magnum tables; run `magnum-db-manage upgrade`".to_owned(),
                )),
                Some(Err(unknown)) => Err(unknown),
                Some(Ok(HEAD)) if version.pending.is_empty() => verify(conn),
                Some(Ok(revision)) => Err(DbError::Schema(format!(
                    "the database is at revision {revision}{}; run `magnum-db-manage upgrade`",
                    if version.pending.is_empty() {
                        ""
                    } else {
                        " and lacks tables of this release"
                    },
                ))),
            }
        })
        .await
}

/// [`upgrade`] on a connection that the caller has: for tests and embedded use.
///
/// # Errors
/// The database failed.
pub fn upgrade_on(conn: &mut AnyConnection) -> Result<Report, DbError> {
    exclusively(conn, |conn| upgrade_locked(conn, |_| Ok(Report::new())))
}

/// [`version`] on a connection that the caller has.
///
/// # Errors
/// The database failed.
pub fn read_version(conn: &mut AnyConnection) -> Result<Version, DbError> {
    let magnum = magnum::found(conn)?.into_stamp();
    let (conductor, pending) = conductor::state(conn)?;
    Ok(Version {
        magnum,
        conductor,
        pending,
    })
}

fn upgrade_locked(
    conn: &mut AnyConnection,
    keep: impl FnOnce(&mut AnyConnection) -> Result<Report, DbError>,
) -> Result<Report, DbError> {
    let mut report = Report::new();
    // A refusal must come before anything is written.
    if magnum::has_trusts(conn)? {
        report.extend(kept(conn, keep)?);
    }
    report.extend(magnum::upgrade(conn)?);
    report.extend(ours(conn)?);
    verify(conn)?;
    Ok(report)
}

fn kept(
    conn: &mut AnyConnection,
    keep: impl FnOnce(&mut AnyConnection) -> Result<Report, DbError>,
) -> Result<Report, DbError> {
    let mut report = ours(conn)?;
    report.extend(keep(conn)?);
    Ok(report)
}

fn ours(conn: &mut AnyConnection) -> Result<Report, DbError> {
    let applied = conductor::upgrade(conn)?.into_iter();
    Ok(applied.map(|name| format!("applied {name}")).collect())
}

/// Reads no row of every table of Magnum's, with every column that we use. A stamp can lie; this cannot.
fn verify(conn: &mut AnyConnection) -> Result<(), DbError> {
    macro_rules! readable {
        ($($row:ident of $table:ident),*) => {
            $(
                schema::$table::table
                    .select($row::as_select())
                    .limit(0)
                    .load::<$row>(conn)
                    .map_err(|error| unreadable(stringify!($table), error))?;
            )*
        };
    }
    readable!(
        ClusterRow of cluster,
        ClusterTemplateRow of cluster_template,
        NodeGroupRow of nodegroup,
        X509KeyPairRow of x509keypair,
        MagnumServiceRow of magnum_service,
        QuotaRow of quotas,
        FederationRow of federation
    );
    Ok(())
}

/// What was refused is how the table differs. An outage in the middle says nothing of it.
fn unreadable(table: &str, error: diesel::result::Error) -> DbError {
    let said = error.to_string();
    match DbError::from(error) {
        DbError::Schema(_) | DbError::Query(_) => {
            DbError::Schema(format!("table {table} is not as revision {HEAD} has it: {said}"))
        }
        other => other,
    }
}

/// Runs `work` while no other `magnum-db-manage` of ours works on this database, in one transaction where the
/// database can do that with DDL.
fn exclusively<T>(
    conn: &mut AnyConnection,
    work: impl FnOnce(&mut AnyConnection) -> Result<T, DbError>,
) -> Result<T, DbError> {
    match conn.backend() {
        Backend::Sqlite => pool::once_in_transaction(conn, work),
        Backend::Postgres => pool::once_in_transaction(conn, |conn| {
            // The number is arbitrary; it ends with the transaction.
            conn.batch_execute("SELECT pg_advisory_xact_lock(7237463001)")?;
            work(conn)
        }),
        Backend::Mysql => {
            named_lock(conn)?;
            let result = work(conn);
            let released = conn.batch_execute("DO RELEASE_LOCK(CONCAT('magnum-db-manage:', DATABASE()))");
            let value = result?;
            released?;
            Ok(value)
        }
    }
}

fn named_lock(conn: &mut AnyConnection) -> Result<(), DbError> {
    let got: Option<i32> = diesel::select(diesel::dsl::sql::<
        diesel::sql_types::Nullable<diesel::sql_types::Integer>,
    >("GET_LOCK(CONCAT('magnum-db-manage:', DATABASE()), 600)"))
    .get_result(conn)?;
    if got == Some(1) {
        Ok(())
    } else {
        Err(DbError::TimedOut(
            "another magnum-db-manage works on this database".to_owned(),
        ))
    }
}

async fn on_own_connection<T, F>(section: &DatabaseSection, work: F) -> Result<T, DbError>
where
    T: Send + 'static,
    F: FnOnce(&mut AnyConnection) -> Result<T, DbError> + Send + 'static,
{
    let url = DatabaseUrl::parse(section.connection.expose())?;
    on_connection_to(url, section, work).await
}

async fn on_connection_to<T, F>(url: DatabaseUrl, section: &DatabaseSection, work: F) -> Result<T, DbError>
where
    T: Send + 'static,
    F: FnOnce(&mut AnyConnection) -> Result<T, DbError> + Send + 'static,
{
    let mut options = PoolOptions::from(section);
    // A migration of a large table takes what it takes.
    options.session.statement_timeout = None;
    pool::on_own_connection(url, options, work).await
}
