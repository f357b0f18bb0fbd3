//! Checks and masking of URLs in options.
//!
//! The checks refuse what no later stage could use, so that a typing error is reported with its file and line;
//! the messaging and database modules still parse the URL themselves. No message quotes the URL: it may hold a
//! password.

/// The URL with every password in its host list, and secret-looking query parameters, replaced by `***`.
///
/// A password may itself contain `@`, `/` or `:` by mistake; masking therefore errs on the side of hiding: the
/// user part ends at the *last* `@` of a host entry.
pub fn masked(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let (rest, query) = match rest.rsplit_once('?') {
        // A `?` before the last `@` belongs to a password that was not percent-encoded.
        Some((before, query)) if !query.contains('@') => (before, Some(query)),
        _ => (rest, None),
    };
    let (hosts, path) = match rest.rfind('@') {
        Some(at) => match rest[at..].find('/') {
            Some(slash) => rest.split_at(at + slash),
            None => (rest, ""),
        },
        None => return format!("{scheme}://{rest}{}", query.map(masked_query).unwrap_or_default()),
    };
    let hosts = masked_hosts(hosts);
    format!(
        "{scheme}://{hosts}{path}{}",
        query.map(masked_query).unwrap_or_default()
    )
}

fn masked_hosts(hosts: &str) -> String {
    let pieces: Vec<&str> = hosts.split(',').collect();
    let last = pieces.iter().rposition(|piece| piece.contains('@')).unwrap_or(0);
    let mut within_password = false;
    let mut shown = Vec::with_capacity(pieces.len());
    for (index, piece) in pieces.into_iter().enumerate() {
        let credentials = piece.rsplit_once('@');
        // A piece without `@` before one that has it may be the start of a password with a comma in it.
        shown.push(
            match credentials.map(|(credentials, host)| (credentials.split_once(':'), credentials, host)) {
                Some((_, _, host)) if within_password => format!("***@{host}"),
                Some((Some((user, _)), _, host)) => format!("{user}:***@{host}"),
                Some((None, user, host)) => format!("{user}@{host}"),
                None if index < last => "***".to_owned(),
                None => piece.to_owned(),
            },
        );
        within_password = credentials.is_none();
    }
    shown.join(",")
}

fn masked_query(query: &str) -> String {
    let pair = |pair: &str| match pair.split_once('=') {
        Some((key, _)) if is_secret_name(key) => format!("{key}=***"),
        _ => pair.to_owned(),
    };
    format!("?{}", query.split('&').map(pair).collect::<Vec<_>>().join("&"))
}

/// Whether an option or parameter of this name usually holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "secret", "token", "hmac_keys"]
        .iter()
        .any(|word| name.contains(word))
}

/// Checks a messaging URL: known scheme, and each host with a valid port.
pub(super) fn check_broker(url: &str) -> Result<(), String> {
    let rest = match url.split_once("://") {
        // oslo takes `kombu` as another word for `rabbit`.
        Some(("rabbit" | "kombu" | "fake", rest)) => rest,
        Some((scheme, _)) => {
            return Err(format!(
                "scheme {scheme:?} is not supported; use rabbit:// or fake://"
            ));
        }
        None => return Err("is not a URL; write rabbit://user:password@host:5672/virtual_host".into()),
    };
    check_hosts(rest)
}

/// Checks a database URL: known dialect (a `+driver` of SQLAlchemy is ignored) and a valid port.
pub(super) fn check_database(url: &str) -> Result<(), String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err("is not a URL; write mysql://user:password@host/magnum".into());
    };
    match scheme.split('+').next() {
        Some("sqlite") => Ok(()),
        Some("mysql" | "mariadb" | "postgresql" | "postgres") => check_hosts(rest),
        _ => Err(format!(
            "dialect {scheme:?} is not supported; use mysql, postgresql or sqlite"
        )),
    }
}

/// Checks an `http` or `https` URL.
pub(super) fn check_http(url: &str) -> Result<(), String> {
    match url.split_once("://") {
        Some(("http" | "https", rest)) if !rest.is_empty() && !rest.starts_with('/') => check_hosts(rest),
        _ => Err("is not an http or https URL".into()),
    }
}

fn check_hosts(rest: &str) -> Result<(), String> {
    let hosts = rest.split(['/', '?']).next().unwrap_or("");
    for entry in hosts.split(',') {
        let host = entry.rsplit_once('@').map_or(entry, |(_, host)| host);
        // An IPv6 address stands in brackets; its port comes after them.
        let port = match host.strip_prefix('[') {
            Some(inner) => inner
                .split_once(']')
                .ok_or("has an IPv6 address without its closing bracket")?
                .1
                .strip_prefix(':'),
            None => host.split_once(':').map(|(_, port)| port),
        };
        if let Some(port) = port.filter(|port| !port.is_empty())
            && !port.parse::<u16>().is_ok_and(|port| port > 0)
        {
            return Err(
                "has a host whose port is not a number from 1 to 65535; percent-encode @ : / ? and , in passwords"
                    .into(),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_password_of_a_host_list_is_masked() {
        assert_eq!(
            masked("rabbit://u:one@h1:5672,u:two@h2:5672//vhost?ssl=1"),
            "rabbit://u:***@h1:5672,u:***@h2:5672//vhost?ssl=1"
        );
    }

    #[test]
    fn a_password_with_reserved_characters_does_not_leak() {
        for url in [
            "mysql://u:p@ss/w:rd@h/db",
            "mysql://u:pa?s@h/db",
            "rabbit://u:hun,ter/2@h/",
        ] {
            let shown = masked(url);
            for leak in ["p@ss", "w:rd", "pa?s", "hun", "ter"] {
                assert!(!shown.contains(leak), "{shown}");
            }
        }
    }

    #[test]
    fn secret_query_parameters_are_masked() {
        assert_eq!(
            masked("mysql://h/db?ssl_key_password=x&charset=utf8"),
            "mysql://h/db?ssl_key_password=***&charset=utf8"
        );
    }

    #[test]
    fn urls_without_secrets_are_left_alone() {
        for url in [
            "rabbit://",
            "sqlite:////var/lib/magnum/magnum.sqlite",
            "http://h:5000/v3",
            "mysql://u@h/db",
            "x",
        ] {
            assert_eq!(masked(url), url);
        }
    }

    #[test]
    fn broker_urls_are_checked_without_being_quoted() {
        assert_eq!(check_broker("rabbit://u:p@h1:5672,u:p@[::1]:5672//"), Ok(()));
        assert_eq!(check_broker("rabbit://"), Ok(()));
        assert_eq!(check_broker("fake://name"), Ok(()));
        assert!(check_broker("kafka://h").unwrap_err().contains("kafka"));
        assert!(
            !check_broker("rabbit://u:hunter2@h:port/")
                .unwrap_err()
                .contains("hunter2")
        );
        assert!(check_broker("rabbit://u:p@h:99999/").is_err());
        assert!(check_broker("rabbit://u:p@[::1/").is_err());
    }

    #[test]
    fn database_urls_may_name_a_python_driver() {
        assert_eq!(
            check_database("mysql+pymysql://u:p@h:3306/magnum?charset=utf8mb4"),
            Ok(())
        );
        assert_eq!(check_database("sqlite:///:memory:"), Ok(()));
        assert!(check_database("oracle://h").is_err());
        assert!(check_database("/var/lib/x").is_err());
    }
}
