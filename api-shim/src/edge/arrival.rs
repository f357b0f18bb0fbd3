//! What every request gets on its way in, and every answer on its way out.
//!
//! In: a request id of our own; the global id that another service has sent; how the client sees us
//! ([`Outside`]); a span, so that each line logged meanwhile names the request, in the trace that the client has sent. Out: the header
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
use magnum_telemetry::trace::{self, TraceContext};
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

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

/// Fields of a request that are known only further in, for its span and the access log.
#[derive(Debug)]
pub struct Noted {
    route: OnceLock<MatchedPath>,
    caller: OnceLock<()>,
    span: Span,
}

impl Noted {
    /// Records the caller.
    pub fn caller(&self, caller: &Caller) {
        // Set once per request; a second identity would be a mistake that must not hide the first.
        if self.caller.set(()).is_ok() {
            self.span.record(field::USER, caller.user_id.as_deref());
            self.span.record(field::PROJECT, caller.project_id.as_deref());
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
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let span = tracing::info_span!(
        "request",
        { field::SPAN_KIND } = "server",
        { field::REQUEST } = %ids.own,
        { field::GLOBAL_REQUEST } = ids.global.as_deref(),
        { field::TRACE } = Empty,
        { field::USER } = Empty,
        { field::PROJECT } = Empty,
        { field::CLUSTER } = Empty,
        { field::HTTP_METHOD } = method_name(&method),
        { field::HTTP_ROUTE } = Empty,
        { field::HTTP_STATUS } = Empty,
        { field::SPAN_STATUS } = Empty,
    );
    trace::begin(&span, sent_trace(request.headers()));
    let noted = Arc::new(Noted {
        route: OnceLock::new(),
        caller: OnceLock::new(),
        span: span.clone(),
    });
    let outside = request
        .extensions()
        .get::<Peers>()
        .map(|peers| Outside::new(request.headers(), peers, proxies.trusted));
    let client = outside.as_ref().map(|outside| outside.client.clone());
    let extensions = request.extensions_mut();
    extensions.insert(ids.clone());
    extensions.insert(Arc::clone(&noted));
    if let Some(outside) = outside {
        extensions.insert(outside);
    }
    async {
        let mut response = next.run(request).await;
        if let Ok(value) = HeaderValue::from_str(ids.own.as_str()) {
            response.headers_mut().insert(HEADER, value);
        }
        let took = began.elapsed();
        let route = noted.route.get().map_or("none", MatchedPath::as_str);
        let status = response.status();
        metric_definitions::request_answered(&method, route, status, took);
        noted.span.record(field::HTTP_ROUTE, route);
        noted.span.record(field::HTTP_STATUS, status.as_u16());
        trace::name(&noted.span, || format!("{} {route}", method_name(&method)));
        if status.is_server_error() {
            noted.span.record(field::SPAN_STATUS, "ERROR");
        }
        tracing::info!(
            { field::HTTP_PATH } = path,
            { field::HTTP_BYTES } = response.body().size_hint().exact(),
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            { field::CLIENT } = client.as_deref(),
            "request answered"
        );
        response
    }
    .instrument(span)
    .await
}

/// The trace that the client's request belongs to; headers that break the rules, or are repeated, count as none.
fn sent_trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(TraceContext::PARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else {
        return None;
    };
    let states = headers.get_all(TraceContext::STATE).iter();
    let states: Result<Vec<&str>, _> = states.map(HeaderValue::to_str).collect();
    TraceContext::parse(
        parent.to_str().ok()?,
        states.ok().map(|states| states.join(",")).as_deref(),
    )
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
    fn a_trace_is_taken_from_one_well_formed_header_and_joined_states() {
        const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let sent = |headers: &[(&'static str, &'static str)]| {
            let headers = headers
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            sent_trace(&headers.collect())
        };
        let both = sent(&[
            ("traceparent", PARENT),
            ("tracestate", "a=1"),
            ("tracestate", "b=2"),
        ])
        .unwrap();
        assert_eq!((both.parent().as_str(), both.state()), (PARENT, Some("a=1,b=2")));
        assert_eq!(sent(&[("traceparent", PARENT)]).unwrap().state(), None);
        assert_eq!(sent(&[("tracestate", "a=1")]), None);
        assert_eq!(sent(&[("traceparent", PARENT), ("traceparent", PARENT)]), None);
        assert_eq!(sent(&[("traceparent", "00-x")]), None);
    }

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
