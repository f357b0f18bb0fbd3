//! `transport_url`: where the brokers are and who we are there.
//!
//! The grammar is oslo.messaging's, not RFC 3986's: several hosts with their own credentials, a virtual host
//! that may hold slashes, and query parameters that override `[oslo_messaging_rabbit]`. Two differences from
//! the Python side, both towards accepting more: a password may hold an encoded `/`, and a malformed percent
//! escape is reported instead of passed on.
//!
//! `fake://<name>` names an in-process broker; everything with the same whole URL shares it.

use std::fmt;

use percent_encoding::percent_decode_str;

use magnum_common::secret::Secret;

/// AMQP's port.
pub const DEFAULT_PORT: u16 = 5672;

/// What is wrong with a `transport_url`. Never quotes the URL: it holds a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// No `scheme://`.
    #[error("transport_url: no scheme; write rabbit://user:password@host:5672/vhost")]
    NoScheme,
    /// A scheme nobody serves.
    #[error("transport_url: `{0}://` is not supported; use rabbit:// (or fake:// inside one process)")]
    Scheme(String),
    /// The port is not a number from 1 to 65535.
    #[error("transport_url: port `{port}` of host `{host}` is not a number from 1 to 65535")]
    Port {
        /// The host it belongs to.
        host: String,
        /// What was written.
        port: String,
    },
    /// `[` without `]`.
    #[error("transport_url: `{0}` opens a bracket that it does not close")]
    Bracket(String),
    /// An escape that does not decode to UTF-8.
    #[error("transport_url: the {0} holds a percent escape that is not UTF-8")]
    Escape(&'static str),
    /// The virtual host does not fit into AMQP.
    #[error("transport_url: the virtual host is longer than 255 bytes")]
    LongVirtualHost,
    /// `?word` without `=`.
    #[error("transport_url: query parameter `{0}` has no value")]
    Query(String),
}

/// A parsed `transport_url`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransportUrl {
    /// RabbitMQ.
    Rabbit(RabbitUrl),
    /// The in-process broker known by this text (the whole URL).
    Fake(String),
}

/// Where RabbitMQ is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RabbitUrl {
    /// At least one.
    pub hosts: Vec<BrokerHost>,
    /// The virtual host, `/` by default.
    pub virtual_host: String,
    /// Query parameters in order: `[oslo_messaging_rabbit]` options that win over the file.
    pub overrides: Vec<(String, String)>,
}

/// One broker node and the login for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerHost {
    /// Name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// User.
    pub user: String,
    /// Password.
    pub password: Secret,
}

impl fmt::Display for BrokerHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl TransportUrl {
    /// Parses a `transport_url`.
    ///
    /// # Errors
    /// The scheme is unknown, or a host, port or percent-encoding is malformed. No password is quoted.
    pub fn parse(url: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = url.split_once("://").ok_or(UrlError::NoScheme)?;
        match scheme {
            "fake" => Ok(Self::Fake(url.to_owned())),
            "rabbit" => RabbitUrl::parse(rest).map(Self::Rabbit),
            other => Err(UrlError::Scheme(other.to_owned())),
        }
    }
}

impl RabbitUrl {
    fn parse(rest: &str) -> Result<Self, UrlError> {
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        // Credentials cannot hold a bare `/`, so the first one starts the virtual host.
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let entries: Vec<&str> = authority.split(',').filter(|entry| !entry.is_empty()).collect();
        let hosts = if entries.is_empty() {
            vec![BrokerHost::local_guest()]
        } else {
            let parsed: Result<Vec<_>, _> = entries.into_iter().map(BrokerHost::parse).collect();
            parsed?
        };
        let decoded = decode(path, "virtual host")?;
        let virtual_host = if decoded.is_empty() {
            "/".to_owned()
        } else {
            decoded
        };
        Ok(Self {
            hosts,
            virtual_host,
            overrides: parse_query(query)?,
        })
    }
}

impl BrokerHost {
    fn local_guest() -> Self {
        Self {
            host: "localhost".to_owned(),
            port: DEFAULT_PORT,
            user: "guest".to_owned(),
            password: Secret::new("guest"),
        }
    }

    fn parse(entry: &str) -> Result<Self, UrlError> {
        let (credentials, address) = match entry.rsplit_once('@') {
            Some((credentials, address)) => (Some(credentials), address),
            None => (None, entry),
        };
        let (host, port) = parse_address(address)?;
        let (user, password) = match credentials {
            None => (String::new(), String::new()),
            Some(credentials) => {
                let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
                let password = decode(password, "password")?;
                // kombu fills an empty password of a named user with its default.
                let password = if password.is_empty() {
                    "guest".to_owned()
                } else {
                    password
                };
                (decode(user, "user")?, password)
            }
        };
        Ok(Self {
            host,
            port,
            user,
            password: Secret::new(password),
        })
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address.
fn parse_address(address: &str) -> Result<(String, u16), UrlError> {
    let (host, port) = if let Some(bracketed) = address.strip_prefix('[') {
        let (host, rest) = bracketed
            .split_once(']')
            .ok_or_else(|| UrlError::Bracket(address.to_owned()))?;
        (host, rest.strip_prefix(':'))
    } else if address.matches(':').count() > 1 {
        (address, None)
    } else {
        match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        }
    };
    let port = match port {
        None | Some("") => DEFAULT_PORT,
        Some(text) => text
            .parse::<u16>()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(|| UrlError::Port {
                host: host.to_owned(),
                port: text.to_owned(),
            })?,
    };
    let host = if host.is_empty() { "localhost" } else { host };
    Ok((host.to_owned(), port))
}

fn parse_query(query: &str) -> Result<Vec<(String, String)>, UrlError> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| UrlError::Query(pair.to_owned()))?;
            Ok((decode(name, "query")?, decode(value, "query")?))
        })
        .collect()
}

fn decode(text: &str, part: &'static str) -> Result<String, UrlError> {
    percent_decode_str(text)
        .decode_utf8()
        .map(std::borrow::Cow::into_owned)
        .map_err(|_| UrlError::Escape(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rabbit(url: &str) -> RabbitUrl {
        match TransportUrl::parse(url) {
            Ok(TransportUrl::Rabbit(rabbit)) => rabbit,
            other => panic!("{url}: {other:?}"),
        }
    }

    /// (user, password, host, port) of each host.
    fn hosts(url: &str) -> Vec<(String, String, String, u16)> {
        rabbit(url)
            .hosts
            .into_iter()
            .map(|h| (h.user, h.password.expose().to_owned(), h.host, h.port))
            .collect()
    }

    fn one(user: &str, password: &str, host: &str, port: u16) -> Vec<(String, String, String, u16)> {
        vec![(user.into(), password.into(), host.into(), port)]
    }

    #[test]
    fn an_empty_url_is_the_local_guest() {
        assert_eq!(hosts("rabbit://"), one("guest", "guest", "localhost", 5672));
        assert_eq!(hosts("rabbit:///"), one("guest", "guest", "localhost", 5672));
        assert_eq!(rabbit("rabbit://").virtual_host, "/");
    }

    #[test]
    fn virtual_host_follows_the_first_slash() {
        for (written, expected) in [
            ("rabbit://u:p@h", "/"),
            ("rabbit://u:p@h/", "/"),
            ("rabbit://u:p@h//", "/"),
            ("rabbit://u:p@h/magnum", "magnum"),
            ("rabbit://u:p@h/%2Fmagnum", "/magnum"),
            ("rabbit://u:p@h/a/b", "a/b"),
            ("rabbit://u:p@h/a%2Fb", "a/b"),
            ("rabbit://u:p@h/v%20w", "v w"),
        ] {
            assert_eq!(rabbit(written).virtual_host, expected, "{written}");
            assert_eq!(hosts(written), one("u", "p", "h", 5672), "{written}");
        }
    }

    #[test]
    fn credentials_are_decoded_and_split_at_the_first_colon_and_the_last_at_sign() {
        assert_eq!(hosts("rabbit://us%40er:p%23s@h"), one("us@er", "p#s", "h", 5672));
        assert_eq!(
            hosts("rabbit://user@realm:pw@h"),
            one("user@realm", "pw", "h", 5672)
        );
        assert_eq!(hosts("rabbit://user:p@ss:w@h"), one("user", "p@ss:w", "h", 5672));
        assert_eq!(hosts("rabbit://u:a+b@h"), one("u", "a+b", "h", 5672));
        assert_eq!(hosts("rabbit://u:a%2Fb@h/v"), one("u", "a/b", "h", 5672));
    }

    #[test]
    fn an_empty_password_is_guest() {
        assert_eq!(hosts("rabbit://u@h"), one("u", "guest", "h", 5672));
        assert_eq!(hosts("rabbit://u:@h"), one("u", "guest", "h", 5672));
    }

    #[test]
    fn addresses_may_be_ipv6_with_or_without_brackets() {
        assert_eq!(
            hosts("rabbit://u:p@[2001:db8::1]:5673"),
            one("u", "p", "2001:db8::1", 5673)
        );
        assert_eq!(
            hosts("rabbit://u:p@2001:db8::1"),
            one("u", "p", "2001:db8::1", 5672)
        );
        assert_eq!(rabbit("rabbit://u:p@[::1]:1/").hosts[0].to_string(), "[::1]:1");
    }

    #[test]
    fn credentials_belong_to_one_host_each() {
        let expected = [one("u", "p", "a", 5672), one("", "", "b", 5673)].concat();
        assert_eq!(hosts("rabbit://u:p@a:5672,b:5673/v"), expected);
    }

    #[test]
    fn query_parameters_are_overrides_in_order() {
        let url = rabbit("rabbit://u:p@h/?ssl=1&heartbeat_timeout_threshold=5");
        assert_eq!(
            url.overrides,
            [
                ("ssl".into(), "1".into()),
                ("heartbeat_timeout_threshold".into(), "5".into())
            ]
        );
        assert_eq!(url.virtual_host, "/");
    }

    #[test]
    fn mistakes_are_named_without_the_password() {
        for (url, needle) in [
            ("magnum.example", "no scheme"),
            ("amqp://u:sesame@h", "`amqp://` is not supported"),
            ("kombu+memory://u:sesame@h", "`kombu+memory://`"),
            ("rabbit://u:sesame@h:port", "port `port` of host `h`"),
            ("rabbit://u:sesame@h:0", "port `0`"),
            ("rabbit://u:sesame@h:70000", "port `70000`"),
            ("rabbit://u:sesame@[::1", "bracket"),
            ("rabbit://u:sesame%ff@h", "password"),
            ("rabbit://u:sesame@h/?ssl", "`ssl` has no value"),
        ] {
            let text = TransportUrl::parse(url).unwrap_err().to_string();
            assert!(text.contains(needle), "{url}: {text}");
            assert!(!text.contains("sesame"), "{text}");
        }
    }

    #[test]
    fn a_fake_url_is_its_own_name() {
        assert_eq!(
            TransportUrl::parse("fake://a"),
            Ok(TransportUrl::Fake("fake://a".into()))
        );
    }
}
