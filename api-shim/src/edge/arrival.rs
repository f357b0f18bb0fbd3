//! What every request gets on its way in, and every answer on its way out.
//!
//! In: a request id of our own; the global id that another service has sent; how the client sees us
//! ([`Outside`]); a span, so that each line logged meanwhile names the request. Out: the header
//! `x-openstack-request-id`, one line in the log, and the metrics.
//!
//! The line names the path without its query, and no header: neither tokens nor secrets in a query get into it.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::Response;
use http_body::Body as _;
use magnum_common::context::Caller;
use magnum_common::ids::RequestId;
use magnum_telemetry::field;
use tracing::Instrument as _;

use super::forwarded::Outside;
use crate::connections::Peers;
use crate::metric_definitions;

const HEADER: HeaderName = HeaderName::from_static("x-openstack-request-id");

/// The ids of a request.
#[derive(Debug, Clone)]
pub struct Ids {
    /// Generated here.
    pub own: RequestId,
    /// The one that another service has given the whole undertaking.
    pub global: Option<String>,
}

impl Ids {
    fn new(headers: &HeaderMap) -> Self {
        let sent = headers.get(HEADER).and_then(|value| value.to_str().ok());
        Self {
            own: RequestId::random(),
            global: sent.filter(|id| is_request_id(id)).map(str::to_owned),
        }
    }
}

/// `req-` and a uuid in small letters, as oslo.middleware wants it.
fn is_request_id(text: &str) -> bool {
    text.strip_prefix("req-").is_some_and(|rest| {
        uuid::Uuid::try_parse(rest).is_ok_and(|uuid| uuid.hyphenated().to_string() == rest)
    })
}

/// Fields recorded for the access log, by what runs inside of this middleware.
#[derive(Debug, Default)]
pub struct Noted {
    route: OnceLock<MatchedPath>,
    user: OnceLock<String>,
    project: OnceLock<String>,
}

impl Noted {
    /// Records the caller.
    pub fn caller(&self, caller: &Caller) {
        // Set once per request; a second identity would be a mistake that must not hide the first.
        for (cell, id) in [(&self.user, &caller.user_id), (&self.project, &caller.project_id)] {
            if let Some(id) = id {
                let _ = cell.set(id.clone());
            }
        }
    }
}

/// Middleware inside of the router: which route it is.
pub async fn note_route(request: Request, next: Next) -> Response {
    let extensions = request.extensions();
    if let (Some(noted), Some(route)) = (extensions.get::<Arc<Noted>>(), extensions.get::<MatchedPath>()) {
        let _ = noted.route.set(route.clone());
    }
    next.run(request).await
}

/// Whether forwarding headers of proxies count.
#[derive(Debug, Clone, Copy)]
pub struct Proxies {
    /// By `[oslo_middleware] enable_proxy_headers_parsing`.
    pub trusted: bool,
}

/// Middleware around all but health.
pub async fn pass(State(proxies): State<Proxies>, mut request: Request, next: Next) -> Response {
    let began = Instant::now();
    let ids = Ids::new(request.headers());
    let noted = Arc::new(Noted::default());
    let outside = request
        .extensions()
        .get::<Peers>()
        .map(|peers| Outside::new(request.headers(), peers, proxies.trusted));
    let client = outside.as_ref().map(|outside| outside.client.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let extensions = request.extensions_mut();
    extensions.insert(ids.clone());
    extensions.insert(Arc::clone(&noted));
    if let Some(outside) = outside {
        extensions.insert(outside);
    }
    let span = tracing::info_span!(
        "request",
        { field::REQUEST } = %ids.own,
        { field::GLOBAL_REQUEST } = ids.global.as_deref(),
    );
    async {
        let mut response = next.run(request).await;
        if let Ok(value) = HeaderValue::from_str(ids.own.as_str()) {
            response.headers_mut().insert(HEADER, value);
        }
        let took = began.elapsed();
        let route = noted.route.get().map_or("none", MatchedPath::as_str);
        let status = response.status();
        metric_definitions::request_answered(&method, route, status, took);
        tracing::info!(
            { field::HTTP_METHOD } = method_name(&method),
            { field::HTTP_PATH } = path,
            { field::HTTP_ROUTE } = route,
            { field::HTTP_STATUS } = status.as_u16(),
            { field::HTTP_BYTES } = response.body().size_hint().exact(),
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            { field::USER } = noted.user.get().map(String::as_str),
            { field::PROJECT } = noted.project.get().map(String::as_str),
            { field::CLIENT } = client.as_deref(),
            "request answered"
        );
        response
    }
    .instrument(span)
    .await
}

/// A client may invent a method that is as long as a head may be.
fn method_name(method: &Method) -> &str {
    let name = method.as_str();
    name.get(..16).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_request_ids_of_oslos_form_are_kept() {
        assert!(is_request_id("req-3f6f5a51-0d1b-4f0e-9a3c-7d2f1b0a9c8e"));
        for other in [
            "3f6f5a51-0d1b-4f0e-9a3c-7d2f1b0a9c8e",
            "req-3F6F5A51-0D1B-4F0E-9A3C-7D2F1B0A9C8E",
            "req-3f6f5a510d1b4f0e9a3c7d2f1b0a9c8e",
            "req-x",
        ] {
            assert!(!is_request_id(other), "{other}");
        }
    }
}
