//! Health, for load balancers: `[healthcheck] path` and everything below it, as oslo.middleware's application answers.
//!
//! 200 when all `[healthcheck] backends` are well, else 503, with each one's reason as text, HTML or JSON by `Accept`
//! (no type of ours: text, never a 406); HEAD gets 204. It stands before everything else: no identity, no request id,
//! no limit. A hanging database or broker costs an answer two seconds at most, and a storm of questions is one
//! question to them ([`probe`]).
//!
//! By default only the file `/etc/magnum/healthcheck_disable` is looked at, which takes a host out of rotation: an
//! outage of database or broker must not make a balancer drop every API at once. Differs from oslo: while the service
//! is about to stop the answer is 503 `STOPPING`; details are ours (no threads of Python); requests that are not to be
//! answered (`allowed_source_ranges`, `ignore_proxied_requests`) get 404 instead of an empty 500.

mod accept;
mod checks;
pub mod probe;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use ipnet::IpNet;
use magnum_common::clock;
use magnum_config::HealthcheckSection;
use magnum_telemetry::field;
use maud::{DOCTYPE, html};
use serde_json::{Value, json};

use self::accept::Form;
pub use self::checks::{Check, Finding};
pub(crate) use self::checks::{broker_probe, database_probe};
use crate::connections::Peers;

/// The health check, as `[healthcheck]` configures it.
pub struct Health {
    path: String,
    checks: Vec<Check>,
    detailed: bool,
    ranges: Vec<IpNet>,
    ignores_proxied: bool,
    draining: Arc<AtomicBool>,
    host: String,
}

impl Health {
    /// By `[healthcheck]`. `draining` is set once shutdown has begun.
    pub fn new(
        section: &HealthcheckSection,
        checks: Vec<Check>,
        draining: Arc<AtomicBool>,
        host: &str,
    ) -> Self {
        Self {
            path: section.path.trim_end_matches('/').to_owned(),
            checks,
            detailed: section.detailed,
            ranges: section.allowed_source_ranges.clone(),
            ignores_proxied: section.ignore_proxied_requests,
            draining,
            host: host.to_owned(),
        }
    }

    fn is_asked_at(&self, path: &str) -> bool {
        path.strip_prefix(&self.path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn may_ask(&self, request: &Request) -> bool {
        let peers = request.extensions().get::<Peers>();
        let address = peers.map(|peers| peers.client.ip().to_canonical());
        let from_here = self.ranges.is_empty()
            || address.is_some_and(|address| self.ranges.iter().any(|range| range.contains(&address)));
        from_here && !(self.ignores_proxied && came_through_a_proxy(request.headers()))
    }

    /// What every check found, in the order of the option.
    async fn findings(&self, port: u16) -> Vec<Finding> {
        if self.draining.load(Ordering::Relaxed) {
            return vec![Finding::bad(
                "STOPPING",
                "The service was told to stop".to_owned(),
            )];
        }
        let asked = self.checks.iter().map(|check| check.ask(port));
        futures::future::join_all(asked).await
    }

    fn answer(&self, method: &Method, headers: &HeaderMap, findings: &[Finding]) -> Response {
        let healthy = findings.iter().all(|finding| finding.available);
        let status = match (healthy, method == Method::HEAD) {
            (true, true) => StatusCode::NO_CONTENT,
            (true, false) => StatusCode::OK,
            (false, _) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let (form, body) = if method == Method::HEAD {
            ("text/plain; charset=UTF-8", String::new())
        } else {
            match accept::form(headers) {
                Form::Text => ("text/plain; charset=UTF-8", reasons(findings).join("\n")),
                Form::Html => ("text/html; charset=UTF-8", self.page(findings)),
                Form::Json => ("application/json", self.document(findings)),
            }
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        if status != StatusCode::NO_CONTENT {
            let form = HeaderValue::from_static(form);
            response.headers_mut().insert(header::CONTENT_TYPE, form);
        }
        response
    }

    fn document(&self, findings: &[Finding]) -> String {
        let mut document = json!({"detailed": self.detailed, "reasons": reasons(findings)});
        if self.detailed {
            let of_one = |finding: &Finding| json!({"class": "HealthcheckResult", "details": finding.details, "reason": finding.reason});
            document["reasons"] = findings.iter().map(of_one).collect();
            document["hostname"] = json!(self.host);
            document["now"] = json!(clock::utc_now().naive_utc().to_string());
            document["version"] = json!(env!("CARGO_PKG_VERSION"));
        }
        pretty(&document)
    }

    fn page(&self, findings: &[Finding]) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head { title { "Healthcheck Status" } }
                body {
                    @if self.detailed {
                        h1 { "Server status" }
                        p { "Host " (self.host) ", magnum-api " (env!("CARGO_PKG_VERSION")) }
                    }
                    h2 { "Result of " (findings.len()) " checks:" }
                    table border="1" {
                        tr { th { "Reason" } @if self.detailed { th { "Details" } } }
                        @for finding in findings {
                            tr { td { (finding.reason) } @if self.detailed { td { (finding.details) } } }
                        }
                    }
                }
            }
        }
        .into_string()
    }
}

fn reasons(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.reason.as_str()).collect()
}

/// Indented by four and sorted, as Python's `json.dumps` does it.
fn pretty(document: &Value) -> String {
    let mut document = document.clone();
    document.sort_all_objects();
    let mut text = Vec::new();
    let form = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut writer = serde_json::Serializer::with_formatter(&mut text, form);
    match serde::Serialize::serialize(&document, &mut writer) {
        Ok(()) => String::from_utf8_lossy(&text).into_owned(),
        Err(_) => document.to_string(),
    }
}

fn came_through_a_proxy(headers: &HeaderMap) -> bool {
    ["", "-proto", "-host", "-for", "-prefix"].iter().any(|ending| {
        headers
            .get(format!("x-forwarded{ending}"))
            .is_some_and(|value| !value.is_empty())
    })
}

/// Middleware around everything: answers what is asked of health.
pub async fn answer(State(health): State<Arc<Health>>, request: Request, next: Next) -> Response {
    if !health.is_asked_at(request.uri().path()) {
        return next.run(request).await;
    }
    if !health.may_ask(&request) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return response;
    }
    let port = request
        .extensions()
        .get::<Peers>()
        .map_or(0, |peers| peers.local.port());
    let findings = health.findings(port).await;
    let response = health.answer(request.method(), request.headers(), &findings);
    tracing::debug!(
        { field::HTTP_STATUS } = response.status().as_u16(),
        reasons = reasons(&findings).join(", "),
        "health was asked for"
    );
    response
}
