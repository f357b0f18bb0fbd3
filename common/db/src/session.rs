//! Opening a connection and making its session behave alike on all three databases.
//!
//! | | SQLite | MySQL, MariaDB | PostgreSQL |
//! |---|---|---|---|
//! | isolation | serial writers (WAL) | read committed | read committed |
//! | strictness | by column type | `sql_mode` `TRADITIONAL` | always |
//! | time zone | UTC | UTC | UTC |
//! | statement limit | none (the lock wait is limited) | `max_statement_time` | `statement_timeout` |
//! | lock wait | `busy_timeout` | `innodb_lock_wait_timeout` | `lock_timeout` |
//! | forgotten transaction | none (ends with its process) | `idle_transaction_timeout` (MariaDB) | `idle_in_transaction_session_timeout` |
//!
//! On a node of Galera's transactions are guarded, see `pool/whole.rs`.
//!
//! MySQL's own default isolation (repeatable read) is not used: its gap locks make inserts into the journal
//! deadlock against claims, and its snapshots hide another conductor's commit from a compare-and-set.

use std::time::Duration;

use diesel::connection::SimpleConnection;
use diesel::prelude::*;

use super::connection::AnyConnection;
use super::error::DbError;
#[cfg(any(feature = "mysql", feature = "postgres"))]
use super::socket;
use super::socket::Socket;
use super::url::DatabaseUrl;

/// How a session is set up.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionOptions {
    /// Longest run of one statement; `None` for migrations.
    pub statement_timeout: Option<Duration>,
    /// Longest wait for a row lock, or for SQLite's write lock.
    pub lock_timeout: Duration,
    /// MySQL's `sql_mode`; empty leaves the server's.
    pub mysql_sql_mode: String,
    /// Galera's causality check.
    pub mysql_wsrep_sync_wait: Option<u32>,
    /// SQLite: `synchronous=FULL` instead of `NORMAL`.
    pub sqlite_synchronous: bool,
}

/// Longest run of one statement of a program.
pub const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for a lock. Below [`STATEMENT_TIMEOUT`], so that the error says which of the two it was.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time in which a server must have let us in, and taken our settings: some ten exchanges, of which the slowest database
/// that can be worked with makes one in 1.5 s.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait for a row lock of work that can be left for later, see [`Patience::Brief`]. Our transactions and Magnum's
/// take milliseconds, so a row that is not free by then is held by somebody who is in no hurry. MariaDB counts in seconds.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const BRIEF_LOCK_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for an answer of the same work.
const BRIEF_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// How much later than a statement's limit the server's word of it may come.
const ANSWER_MARGIN: Duration = Duration::from_secs(5);
/// A transaction in which nothing was asked for so long is forgotten: its host is paused or cut off. The server ends it, and
/// its locks. Below the default lease, so that whoever takes over finds the rows free.
#[cfg(any(feature = "mysql", feature = "postgres"))]
const IDLE_TRANSACTION: Duration = Duration::from_secs(20);

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            statement_timeout: Some(STATEMENT_TIMEOUT),
            lock_timeout: LOCK_TIMEOUT,
            mysql_sql_mode: "TRADITIONAL".to_owned(),
            mysql_wsrep_sync_wait: None,
            sqlite_synchronous: true,
        }
    }
}

/// How long a piece of work waits: for rows that somebody else has locked, and for the server to answer a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// [`SessionOptions::lock_timeout`]; a little more than [`SessionOptions::statement_timeout`], so that it is the server
    /// that says a statement took too long.
    Full,
    /// A second; ten. SQLite, which has one lock for all writers and no server, goes on as before.
    Brief,
}

impl Patience {
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    fn for_locks(self, options: &SessionOptions) -> Duration {
        match self {
            Self::Full => options.lock_timeout,
            Self::Brief => options.lock_timeout.min(BRIEF_LOCK_TIMEOUT),
        }
    }

    /// `None`: a statement may take as long as it likes.
    pub(super) fn for_answers(self, options: &SessionOptions) -> Option<Duration> {
        let full = options.statement_timeout? + ANSWER_MARGIN;
        Some(match self {
            Self::Full => full,
            Self::Brief => full.min(BRIEF_ANSWER_TIMEOUT),
        })
    }
}

/// Changes how long the session waits for locked rows.
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres")),
    expect(unused_variables, reason = "SQLite locks no rows")
)]
pub(super) fn set_lock_wait(
    conn: &mut AnyConnection,
    patience: Patience,
    options: &SessionOptions,
) -> QueryResult<()> {
    match conn {
        #[cfg(feature = "sqlite")]
        AnyConnection::Sqlite(_) => Ok(()),
        #[cfg(feature = "mysql")]
        AnyConnection::Mysql(conn) => {
            let limit = patience.for_locks(options).as_secs().max(1);
            diesel::sql_query(format!("SET innodb_lock_wait_timeout = {limit}"))
                .execute(conn)
                .map(drop)
        }
        #[cfg(feature = "postgres")]
        AnyConnection::Postgres(conn) => {
            let limit = patience.for_locks(options).as_millis();
            conn.batch_execute(&format!("SET lock_timeout = {limit}"))
        }
    }
}

/// A connection, and what it goes over where that is known.
pub(super) struct Opened {
    pub(super) conn: AnyConnection,
    pub(super) socket: Option<Socket>,
    /// Whether the server is a node of Galera's.
    pub(super) is_galera: bool,
}

/// Opens one connection. Blocks, to a server for [`OPEN_TIMEOUT`] at most.
pub(super) fn open(url: &DatabaseUrl, options: &SessionOptions) -> Result<Opened, DbError> {
    match url {
        #[cfg(feature = "sqlite")]
        DatabaseUrl::Sqlite { path, busy_timeout } => Ok(Opened {
            conn: open_sqlite(
                path.as_deref(),
                busy_timeout.unwrap_or(options.lock_timeout),
                options,
            )?,
            socket: None,
            is_galera: false,
        }),
        #[cfg(feature = "mysql")]
        DatabaseUrl::Mysql(server) => {
            let mut is_galera = false;
            let (conn, socket) = socket::open::<_, DbError>(
                &url.ports(),
                OPEN_TIMEOUT,
                || Ok(MysqlConnection::establish(server.to_mysql().expose())?),
                |conn| {
                    set_up_mysql(conn, url.read_timeout(), options)?;
                    is_galera = replicates_with_galera(conn)?;
                    Ok(())
                },
            )?;
            Ok(Opened {
                conn: AnyConnection::Mysql(conn),
                socket,
                is_galera,
            })
        }
        #[cfg(feature = "postgres")]
        DatabaseUrl::Postgres(server) => {
            let (conn, socket) = socket::open::<_, DbError>(
                &url.ports(),
                OPEN_TIMEOUT,
                || Ok(PgConnection::establish(server.to_postgres().expose())?),
                |conn| set_up_postgres(conn, options),
            )?;
            Ok(Opened {
                conn: AnyConnection::Postgres(conn),
                socket,
                is_galera: false,
            })
        }
        #[cfg(not(all(feature = "sqlite", feature = "mysql", feature = "postgres")))]
        _ => Err(super::url::UrlError(
            "names a database that this program was built without; build it with the features \
             sqlite, mysql, postgres as needed"
                .to_owned(),
        )
        .into()),
    }
}

/// Makes a file that is not there, for nobody but its owner: it holds certificates' keys and sealed contexts. SQLite gives
/// the files beside it the same mode. One that is there keeps the mode that somebody has chosen.
#[cfg(feature = "sqlite")]
fn keep_private(location: &str) {
    use std::os::unix::fs::OpenOptionsExt as _;

    if location == IN_MEMORY {
        return;
    }
    let made = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(location);
    if let Err(error) = made {
        // It is there, or SQLite is going to say why it cannot be.
        tracing::trace!(%error, location, "no new database file");
    }
}

#[cfg(feature = "sqlite")]
const IN_MEMORY: &str = ":memory:";

#[cfg(feature = "sqlite")]
fn open_sqlite(
    path: Option<&str>,
    busy_timeout: Duration,
    options: &SessionOptions,
) -> Result<AnyConnection, DbError> {
    let location = match path {
        None => IN_MEMORY.to_owned(),
        // diesel and SQLite give meaning to these two beginnings; here they are names of files.
        Some(path) if path.starts_with("file:") || path.starts_with("sqlite:") => format!("./{path}"),
        Some(path) => path.to_owned(),
    };
    keep_private(&location);
    let mut conn = SqliteConnection::establish(&location).map_err(|error| {
        if matches!(error, ConnectionError::BadConnection(_)) {
            DbError::Refused(format!(
                "{error}: {location} (does its folder exist, and may this user write to it?)"
            ))
        } else {
            DbError::from(error)
        }
    })?;
    // The busy timeout first: switching to WAL needs a lock itself.
    conn.batch_execute(&format!(
        "PRAGMA busy_timeout = {}; PRAGMA journal_mode = WAL; PRAGMA synchronous = {}; \
         PRAGMA foreign_keys = ON;",
        busy_timeout.as_millis(),
        if options.sqlite_synchronous {
            "FULL"
        } else {
            "NORMAL"
        },
    ))?;
    Ok(AnyConnection::Sqlite(conn))
}

#[cfg(feature = "mysql")]
fn set_up_mysql(
    conn: &mut MysqlConnection,
    read_timeout: Option<Duration>,
    options: &SessionOptions,
) -> Result<(), DbError> {
    #[derive(QueryableByName)]
    struct Version {
        #[diesel(sql_type = diesel::sql_types::Text)]
        version: String,
    }
    let version = diesel::sql_query("SELECT VERSION() AS version")
        .get_result::<Version>(conn)?
        .version;
    let is_mariadb = version.to_lowercase().contains("mariadb");
    if is_too_old(&version, is_mariadb) {
        return Err(DbError::Refused(format!(
            "the server is {version}; MariaDB 10.6 or MySQL 8.0 is the oldest that can be used"
        )));
    }

    // As few statements as possible: each is a round trip before the first one that anybody asked for.
    let mut variables = vec![
        "time_zone = '+00:00'".to_owned(),
        // Errors that diesel hands over as text are told apart by their English wording.
        "lc_messages = 'en_US'".to_owned(),
        format!(
            "innodb_lock_wait_timeout = {}",
            options.lock_timeout.as_secs().max(1)
        ),
    ];
    if !options.mysql_sql_mode.is_empty() {
        variables.push(format!(
            "sql_mode = '{}'",
            checked_sql_mode(&options.mysql_sql_mode)?
        ));
    }
    if let Some(limit) = options.statement_timeout {
        let limit = read_timeout.map_or(limit, |read| read.min(limit));
        variables.push(if is_mariadb {
            format!("max_statement_time = {}", limit.as_secs_f64())
        } else {
            format!("max_execution_time = {}", limit.as_millis())
        });
    }
    if is_mariadb {
        variables.push(format!(
            "idle_transaction_timeout = {}",
            IDLE_TRANSACTION.as_secs()
        ));
    }
    if let Some(wait) = options.mysql_wsrep_sync_wait {
        variables.push(format!("wsrep_sync_wait = {wait}"));
    }
    for setting in [
        "SET NAMES utf8mb4",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
        &format!("SET {}", variables.join(", ")),
    ] {
        diesel::sql_query(setting).execute(conn)?;
    }
    Ok(())
}

/// Whether the server is a node of Galera's. Others do not know the variable, or have it off.
#[cfg(feature = "mysql")]
fn replicates_with_galera(conn: &mut MysqlConnection) -> Result<bool, DbError> {
    #[derive(QueryableByName)]
    struct Variable {
        #[diesel(sql_type = diesel::sql_types::Text, column_name = "Value")]
        value: String,
    }
    let found: Vec<Variable> = diesel::sql_query("SHOW VARIABLES LIKE 'wsrep_on'").load(conn)?;
    Ok(found.iter().any(|variable| variable.value == "ON"))
}

/// Whether the server cannot pass over rows that are locked (`SKIP LOCKED`), which is how operations are claimed. A version
/// that cannot be read is given a chance.
#[cfg(feature = "mysql")]
fn is_too_old(version: &str, is_mariadb: bool) -> bool {
    let oldest = if is_mariadb { (10, 6) } else { (8, 0) };
    let mut numbers = version.split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < oldest,
        _ => false,
    }
}

/// `sql_mode` goes into a statement as text, so only the characters of mode names are let through.
#[cfg(feature = "mysql")]
fn checked_sql_mode(mode: &str) -> Result<&str, DbError> {
    let fine = mode
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ' '));
    if fine {
        Ok(mode)
    } else {
        Err(DbError::Schema(format!(
            "[database] mysql_sql_mode: '{mode}' is not a list of mode names; write for example TRADITIONAL"
        )))
    }
}

#[cfg(feature = "postgres")]
fn set_up_postgres(conn: &mut PgConnection, options: &SessionOptions) -> Result<(), DbError> {
    let statement_ms = options.statement_timeout.map_or(0, |limit| limit.as_millis());
    conn.batch_execute(&format!(
        "SET TIME ZONE 'UTC'; SET statement_timeout = {statement_ms}; SET lock_timeout = {}; \
         SET idle_in_transaction_session_timeout = {}; SET standard_conforming_strings = on; SET client_min_messages = warning; \
         SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
        options.lock_timeout.as_millis(),
        IDLE_TRANSACTION.as_millis(),
    ))?;
    Ok(())
}

#[cfg(all(test, feature = "mysql"))]
mod tests {
    use super::*;

    #[test]
    fn servers_that_cannot_pass_over_locked_rows_are_refused() {
        for (version, is_mariadb, too_old) in [
            ("10.5.28-MariaDB", true, true),
            ("10.6.0-MariaDB", true, false),
            ("10.11.19-MariaDB-0+deb12u1", true, false),
            ("11.4.2-MariaDB", true, false),
            ("5.7.44-log", false, true),
            ("8.0.36", false, false),
            ("9.1.0", false, false),
            ("unknown", false, false),
        ] {
            assert_eq!(is_too_old(version, is_mariadb), too_old, "{version}");
        }
    }
}
