//! The same address in the words of the client libraries, `libmariadb` and `libpq`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::ServerUrl;
use magnum_common::secret::Secret;

/// Everything that is not a letter, a digit or one of `-._~`.
#[cfg_attr(
    not(all(feature = "mysql", feature = "postgres")),
    allow(
        dead_code,
        reason = "URLs of all databases are understood, also by a build that has only some"
    )
)]
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Parameters of PyMySQL and mysqlclient that are used, or whose effect we always have (`charset`: the
/// connection always speaks utf8mb4).
pub(super) const MYSQL_PARAMS: &[&str] = &[
    "unix_socket",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "ssl_mode",
    "ssl_disabled",
    "ssl_verify_cert",
    "ssl_verify_identity",
    "ssl_check_hostname",
    "charset",
    "use_unicode",
    "read_timeout",
];

/// libpq's own parameters, handed through.
pub(super) const POSTGRES_PARAMS: &[&str] = &[
    "host",
    "hostaddr",
    "port",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslcrl",
    "sslpassword",
    "ssl_min_protocol_version",
    "connect_timeout",
    "application_name",
    "options",
    "passfile",
    "service",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "target_session_attrs",
    "channel_binding",
    "gssencmode",
    "krbsrvname",
    "client_encoding",
];

#[cfg_attr(
    not(all(feature = "mysql", feature = "postgres")),
    allow(
        dead_code,
        reason = "URLs of all databases are understood, also by a build that has only some"
    )
)]
impl ServerUrl {
    /// The URL that diesel's MySQL connection takes.
    pub(crate) fn to_mysql(&self) -> Secret {
        let encode = |text: &str| utf8_percent_encode(text, COMPONENT).to_string();
        let socket = self.param("unix_socket");
        // Python's own client (PyMySQL and the asyncio ones) reads "localhost" as TCP; the C client would
        // look for a socket file and ignore the port. mysqlclient (plain `mysql://`) does that in Python too.
        let python_client = self.driver.as_deref().is_some_and(|driver| driver != "mysqldb");
        let host = match self.host.as_deref() {
            Some("localhost") if socket.is_none() && python_client => "127.0.0.1".to_owned(),
            Some(host) if host.contains(':') => format!("[{host}]"),
            Some(host) => host.to_owned(),
            None => "localhost".to_owned(),
        };
        let mut url = "mysql://".to_owned();
        if let Some(user) = &self.user {
            url.push_str(&encode(user));
            if let Some(password) = &self.password {
                url.push(':');
                url.push_str(&encode(password.expose()));
            }
            url.push('@');
        }
        url.push_str(&host);
        if let Some(port) = self.port {
            url.push_str(&format!(":{port}"));
        }
        url.push('/');
        url.push_str(self.database.as_deref().unwrap_or_default());
        let mut separator = '?';
        let mut add = |name: &str, value: &str| {
            url.push_str(&format!("{separator}{name}={}", encode(value)));
            separator = '&';
        };
        for name in ["unix_socket", "ssl_ca", "ssl_cert", "ssl_key"] {
            if let Some(value) = self.param(name) {
                add(name, value);
            }
        }
        if let Some(mode) = self.mysql_ssl_mode() {
            add("ssl_mode", mode);
        }
        Secret::new(url)
    }

    /// PyMySQL's flags as the C client's mode. A certificate authority alone means: encrypt, and check it.
    fn mysql_ssl_mode(&self) -> Option<&str> {
        let on = |name| {
            self.param(name)
                .is_some_and(|v| matches!(v, "true" | "True" | "1" | "yes"))
        };
        if let Some(mode) = self.param("ssl_mode") {
            Some(mode)
        } else if on("ssl_disabled") {
            Some("disabled")
        } else if on("ssl_verify_identity") || on("ssl_check_hostname") {
            Some("verify_identity")
        } else if on("ssl_verify_cert") || self.param("ssl_ca").is_some() {
            Some("verify_ca")
        } else {
            None
        }
    }

    /// The connection string that libpq takes, with keep-alives so that a dead server is noticed.
    pub(crate) fn to_postgres(&self) -> Secret {
        let mut pairs: Vec<(&str, String)> = Vec::new();
        let port = self.port.map(|port| port.to_string());
        let own = [
            ("host", self.host.as_deref()),
            ("port", port.as_deref()),
            ("user", self.user.as_deref()),
            ("password", self.password.as_ref().map(Secret::expose)),
            ("dbname", self.database.as_deref()),
        ];
        for (name, value) in own {
            if let Some(value) = value {
                pairs.push((name, value.to_owned()));
            }
        }
        for (name, value) in &self.params {
            if POSTGRES_PARAMS.contains(&name.as_str()) {
                pairs.retain(|(known, _)| known != name);
                pairs.push((name, value.clone()));
            }
        }
        let defaults = [
            ("connect_timeout", "10"),
            ("keepalives_idle", "30"),
            ("keepalives_interval", "10"),
            ("keepalives_count", "3"),
            ("tcp_user_timeout", "60000"),
            ("client_encoding", "UTF8"),
            ("application_name", "magnum"),
        ];
        for (name, value) in defaults {
            if !pairs.iter().any(|(known, _)| *known == name) {
                pairs.push((name, value.to_owned()));
            }
        }
        let quoted: Vec<String> = pairs
            .into_iter()
            .map(|(name, value)| format!("{name}='{}'", value.replace('\\', "\\\\").replace('\'', "\\'")))
            .collect();
        Secret::new(quoted.join(" "))
    }
}
