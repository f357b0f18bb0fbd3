//! Errors as HTTP answers, in the one shape that every client of Magnum reads.
//!
//! A handler returns [`ApiFault`]; the middleware [`crate::edge::render::render`] gives it its body, because only there the request
//! id and the `Accept` header are at hand. Which error becomes which fault is decided by the `From`
//! implementations below and in the modules of this one, and nowhere else. A fault keeps the error that it was made
//! from, which that middleware logs, once, in the request's span.
//!
//! Guarantee: every 4xx and 5xx has a JSON body with exactly one element in `errors` whose `title` and `detail`
//! are texts made for users. SQL, paths and internals stay in the log. Differences from Magnum: `request_id` is
//! filled, and errors of the framework (404 of an unknown route, 405, 406) always have their texts.

mod call;
mod cloud;
mod driver_call;
mod publish;
mod store;

use std::error::Error;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use magnum_common::error::Fault;
use magnum_common::panic;
use magnum_telemetry::field;
use serde_json::{Value, json};

use crate::microversion::{self, Version};

/// Where the fault was found: it decides `code` in the body, and whether the response carries version headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A route's handler.
    Controller,
    /// What stands before the handlers: routing, negotiation, the shape of the request.
    Framework,
    /// The version that is spoken has no such route: reported as by the framework, with version headers.
    Version,
}

/// One failure, on its way to the client.
#[derive(Debug, Clone)]
pub struct ApiFault {
    status: StatusCode,
    origin: Origin,
    detail: String,
    /// Set for a version that does not exist: the body has another shape.
    out_of_range: Option<Version>,
    /// The error behind it: for the log, never for the client.
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ApiFault {
    /// A failure that a handler found.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            origin: Origin::Controller,
            detail: detail.into(),
            out_of_range: None,
            source: None,
        }
    }

    /// A failure found before any handler.
    pub fn framework(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            origin: Origin::Framework,
            ..Self::new(status, detail)
        }
    }

    /// 406 for a microversion that cannot be served.
    pub fn version(rejection: &microversion::Rejection) -> Self {
        let text = match rejection {
            microversion::Rejection::Service => {
                "Invalid service type for OpenStack-API-Version header".to_owned()
            }
            microversion::Rejection::Syntax => "Invalid value for OpenStack-API-Version header".to_owned(),
            microversion::Rejection::OutOfRange(version) => {
                return Self {
                    out_of_range: Some(*version),
                    ..Self::framework(
                        StatusCode::NOT_ACCEPTABLE,
                        microversion::out_of_range_text(*version),
                    )
                };
            }
        };
        Self::framework(StatusCode::NOT_ACCEPTABLE, text)
    }

    /// 406: `what` came after `spoken`.
    pub fn later(spoken: Version, what: &str) -> Self {
        Self {
            origin: Origin::Version,
            ..Self::new(
                StatusCode::NOT_ACCEPTABLE,
                format!(
                    "Version {spoken} was requested but the requested API {what} is not supported for this version."
                ),
            )
        }
    }

    /// The same fault with the error that it was made from, which is logged with it.
    fn caused_by(self, error: impl Error + Send + Sync + 'static) -> Self {
        Self {
            source: Some(Arc::new(error)),
            ..self
        }
    }

    /// Logs the error that it was made from, if there is one. A refusal that the client can act on has none.
    pub fn log(&self) {
        let Some(error) = &self.source else {
            return;
        };
        let status = self.status.as_u16();
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            tracing::error!({ field::HTTP_STATUS } = status, error = %error, "the request failed");
        } else {
            tracing::warn!({ field::HTTP_STATUS } = status, error = %error, "the request failed");
        }
    }

    /// The same failure under another status.
    pub fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The text for the client.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Where it was found.
    pub fn origin(&self) -> Origin {
        self.origin
    }

    /// The whole answer to the request with this id and method.
    pub fn rendered(&self, request_id: &str, method: &Method) -> Response {
        let body = if *method == Method::HEAD {
            Body::empty()
        } else {
            Body::from(self.body(request_id).to_string())
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        if matches!(
            self.status,
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT
        ) {
            // The rest of the body is not read as the next request.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response
    }

    /// The body, for the request with this id.
    fn body(&self, request_id: &str) -> Value {
        if self.out_of_range.is_some() {
            return json!({"errors": [{
                "request_id": request_id,
                "code": "magnum.microversion-unsupported",
                "status": self.status.as_u16(),
                "title": "Requested microversion is unsupported",
                "detail": self.detail,
                "description": self.detail,
                "max_version": Version::MAX.to_string(),
                "min_version": Version::MIN.to_string(),
                "links": [{
                    "rel": "help",
                    "href": "http://docs.openstack.org/api-guide/compute/microversions.html",
                }],
            }]});
        }
        let code = match self.origin {
            Origin::Framework | Origin::Version => "",
            Origin::Controller if self.status.is_server_error() => "server",
            Origin::Controller => "client",
        };
        let detail = if self.detail.is_empty() {
            self.status.canonical_reason().unwrap_or_default()
        } else {
            &self.detail
        };
        let title = match self.origin {
            Origin::Framework | Origin::Version => self.status.canonical_reason().unwrap_or(detail),
            // Ends before the first dot, wherever that is: clients print it and compare it.
            Origin::Controller => detail.split('.').next().unwrap_or(detail),
        };
        json!({"errors": [{
            "request_id": request_id,
            "code": code,
            "status": self.status.as_u16(),
            "title": title,
            "detail": detail,
            "links": [],
        }]})
    }
}

impl IntoResponse for ApiFault {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if let Some(version) = self.out_of_range {
            microversion::announce(response.headers_mut(), version);
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Fault> for ApiFault {
    fn from(fault: Fault) -> Self {
        let status = StatusCode::from_u16(fault.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, fault.message)
    }
}

impl ApiFault {
    /// 500 with a fixed text: what went wrong is in the log, under the request's id.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "An unexpected error occurred. The service's log tells more under this request id.",
        )
    }
}

/// The answer to a path that no route has.
pub async fn not_found() -> ApiFault {
    ApiFault::framework(StatusCode::NOT_FOUND, "")
}

/// The answer to a method that the route does not have. The router adds `Allow`.
pub async fn method_not_allowed() -> ApiFault {
    ApiFault::framework(StatusCode::METHOD_NOT_ALLOWED, "")
}

/// The answer after a panic in a handler: a fault like any other.
#[expect(clippy::needless_pass_by_value, reason = "the catching layer hands it over")]
pub fn panicked(panic: Box<dyn std::any::Any + Send + 'static>) -> Response {
    tracing::error!(
        panic = panic::message(panic.as_ref()),
        "a request handler panicked"
    );
    ApiFault::internal().into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_ends_before_the_first_dot() {
        let fault = ApiFault::from(Fault::cluster_not_found("x"));
        let body = fault.body("req-1");
        assert_eq!(
            body,
            json!({"errors": [{
                "request_id": "req-1", "code": "client", "status": 404,
                "title": "Cluster x could not be found",
                "detail": "Cluster x could not be found.", "links": [],
            }]})
        );
    }

    #[test]
    fn faults_of_the_framework_have_an_empty_code_and_the_reason_as_text() {
        let body = ApiFault::framework(StatusCode::METHOD_NOT_ALLOWED, "").body("");
        assert_eq!(body["errors"][0]["code"], "");
        assert_eq!(body["errors"][0]["title"], "Method Not Allowed");
        assert_eq!(body["errors"][0]["detail"], "Method Not Allowed");
    }

    #[test]
    fn server_errors_have_a_code_of_their_own_and_no_details() {
        let body = ApiFault::internal().body("req-2");
        assert_eq!(body["errors"][0]["code"], "server");
        assert_eq!(body["errors"][0]["status"], 500);
    }
}
