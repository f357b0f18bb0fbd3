//! Browsers of other sites: `[cors]`, as oslo.middleware's `CORS` answers.
//!
//! Without an allowed origin there is nothing here. With one, OPTIONS is answered here with 200 whatever the path is,
//! before anybody asks who the client is; the headers that let a browser go on are there only when origin, method and
//! every header are allowed. Other answers get their headers when the origin is allowed.
//!
//! tower-http's layer is not used: it names every allowed method and header, whatever was asked for, and adds to
//! `Vary` what oslo does not.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::Response;
use magnum_config::CorsSection;

/// Headers that any request may carry.
const SIMPLE: [&str; 8] = [
    "Accept",
    "Accept-Language",
    "Content-Type",
    "Cache-Control",
    "Content-Language",
    "Expires",
    "Last-Modified",
    "Pragma",
];

/// The rules. Those of a section without an origin do nothing.
#[derive(Debug, Clone)]
pub struct Cors {
    rules: CorsSection,
}

impl Cors {
    /// The rules of `[cors]`.
    pub fn new(rules: &CorsSection) -> Self {
        Self { rules: rules.clone() }
    }

    fn is_active(&self) -> bool {
        !self.rules.allowed_origin.is_empty()
    }

    /// The origin to name in an answer; `None` when the request has none that is allowed.
    fn allowed<'a>(&self, request: &'a HeaderMap) -> Option<&'a str> {
        let origin = text(request, &header::ORIGIN)?;
        let allows = |origin: &str| self.rules.allowed_origin.iter().any(|allowed| allowed == origin);
        if allows(origin) {
            Some(origin)
        } else {
            allows("*").then_some("*")
        }
    }

    /// The headers of the answer to a preflight; none when it asks for too much.
    fn preflight(&self, request: &HeaderMap) -> HeaderMap {
        self.permitted(request).unwrap_or_default()
    }

    fn permitted(&self, request: &HeaderMap) -> Option<HeaderMap> {
        let origin = self.allowed(request)?;
        let method = text(request, &header::ACCESS_CONTROL_REQUEST_METHOD)?;
        if !self.rules.allow_methods.iter().any(|allowed| allowed == method) {
            return None;
        }
        let wanted: Vec<&str> = text(request, &header::ACCESS_CONTROL_REQUEST_HEADERS)
            .unwrap_or_default()
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        let may_be_sent = |name: &&str| {
            let allowed = self.rules.allow_headers.iter().map(String::as_str);
            allowed
                .chain(SIMPLE)
                .any(|allowed| allowed.eq_ignore_ascii_case(name))
        };
        if !wanted.iter().all(may_be_sent) {
            return None;
        }
        let mut headers = HeaderMap::new();
        set(&mut headers, header::VARY, "Origin");
        self.introduce(&mut headers, origin);
        if self.rules.max_age != 0 {
            set(
                &mut headers,
                header::ACCESS_CONTROL_MAX_AGE,
                &self.rules.max_age.to_string(),
            );
        }
        set(&mut headers, header::ACCESS_CONTROL_ALLOW_METHODS, method);
        if !wanted.is_empty() {
            set(
                &mut headers,
                header::ACCESS_CONTROL_ALLOW_HEADERS,
                &wanted.join(","),
            );
        }
        Some(headers)
    }

    /// Adds what an ordinary answer needs.
    fn decorate(&self, request: &HeaderMap, answer: &mut HeaderMap) {
        let Some(origin) = self.allowed(request) else {
            return;
        };
        let varies: Vec<&str> = answer
            .get_all(header::VARY)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .chain(["Origin"])
            .collect();
        let varies = varies.join(",");
        set(answer, header::VARY, &varies);
        self.introduce(answer, origin);
        if !self.rules.expose_headers.is_empty() {
            let exposed = self.rules.expose_headers.join(",");
            set(answer, header::ACCESS_CONTROL_EXPOSE_HEADERS, &exposed);
        }
    }

    fn introduce(&self, answer: &mut HeaderMap, origin: &str) {
        set(answer, header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        if self.rules.allow_credentials {
            set(answer, header::ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
        }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// What comes from the configuration may not be fit for a header; then the browser does without.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Middleware: answers preflight requests, and adds CORS headers to other responses.
pub async fn answer(State(cors): State<Arc<Cors>>, request: Request, next: Next) -> Response {
    if !cors.is_active() {
        return next.run(request).await;
    }
    let asked = request.headers().clone();
    if request.method() == Method::OPTIONS {
        let mut response = Response::new(Body::empty());
        *response.headers_mut() = cors.preflight(&asked);
        return response;
    }
    let mut response = next.run(request).await;
    cors.decorate(&asked, response.headers_mut());
    response
}
