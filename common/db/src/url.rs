//! `[database] connection`: SQLAlchemy's URL, as operators have it in `magnum.conf`.
//!
//! ```text
//! mysql+pymysql://user:password@host:3306/magnum?charset=utf8mb4
//! postgresql+psycopg2://user:password@host/magnum?sslmode=require
//! sqlite:////var/lib/magnum/magnum.sqlite
//! ```
//!
//! Read as SQLAlchemy reads it: a password may hold any character but `@`, user and password are
//! percent-decoded, the `+driver` part picks a Python library and means (almost) nothing to us. Parameters of
//! the Python libraries are mapped where we have the same thing; the others are reported, never an error.

mod client;

use std::fmt;
use std::time::Duration;

use percent_encoding::percent_decode_str;

use self::client::{MYSQL_PARAMS, POSTGRES_PARAMS};

use magnum_common::secret::Secret;

/// A `[database] connection` that cannot be used. Never shows the password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[database] connection: {0}")]
pub struct UrlError(pub(super) String);

/// Where the database is.
#[derive(Debug, Clone, PartialEq)]
pub enum DatabaseUrl {
    /// A file, or memory that vanishes with the process.
    Sqlite {
        /// Path of the file; `None`: in memory.
        path: Option<String>,
        /// `?timeout=`: how long to wait for another process's lock.
        busy_timeout: Option<Duration>,
    },
    /// MySQL or MariaDB.
    Mysql(ServerUrl),
    /// PostgreSQL.
    Postgres(ServerUrl),
}

/// A database server's address.
#[derive(Clone, PartialEq, Default)]
pub struct ServerUrl {
    /// The `+driver` part.
    driver: Option<String>,
    user: Option<String>,
    password: Option<Secret>,
    host: Option<String>,
    port: Option<u16>,
    database: Option<String>,
    params: Vec<(String, String)>,
}

impl fmt::Debug for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}/{}",
            self.host.as_deref().unwrap_or(""),
            self.port.map_or_else(String::new, |port| port.to_string()),
            self.database.as_deref().unwrap_or("")
        )
    }
}

impl DatabaseUrl {
    /// Parses a SQLAlchemy URL.
    ///
    /// # Errors
    /// The dialect is not supported, or a part is malformed. No password is quoted.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = text.split_once("://").ok_or_else(|| {
            UrlError(
                "is not a URL; write mysql+pymysql://user:password@host/magnum, \
                 postgresql://user:password@host/magnum or sqlite:////path/magnum.sqlite"
                    .to_owned(),
            )
        })?;
        let (dialect, driver) = match scheme.split_once('+') {
            Some((dialect, driver)) => (dialect, Some(driver)),
            None => (scheme, None),
        };
        match dialect {
            "sqlite" => parse_sqlite(rest),
            "mysql" | "mariadb" => Ok(Self::Mysql(ServerUrl::parse(driver, rest)?)),
            "postgresql" | "postgres" => Ok(Self::Postgres(ServerUrl::parse(driver, rest)?)),
            other => Err(UrlError(format!(
                "database '{other}' is not supported; use mysql, postgresql or sqlite"
            ))),
        }
    }

    /// The address with the user, and without password and parameters: for people.
    pub fn shown(&self) -> String {
        match self {
            Self::Sqlite { path: None, .. } => "sqlite://".to_owned(),
            Self::Sqlite { path: Some(path), .. } => format!("sqlite:///{path}"),
            Self::Mysql(server) => server.shown("mysql"),
            Self::Postgres(server) => server.shown("postgresql"),
        }
    }

    /// The seconds of `?read_timeout=`: PyMySQL gives up a statement after them.
    #[cfg_attr(not(feature = "mysql"), allow(dead_code, reason = "only MySQL has it"))]
    pub(super) fn read_timeout(&self) -> Option<Duration> {
        match self {
            Self::Mysql(server) => server
                .param("read_timeout")?
                .parse()
                .ok()
                .filter(|s| *s > 0)
                .map(Duration::from_secs),
            _ => None,
        }
    }

    /// The TCP ports that a connection may lead to.
    #[cfg_attr(
        not(any(feature = "mysql", feature = "postgres")),
        allow(dead_code, reason = "SQLite has no server")
    )]
    pub(super) fn ports(&self) -> Vec<u16> {
        let (server, usual) = match self {
            Self::Sqlite { .. } => return Vec::new(),
            Self::Mysql(server) => (server, 3306),
            Self::Postgres(server) => (server, 5432),
        };
        // libpq takes a list of hosts with a port for each.
        let of_hosts = server.param("port").filter(|_| usual == 5432);
        let mut ports: Vec<u16> = match of_hosts {
            Some(list) => list.split(',').filter_map(|port| port.parse().ok()).collect(),
            None => Vec::from_iter(server.port),
        };
        if ports.is_empty() {
            ports.push(usual);
        }
        ports
    }

    /// Parameters that mean nothing here, for a warning at start.
    pub fn ignored_parameters(&self) -> Vec<&str> {
        let (server, known): (_, &[&str]) = match self {
            Self::Sqlite { .. } => return Vec::new(),
            Self::Mysql(server) => (server, MYSQL_PARAMS),
            Self::Postgres(server) => (server, POSTGRES_PARAMS),
        };
        server
            .params
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !known.contains(name))
            .collect()
    }
}

fn decode(text: &str, what: &str) -> Result<String, UrlError> {
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| UrlError(format!("the {what} is not UTF-8 after percent-decoding")))
}

fn parse_query(query: &str) -> Result<Vec<(String, String)>, UrlError> {
    query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((
                decode(&name.replace('+', " "), "query")?,
                decode(&value.replace('+', " "), "query")?,
            ))
        })
        .collect()
}

fn parse_sqlite(rest: &str) -> Result<DatabaseUrl, UrlError> {
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = match location {
        "" | "/" | "/:memory:" => None,
        _ => Some(
            location
                .strip_prefix('/')
                .ok_or_else(|| {
                    UrlError(
                        "sqlite takes three slashes before a relative path and four before an absolute one"
                            .to_owned(),
                    )
                })?
                .to_owned(),
        ),
    };
    let seconds = parse_query(query)?
        .into_iter()
        .find(|(name, _)| name == "timeout")
        .map(|(_, value)| {
            value
                .parse::<f64>()
                .ok()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .ok_or_else(|| UrlError(format!("timeout '{value}' is not a number of seconds")))
        })
        .transpose()?;
    Ok(DatabaseUrl::Sqlite {
        path,
        busy_timeout: seconds,
    })
}

#[cfg_attr(
    not(all(feature = "mysql", feature = "postgres")),
    allow(
        dead_code,
        reason = "URLs of all databases are understood, also by a build that has only some"
    )
)]
impl ServerUrl {
    fn parse(driver: Option<&str>, rest: &str) -> Result<Self, UrlError> {
        // As SQLAlchemy: the user ends at the first ':', the password at the next '@'. A raw '/' in a
        // password is therefore fine, a raw '@' is not.
        let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (credentials, address) = match rest.split_once('@') {
            Some((credentials, address))
                if credentials.contains(':') || credentials.len() < authority_end =>
            {
                (Some(credentials), address)
            }
            _ => (None, rest),
        };
        let (user, password) = match credentials {
            None => (None, None),
            Some(text) => match text.split_once(':') {
                Some((user, password)) => (
                    Some(decode(user, "user")?),
                    Some(Secret::new(decode(password, "password")?)),
                ),
                None => (Some(decode(text, "user")?), None),
            },
        };
        let (location, query) = address.split_once('?').unwrap_or((address, ""));
        let (host_port, database) = match location.split_once('/') {
            Some((host_port, database)) => (host_port, Some(database.to_owned())),
            None => (location, None),
        };
        let (host, port) = parse_host(host_port)?;
        let database = database.filter(|name| !name.is_empty());
        if database.is_none() {
            return Err(UrlError(
                "names no database; add /magnum after the host".to_owned(),
            ));
        }
        Ok(Self {
            driver: driver.map(str::to_owned),
            user,
            password,
            host,
            port,
            database,
            params: parse_query(query)?,
        })
    }

    fn shown(&self, dialect: &str) -> String {
        let user = self.user.as_deref().map(|user| format!("{user}@"));
        let host = match self.host.as_deref() {
            Some(address) if address.contains(':') => format!("[{address}]"),
            host => host.unwrap_or_default().to_owned(),
        };
        let port = self.port.map(|port| format!(":{port}"));
        format!(
            "{dialect}://{}{host}{}/{}",
            user.unwrap_or_default(),
            port.unwrap_or_default(),
            self.database.as_deref().unwrap_or_default()
        )
    }

    fn param(&self, name: &str) -> Option<&str> {
        self.params
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

fn parse_host(text: &str) -> Result<(Option<String>, Option<u16>), UrlError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(inner) => {
            let (host, rest) = inner
                .split_once(']')
                .ok_or_else(|| UrlError("the IPv6 address has no closing ']'".to_owned()))?;
            (host, rest.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port
        .filter(|port| !port.is_empty())
        .map(|port| {
            port.parse()
                .map_err(|_| UrlError(format!("port '{port}' is not a port number")))
        })
        .transpose()?;
    Ok((Some(host.to_owned()).filter(|host| !host.is_empty()), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mysql(text: &str) -> String {
        match DatabaseUrl::parse(text).unwrap() {
            DatabaseUrl::Mysql(server) => server.to_mysql().expose().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    fn postgres(text: &str) -> String {
        match DatabaseUrl::parse(text).unwrap() {
            DatabaseUrl::Postgres(server) => server.to_postgres().expose().to_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn mysql_urls_lose_the_python_library_and_keep_everything_else() {
        assert_eq!(
            mysql("mysql+pymysql://magnum:s%40cret@10.0.0.10:3306/magnum?charset=utf8mb4"),
            "mysql://magnum:s%40cret@10.0.0.10:3306/magnum"
        );
        assert_eq!(
            mysql("mysql://magnum@[fd00::1]/magnum"),
            "mysql://magnum@[fd00::1]/magnum"
        );
    }

    #[test]
    fn people_are_shown_everything_but_password_and_parameters() {
        for (text, shown) in [
            (
                "mysql+pymysql://magnum:secret@db:3306/magnum?charset=utf8",
                "mysql://magnum@db:3306/magnum",
            ),
            ("postgresql://u:secret@[fd00::1]/m", "postgresql://u@[fd00::1]/m"),
            (
                "sqlite:////var/lib/magnum.sqlite?timeout=3",
                "sqlite:////var/lib/magnum.sqlite",
            ),
        ] {
            assert_eq!(DatabaseUrl::parse(text).unwrap().shown(), shown);
        }
    }

    #[test]
    fn a_password_may_hold_slashes_colons_and_question_marks() {
        assert_eq!(
            mysql("mysql+pymysql://u:a/b:c?d@h/m"),
            "mysql://u:a%2Fb%3Ac%3Fd@h/m"
        );
    }

    #[test]
    fn an_at_sign_in_a_parameter_is_not_a_user() {
        assert_eq!(
            mysql("mysql+pymysql://h/m?unix_socket=/a@b"),
            "mysql://h/m?unix_socket=%2Fa%40b"
        );
    }

    #[test]
    fn localhost_is_tcp_for_pymysql_and_a_socket_when_one_is_named() {
        assert_eq!(
            mysql("mysql+pymysql://u@localhost:3307/m"),
            "mysql://u@127.0.0.1:3307/m"
        );
        assert_eq!(
            mysql("mysql+pymysql://u@localhost/m?unix_socket=/run/my.sock"),
            "mysql://u@localhost/m?unix_socket=%2Frun%2Fmy%2Esock".replace("%2E", ".")
        );
    }

    #[test]
    fn tls_parameters_become_a_mode() {
        assert!(
            mysql("mysql+pymysql://u@h/m?ssl_ca=/ca.pem").ends_with("?ssl_ca=%2Fca.pem&ssl_mode=verify_ca")
        );
        assert!(
            mysql("mysql+pymysql://u@h/m?ssl_ca=/ca&ssl_verify_identity=true").ends_with("=verify_identity")
        );
    }

    #[test]
    fn postgres_urls_become_a_connection_string_with_quotes_escaped() {
        let text =
            postgres("postgresql+psycopg2://magnum:it%27s@db/magnum?sslmode=require&connect_timeout=3");
        assert!(
            text.starts_with("host='db' user='magnum' password='it\\'s' dbname='magnum' sslmode='require'")
        );
        assert!(text.contains("connect_timeout='3'"));
        assert_eq!(text.matches("connect_timeout").count(), 1);
    }

    #[test]
    fn a_host_parameter_wins_so_that_socket_folders_can_be_named() {
        let text = postgres("postgresql:///magnum?host=/run/postgresql");
        assert!(
            text.starts_with("dbname='magnum' host='/run/postgresql'"),
            "{text}"
        );
    }

    #[test]
    fn sqlite_takes_absolute_relative_and_memory() {
        let path = |text| match DatabaseUrl::parse(text).unwrap() {
            DatabaseUrl::Sqlite { path, .. } => path,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            path("sqlite:////var/lib/m.sqlite").as_deref(),
            Some("/var/lib/m.sqlite")
        );
        assert_eq!(path("sqlite:///m.sqlite?timeout=5").as_deref(), Some("m.sqlite"));
        assert_eq!(path("sqlite://"), None);
        assert_eq!(path("sqlite:///:memory:"), None);
        assert!(DatabaseUrl::parse("sqlite://m.sqlite").is_err());
    }

    #[test]
    fn unusable_urls_name_the_form_and_hide_the_password() {
        for text in [
            "magnum.sqlite",
            "oracle://u:hunter2@h/m",
            "mysql://u:hunter2@h",
            "mysql://u:hunter2@h:x/m",
        ] {
            let error = DatabaseUrl::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("[database] connection: "), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let shown = format!("{:?}", DatabaseUrl::parse("mysql://u:hunter2@h/m").unwrap());
        assert!(!shown.contains("hunter2") && shown.contains("h:/m"), "{shown}");
    }

    #[test]
    fn parameters_without_a_counterpart_are_named() {
        let url = DatabaseUrl::parse("mysql+pymysql://u@h/m?charset=utf8&init_command=x").unwrap();
        assert_eq!(url.ignored_parameters(), ["init_command"]);
    }
}
