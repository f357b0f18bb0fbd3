//! How a client sees the service, and who the client is, when there are proxies between.
//!
//! `[oslo_middleware] enable_proxy_headers_parsing` makes forwarding headers count. The results are those of
//! oslo.middleware's `HTTPProxyToWSGI` before webob's `application_url`, its oddities included: of `Forwarded` the
//! first element counts and its quotes stay; of `X-Forwarded-Proto`, `-Host` and `-For`, which count only without
//! `Forwarded`, the whole text does; `X-Forwarded-Prefix` always counts. One difference: a slash at the end of the
//! prefix does not become a second one in links.

use std::net::{IpAddr, SocketAddr};

use axum::http::HeaderMap;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::connections::Peers;

/// A request as seen from outside of the proxies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// `scheme://host`, with the prefix, without a slash at the end: what links begin with.
    pub base: String,
    /// The client's address, as far as the proxies tell it. For people: a client can send what it likes, and
    /// a proxy may append to it.
    pub client: String,
    /// The address that the nearest proxy has seen: what a client cannot choose.
    pub nearest: String,
}

/// What webob leaves unquoted in a path, besides letters and digits.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@')
    .remove(b'_')
    .remove(b'.')
    .remove(b'-');

impl Outside {
    /// By the headers of a request and the addresses of its connection.
    pub fn new(headers: &HeaderMap, peers: &Peers, trusted: bool) -> Self {
        let header = |name: &str| joined(headers, name);
        let proxy = |name: &str| header(name).filter(|text| trusted && !text.is_empty());
        let (proto, host, client, nearest) = match proxy("forwarded") {
            Some(list) => {
                let element = |element: Option<&str>, key| element.and_then(|text| parameter(text, key));
                let first = |key| element(list.split(',').next(), key);
                let last = element(list.rsplit(',').next(), "for");
                (first("proto"), first("host"), first("for"), last)
            }
            None => {
                let client = proxy("x-forwarded-for");
                let last = client.as_deref().and_then(|list| list.rsplit(',').next());
                let last = last.map(|text| text.trim().to_owned());
                (
                    proxy("x-forwarded-proto"),
                    proxy("x-forwarded-host"),
                    client,
                    last,
                )
            }
        };
        let ours = if peers.tls { "https" } else { "http" };
        let scheme = proto.unwrap_or_else(|| ours.to_owned());
        let host = host
            .or_else(|| header("host").filter(|host| !host.is_empty()))
            .unwrap_or_else(|| peers.local.to_string());
        let prefix = proxy("x-forwarded-prefix").unwrap_or_default();
        let prefix = utf8_percent_encode(prefix.trim_end_matches('/'), PATH);
        let own_address = peers.client.ip().to_string();
        Self {
            base: format!("{scheme}://{}{prefix}", without_default_port(&scheme, &host)),
            client: client.unwrap_or_else(|| own_address.clone()),
            nearest: nearest.map_or(own_address, |text| address(&text)),
        }
    }
}

/// The values of a header as one text, as WSGI servers hand them on.
fn joined(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Vec<_> = headers
        .get_all(name)
        .iter()
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// The value of a parameter of one element of `Forwarded`; the last one counts.
fn parameter(element: &str, key: &str) -> Option<String> {
    element
        .split(';')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case(key))
        .map(|(_, value)| value.trim().to_owned())
        .next_back()
        .filter(|value| !value.is_empty())
}

fn without_default_port<'a>(scheme: &str, host: &'a str) -> &'a str {
    match (scheme, host.split_once(':')) {
        ("https", Some((name, "443"))) | ("http", Some((name, "80"))) => name,
        // Nothing after the colon: webob leaves the colon out.
        (_, Some((name, ""))) => name,
        _ => host,
    }
}

/// The address alone: neither quotes nor brackets nor a port, which would differ from connection to connection.
fn address(text: &str) -> String {
    let bare = text.trim_matches('"');
    let unbracketed = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let ip = unbracketed
        .unwrap_or(bare)
        .parse::<IpAddr>()
        .or_else(|_| bare.parse::<SocketAddr>().map(|socket| socket.ip()));
    ip.map_or_else(|_| bare.to_owned(), |ip| ip.to_canonical().to_string())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn seen(headers: &[(&'static str, &'static str)], trusted: bool) -> Outside {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let peers = Peers {
            client: "192.0.2.1:50000".parse().unwrap(),
            local: "10.0.0.1:9511".parse().unwrap(),
            tls: false,
        };
        Outside::new(&headers, &peers, trusted)
    }

    #[test]
    fn forwarding_headers_count_only_from_trusted_proxies() {
        let headers = [
            ("host", "api:9511"),
            ("x-forwarded-proto", "https"),
            ("x-forwarded-host", "cloud.example:443"),
            ("x-forwarded-prefix", "/magnum/"),
            ("x-forwarded-for", "203.0.113.9"),
        ];
        let plain = seen(&headers, false);
        assert_eq!((&*plain.base, &*plain.client), ("http://api:9511", "192.0.2.1"));
        let told = seen(&headers, true);
        assert_eq!(
            (&*told.base, &*told.client),
            ("https://cloud.example/magnum", "203.0.113.9")
        );
        assert_eq!(seen(&[], true).base, "http://10.0.0.1:9511");
    }

    #[test]
    fn client_address_comes_from_the_nearest_proxy() {
        let claimed = seen(&[("x-forwarded-for", "1.1.1.1, 203.0.113.9")], true);
        assert_eq!(claimed.client, "1.1.1.1, 203.0.113.9");
        assert_eq!(claimed.nearest, "203.0.113.9");
        let claimed = seen(&[("forwarded", "for=1.1.1.1, for=\"[2001:db8::9]:4711\"")], true);
        assert_eq!((&*claimed.client, &*claimed.nearest), ("1.1.1.1", "2001:db8::9"));
    }
}
