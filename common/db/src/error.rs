//! What can go wrong with the database, by what the caller should do about it.
//!
//! diesel tells the kind of some errors (unique key, violated constraint, serialization failure, closed connection) and
//! hands over only the server's text for the rest, neither its number nor its SQLSTATE. The texts that matter are listed
//! here once, per kind; sessions are set to English messages where the server allows it (see [`super::session`]).
//!
//! Only what the request brings is its fault: a value that a column does not take, a violated constraint. A text that
//! nobody has listed is [`DbError::Unknown`]: a proxy between us and the server, a cluster that changes its members or an
//! administrator's `KILL` have many of them, and they pass.

use diesel::result::{ConnectionError, DatabaseErrorKind, Error as DieselError};

use super::url::UrlError;

/// A failed piece of database work.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// The server is away, or the connection broke. Whether the work was committed is unknown when this
    /// comes from a commit: only work that may be repeated should be.
    #[error("the database is not available: {0}")]
    Unavailable(String),
    /// The server answered and will not let us in: wrong password, no such database, folder not writable.
    #[error("the database refuses the connection: {0}")]
    Refused(String),
    /// A statement or a lock took longer than allowed.
    #[error("the database took too long: {0}")]
    TimedOut(String),
    /// Deadlock or serialization failure, or SQLite's one lock did not come free. [`super::Database::transaction`]
    /// has already repeated the work a few times when a caller sees this.
    #[error("the database work collided with other work: {0}")]
    Conflict(String),
    /// A row did not come free in time: somebody's transaction holds it, and that may last.
    /// [`super::Database::transaction`] has already repeated the work a few times when a caller sees this,
    /// [`super::Database::brief_transaction`] has not.
    #[error("a row that the work needs is locked by somebody else: {0}")]
    Locked(String),
    /// No space left where the database lives.
    #[error("the database has no space left: {0}")]
    Full(String),
    /// A row with the same unique key exists.
    #[error("a row with this key exists already: {detail}")]
    UniqueViolation {
        /// The key's name, where the server tells it.
        key: Option<String>,
        /// The server's text.
        detail: String,
    },
    /// A row that must be there is not.
    #[error("no such row")]
    NotFound,
    /// A stored value cannot be read.
    #[error("table {table}, column {column}, row {row}: {detail}")]
    Corrupt {
        /// Table.
        table: &'static str,
        /// Column.
        column: &'static str,
        /// The row's uuid or number.
        row: String,
        /// What is wrong with the value.
        detail: String,
    },
    /// The tables are not what this program needs: not yet, or not any more.
    #[error("{0}")]
    Schema(String),
    /// The server, or something before it, failed in words that are not known here.
    #[error("the database failed: {0}")]
    Unknown(String),
    /// The `[database]` options cannot be used.
    #[error("{0}")]
    Config(#[from] UrlError),
    /// The server does not take the statement as it is: a value too long for its column, a violated constraint. Or it
    /// could not even be sent.
    #[error("a database query failed: {0}")]
    Query(#[source] DieselError),
}

impl DbError {
    /// Whether the same work may succeed later without anybody changing the request.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_)
                | Self::Refused(_)
                | Self::TimedOut(_)
                | Self::Conflict(_)
                | Self::Locked(_)
                | Self::Full(_)
                | Self::Schema(_)
                | Self::Unknown(_)
        )
    }

    /// Whether it is not known what failed. Such work is repeated like other transient work, but not for ever: the reason
    /// may be in it all the same.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }

    /// Whether a row that somebody else has locked was in the way: other work is not concerned.
    pub const fn is_locked(&self) -> bool {
        matches!(self, Self::Locked(_))
    }

    /// Whether the database as a whole is out of order, so that other work will fail as well: consumers pause.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Refused(_) | Self::Full(_))
    }

    /// When a value is at fault that the column's type cannot hold: the column's name, where the server tells it.
    pub fn refused_value(&self) -> Option<Option<&str>> {
        let Self::Query(DieselError::DatabaseError(_, info)) = self else {
            return None;
        };
        let text = info.message();
        is_refused_value(text).then(|| column_named_in(text))
    }

    /// Whether the connection that said it must not be used again.
    pub(super) fn breaks_connection(error: &DieselError) -> bool {
        matches!(classify(error), Class::Unavailable | Class::TimedOut)
    }

    /// Whether repeating the whole transaction is the right answer.
    pub(super) fn is_conflict(error: &DieselError) -> bool {
        matches!(classify(error), Class::Conflict | Class::Locked)
    }

    /// Whether it was a lock that did not come free.
    pub(super) fn is_lock(error: &DieselError) -> bool {
        matches!(classify(error), Class::Locked)
    }
}

fn is_refused_value(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    REFUSED_VALUES.iter().any(|known| lower.contains(known))
}

/// What the servers say of a value that does not fit, lower case.
const REFUSED_VALUES: &[&str] = &[
    "data too long for column",      // MySQL 1406
    "incorrect string value",        // MySQL 1366: beyond the table's character set
    "out of range value for column", // MySQL 1264
    "value too long for type",       // PostgreSQL 22001
    "invalid byte sequence",         // PostgreSQL 22021: the NUL character
    "string or blob too big",        // SQLITE_TOOBIG
];

/// The column in a text like `… for column 'name' at row 1`; MariaDB writes `` `database`.`table`.`name` ``.
fn column_named_in(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("for column ")?;
    let (named, _) = rest.split_once(" at row")?;
    let name = named.rsplit('.').next()?;
    Some(name.trim_matches(['\'', '`']))
}

/// The texts of `DatabaseErrorKind::Unknown`, lower case, by what they mean.
const TEXTS: &[(Class, &[&str])] = &[
    (
        Class::Conflict,
        &[
            "database is locked",                 // SQLITE_BUSY
            "database table is locked",           // SQLITE_LOCKED
            "deadlock",                           // PostgreSQL 40P01; MySQL 1213 comes as a kind
            "record has changed since last read", // MariaDB 1020, innodb_snapshot_isolation
            "could not serialize access",         // PostgreSQL 40001 inside a function
        ],
    ),
    (
        Class::Locked,
        &[
            "lock wait timeout exceeded", // MySQL 1205
            "due to lock timeout",        // PostgreSQL 55P03
        ],
    ),
    (
        Class::TimedOut,
        &[
            "max_statement_time exceeded",      // MariaDB 1969
            "maximum statement execution time", // MySQL 3024
            "due to statement timeout",         // PostgreSQL 57014
        ],
    ),
    (
        Class::Full,
        &[
            "database or disk is full", // SQLITE_FULL
            "no space left on device",  // PostgreSQL 53100, and errno 28 on all
            "disk full",                // MySQL 1021
            "is full",                  // MySQL 1114
        ],
    ),
    (
        Class::Unavailable,
        &[
            "gone away",                          // MySQL 2006
            "lost connection",                    // MySQL 2013
            "connection was killed",              // MariaDB 1927
            "can't connect",                      // MySQL 2002, 2003
            "server shutdown in progress",        // MySQL 1053
            "too many connections",               // MySQL 1040
            "max_prepared_stmt_count",            // MySQL 1461: closing the connection makes room
            "wsrep has not yet prepared",         // Galera 1047
            "read-only",                          // MySQL 1290: a replica after a failover
            "terminating connection",             // PostgreSQL 57P01
            "server closed the connection",       // libpq
            "no connection to the server",        // libpq
            "connection to server",               // libpq
            "could not receive data from server", // libpq
            "could not send data to server",      // libpq
            "ssl connection has been closed",     // libpq
            "the database system is",             // PostgreSQL 57P03: starting up, shutting down, recovery
            "remaining connection slots",         // PostgreSQL 53300
            "too many clients",                   // PostgreSQL 53300
            "disk i/o error",                     // SQLITE_IOERR
        ],
    ),
    (
        Class::Refused,
        &[
            "access denied",                // MySQL 1044, 1045
            "unknown database",             // MySQL 1049
            "authentication failed",        // PostgreSQL 28P01
            "no pg_hba.conf entry",         // PostgreSQL 28000
            "does not exist\n",             // PostgreSQL 3D000, as libpq ends it
            "unable to open database file", // SQLITE_CANTOPEN
            "attempt to write a readonly",  // SQLITE_READONLY
            "file is not a database",       // SQLITE_NOTADB
        ],
    ),
    (
        Class::Schema,
        &[
            "no such table",
            "no such column",
            "has no column named", // SQLite
            "doesn't exist",
            "unknown column", // MySQL 1146, 1054
        ],
    ),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Unavailable,
    Refused,
    TimedOut,
    Conflict,
    Locked,
    Full,
    Unique,
    NotFound,
    Schema,
    /// A refused value, a violated constraint, a statement that was not sent.
    OfTheRequest,
    Unknown,
}

fn class_of_text(text: &str) -> Class {
    // First: it may quote what the user has written.
    if is_refused_value(text) {
        return Class::OfTheRequest;
    }
    let text = text.to_lowercase();
    if is_missing_table(&text) {
        return Class::Schema;
    }
    TEXTS
        .iter()
        .find(|(_, texts)| texts.iter().any(|known| text.contains(known)))
        .map_or(Class::Unknown, |(class, _)| *class)
}

/// PostgreSQL's 42P01 and 42703: `relation "cluster" does not exist`, `column c.name does not exist`.
fn is_missing_table(text: &str) -> bool {
    let named = ["relation ", "column "];
    named.iter().any(|kind| text.starts_with(kind)) && text.trim_end().ends_with("does not exist")
}

fn classify(error: &DieselError) -> Class {
    match error {
        DieselError::NotFound => Class::NotFound,
        DieselError::DatabaseError(kind, info) => match kind {
            DatabaseErrorKind::UniqueViolation => Class::Unique,
            DatabaseErrorKind::SerializationFailure => Class::Conflict,
            DatabaseErrorKind::ClosedConnection
            | DatabaseErrorKind::UnableToSendCommand
            | DatabaseErrorKind::ReadOnlyTransaction => Class::Unavailable,
            DatabaseErrorKind::ForeignKeyViolation
            | DatabaseErrorKind::NotNullViolation
            | DatabaseErrorKind::CheckViolation
            | DatabaseErrorKind::RestrictViolation
            | DatabaseErrorKind::ExclusionViolation => Class::OfTheRequest,
            _ => class_of_text(info.message()),
        },
        DieselError::RollbackErrorOnCommit { commit_error, .. } => classify(commit_error),
        DieselError::RollbackTransaction | DieselError::BrokenTransactionManager => Class::Unavailable,
        _ => Class::OfTheRequest,
    }
}

impl From<DieselError> for DbError {
    fn from(error: DieselError) -> Self {
        let detail = || match &error {
            DieselError::DatabaseError(_, info) => info.message().trim_end().to_owned(),
            other => other.to_string(),
        };
        match classify(&error) {
            Class::Unavailable => Self::Unavailable(detail()),
            Class::Refused => Self::Refused(detail()),
            Class::TimedOut => Self::TimedOut(detail()),
            Class::Conflict => Self::Conflict(detail()),
            Class::Locked => Self::Locked(detail()),
            Class::Full => Self::Full(detail()),
            Class::NotFound => Self::NotFound,
            Class::Schema => Self::Schema(format!(
                "{}: the tables are not those of this release; run `magnum-db-manage upgrade`",
                detail()
            )),
            Class::Unique => Self::UniqueViolation {
                key: match &error {
                    DieselError::DatabaseError(_, info) => info.constraint_name().map(str::to_owned),
                    _ => None,
                },
                detail: detail(),
            },
            Class::Unknown => Self::Unknown(detail()),
            Class::OfTheRequest => Self::Query(error),
        }
    }
}

impl From<ConnectionError> for DbError {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::CouldntSetupConfiguration(inner) => Self::from(inner),
            other => Self::from_connect_text(&other.to_string()),
        }
    }
}

impl DbError {
    /// Classifies what a failed attempt to connect said.
    pub(super) fn from_connect_text(text: &str) -> Self {
        match class_of_text(text) {
            // libpq starts every message with "connection to server …", so the reason has to win.
            Class::Unavailable if is_refusal(text) => Self::Refused(text.trim_end().to_owned()),
            Class::Refused => Self::Refused(text.trim_end().to_owned()),
            _ => Self::Unavailable(text.trim_end().to_owned()),
        }
    }
}

fn is_refusal(text: &str) -> bool {
    ["authentication failed", "no pg_hba.conf entry", "does not exist"]
        .iter()
        .any(|known| text.contains(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_says(text: &str) -> DbError {
        DieselError::DatabaseError(DatabaseErrorKind::Unknown, Box::new(text.to_owned())).into()
    }

    #[test]
    fn messages_of_the_three_servers_are_classified() {
        assert!(matches!(server_says("database is locked"), DbError::Conflict(_)));
        assert!(matches!(server_says("deadlock detected"), DbError::Conflict(_)));
        assert!(matches!(
            server_says("database or disk is full"),
            DbError::Full(_)
        ));
        assert!(matches!(
            server_says("Server has gone away"),
            DbError::Unavailable(_)
        ));
        assert!(matches!(
            server_says("Query execution was interrupted (max_statement_time exceeded)"),
            DbError::TimedOut(_)
        ));
        assert!(matches!(
            server_says("no such table: cluster"),
            DbError::Schema(_)
        ));
        for missing in [
            "relation \"cluster\" does not exist",
            "column cluster.name does not exist",
        ] {
            assert!(matches!(server_says(missing), DbError::Schema(_)), "{missing}");
        }
        for locked in [
            "Lock wait timeout exceeded; try restarting transaction",
            "canceling statement due to lock timeout",
        ] {
            assert!(matches!(server_says(locked), DbError::Locked(_)), "{locked}");
        }
        assert!(matches!(
            server_says("Data too long for column 'name' at row 1"),
            DbError::Query(_)
        ));
    }

    #[test]
    fn oversized_value_is_reported_by_column_if_the_server_names_it() {
        for (text, column) in [
            ("Data too long for column 'labels' at row 1", Some(Some("labels"))),
            (
                "Incorrect string value: '\\xF0\\x9F\\x98\\x80' for column `m`.`cluster_template`.`name` at row 1",
                Some(Some("name")),
            ),
            ("value too long for type character varying(255)", Some(None)),
            ("invalid byte sequence for encoding \"UTF8\": 0x00", Some(None)),
            ("syntax error at or near \"SELECT\"", None),
        ] {
            assert_eq!(server_says(text).refused_value(), column, "{text}");
        }
    }

    #[test]
    fn a_wrong_password_is_a_refusal_and_a_server_that_is_away_is_not() {
        let refused = "connection to server at \"db\" (10.0.0.1), port 5432 failed: FATAL:  password \
                       authentication failed for user \"magnum\"";
        assert!(matches!(DbError::from_connect_text(refused), DbError::Refused(_)));
        let away = "connection to server at \"db\" (10.0.0.1), port 5432 failed: Connection refused";
        assert!(matches!(
            DbError::from_connect_text(away),
            DbError::Unavailable(_)
        ));
        assert!(matches!(
            DbError::from_connect_text("Access denied for user 'magnum'@'localhost'"),
            DbError::Refused(_)
        ));
    }

    #[test]
    fn only_errors_that_time_can_heal_are_transient() {
        assert!(DbError::Conflict(String::new()).is_transient());
        assert!(DbError::Full(String::new()).is_transient());
        assert!(!DbError::NotFound.is_transient());
        assert!(!server_says("Data too long for column 'name' at row 1").is_transient());
        let null = DieselError::DatabaseError(DatabaseErrorKind::NotNullViolation, Box::new("x".to_owned()));
        assert!(!DbError::from(null).is_transient());
    }

    #[test]
    fn what_nobody_has_listed_may_pass() {
        for text in [
            "Max connect timeout reached while reaching hostgroup 10 after 10000ms",
            "Query execution was interrupted",
            "Got error 6 \"No such device or address\" during COMMIT",
            "Error on observer while running replication hook 'before_commit'.",
            "canceling statement due to user request",
            "out of memory",
        ] {
            let error = server_says(text);
            assert!(error.is_unknown() && error.is_transient(), "{text}: {error:?}");
            assert!(!error.is_outage(), "{text}");
        }
        // A user's words do not decide.
        let value = server_says("Data too long for column 'name' at row 1: 'server shutdown in progress'");
        assert!(value.refused_value().is_some() && !value.is_transient());
    }
}
