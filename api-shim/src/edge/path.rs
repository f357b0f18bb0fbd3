//! The one form of a path, before routing, and the method that the client has sent.
//!
//! A path that has letters, digits or `-._~` percent-encoded is the same path (RFC 3986, section 6.2.2.2), so it is routed by
//! what they stand for. What else is encoded stays so: a slash in it is a part of a name.

use std::borrow::Cow;

use axum::extract::Request;
use axum::http::Method;
use axum::http::uri::{PathAndQuery, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Gives a path its one form: single slashes, none at the end, and `/v1` in front unless it is there, as Magnum routes
/// (`/clusters` is `/v1/clusters`, which makes `bookmark` links work; a catalog whose endpoint ends with a slash makes
/// clients ask for `/v1//clusters`).
///
/// HEAD is not served under `/v1`, though the router would take it for a GET: it is routed as a method that no
/// route has, so that it gets the router's own 405.
pub fn rewrite(mut request: Request) -> Request {
    let uri = request.uri();
    if let Some(path) = routed_path(uri.path()) {
        let path_and_query = match uri.query() {
            Some(query) => format!("{path}?{query}"),
            None => path,
        };
        if let Ok(path_and_query) = path_and_query.parse::<PathAndQuery>() {
            *request.uri_mut() = Uri::from(path_and_query);
        }
    }
    if request.method() == Method::HEAD && request.uri().path().starts_with("/v1") {
        *request.method_mut() = Method::OPTIONS;
        request.extensions_mut().insert(AsHead);
    }
    request
}

#[derive(Debug, Clone, Copy)]
struct AsHead;

/// The method that the client has sent.
pub fn method_sent(request: &Request) -> Method {
    match request.extensions().get::<AsHead>() {
        Some(AsHead) => Method::HEAD,
        None => request.method().clone(),
    }
}

/// What RFC 3986 calls unreserved need not be encoded.
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The path to route by; `None` when it stays as it is.
fn routed_path(path: &str) -> Option<String> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    let mut parts = parts.map(one_form).peekable();
    let mut routed = match parts.peek().map(Cow::as_ref) {
        None => "/".to_owned(),
        Some("v1") => String::with_capacity(path.len()),
        Some(_) => "/v1".to_owned(),
    };
    for part in parts {
        routed.push('/');
        routed.push_str(&part);
    }
    (routed != path).then_some(routed)
}

/// One part with nothing encoded that need not be. One that stands for no text stays as it is, and is refused later.
fn one_form(part: &str) -> Cow<'_, str> {
    if !part.contains('%') {
        return Cow::Borrowed(part);
    }
    match percent_decode_str(part).decode_utf8() {
        Ok(text) => Cow::Owned(utf8_percent_encode(&text, &RESERVED).to_string()),
        Err(_) => Cow::Borrowed(part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_one_form() {
        for (path, routed) in [
            ("/", "/"),
            ("", "/"),
            ("//", "/"),
            ("/v1", "/v1"),
            ("/v1/", "/v1"),
            ("/v1/clusters/", "/v1/clusters"),
            ("/clusters", "/v1/clusters"),
            ("/clusters/x/", "/v1/clusters/x"),
            ("/v2", "/v1/v2"),
            ("//v1", "/v1"),
            ("/v1//clusters", "/v1/clusters"),
            ("//clusters///x//", "/v1/clusters/x"),
            ("/v1.json", "/v1/v1.json"),
            ("/%76%31/%63lusters", "/v1/clusters"),
            ("/v1/clusters/a%2Fb%2fc", "/v1/clusters/a%2Fb%2Fc"),
            ("/v1/clusters/%C3%BC%25%20", "/v1/clusters/%C3%BC%25%20"),
            ("/v1/clusters/%zz", "/v1/clusters/%25zz"),
            ("/v1/clusters/%ff", "/v1/clusters/%ff"),
        ] {
            assert_eq!(routed_path(path).as_deref().unwrap_or(path), routed, "{path}");
        }
    }

    #[test]
    fn a_rewritten_request_keeps_its_query() {
        let request = Request::builder()
            .uri("/clusters/?limit=1&x=%20")
            .body(axum::body::Body::empty())
            .unwrap();
        assert_eq!(rewrite(request).uri(), "/v1/clusters?limit=1&x=%20");
    }

    #[test]
    fn head_is_not_taken_for_a_get_under_v1() {
        let rewritten = |path: &str| {
            let request = Request::builder().method(Method::HEAD).uri(path);
            rewrite(request.body(axum::body::Body::empty()).unwrap())
        };
        let request = rewritten("/clusters");
        assert_ne!(request.method(), Method::HEAD);
        assert_eq!(method_sent(&request), Method::HEAD);
        assert_eq!(rewritten("/").method(), Method::HEAD);
    }
}
