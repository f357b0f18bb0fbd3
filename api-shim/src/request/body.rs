//! The body of a request.

use std::sync::Arc;

use axum::extract::{FromRequest, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http_body::Body as _;
use serde_json::Value;

use super::json;
use crate::faults::ApiFault;
use crate::state::App;
use crate::validation::python::dictionary;

/// A body, read as far as its bytes. Which argument it is, the handler knows.
#[derive(Debug)]
pub struct Body {
    content_type: Option<String>,
    bytes: Bytes,
}

impl FromRequest<Arc<App>> for Body {
    type Rejection = ApiFault;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiFault> {
        let content_type = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .map(|value| {
                value
                    .split(';')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_ascii_lowercase()
            });
        let reading = read(request.into_body(), app.max_body_bytes);
        match tokio::time::timeout(app.client_timeout, reading).await {
            Ok(Ok(Some(bytes))) => Ok(Self { content_type, bytes }),
            Ok(Ok(None)) => Err(ApiFault::framework(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The body is larger than [oslo_middleware] max_request_body_size allows",
            )),
            Ok(Err(_)) => Err(ApiFault::framework(
                StatusCode::BAD_REQUEST,
                "The body could not be read",
            )),
            Err(_) => Err(ApiFault::framework(
                StatusCode::REQUEST_TIMEOUT,
                "The body did not arrive within [api] client_timeout",
            )),
        }
    }
}

/// The whole body; `None` when it is larger than `limit`. What is beyond is left to the connection, which sees to it
/// that a client that is still sending gets its answer.
async fn read(body: axum::body::Body, limit: usize) -> Result<Option<Bytes>, axum::Error> {
    if body.size_hint().lower() > limit as u64 {
        return Ok(None);
    }
    let mut stream = body.into_data_stream();
    let mut kept = BytesMut::new();
    while let Some(part) = stream.next().await {
        let part = part?;
        if part.len() > limit.saturating_sub(kept.len()) {
            return Ok(None);
        }
        kept.extend_from_slice(&part);
    }
    Ok(Some(kept.freeze()))
}

const JSON_TYPES: [&str; 3] = ["application/json", "text/javascript", "application/javascript"];

impl Body {
    /// The body as JSON; `argument` is its name in error texts.
    ///
    /// # Errors
    /// What the client is told.
    pub fn json(&self, argument: &str) -> Result<Value, ApiFault> {
        if self.bytes.is_empty() {
            return Err(bad_request(format!("Missing argument: \"{argument}\"")));
        }
        self.parse()
    }

    /// The body as a JSON object; null where there is none.
    ///
    /// # Errors
    /// What the client is told.
    pub fn object_or_null(&self) -> Result<Value, ApiFault> {
        if self.bytes.is_empty() {
            return Ok(Value::Null);
        }
        let body = self.parse()?;
        match dictionary(&body) {
            Some(_) => Ok(body),
            None => Err(not_a_dictionary()),
        }
    }

    /// That there is none, for a route without one. An empty object says nothing either.
    fn refuse(&self) -> Result<(), ApiFault> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        match dictionary(&self.parse()?).map(|given| given.keys().next()) {
            Some(Some(key)) => Err(bad_request(format!("Unknown argument: \"{key}\""))),
            Some(None) => Ok(()),
            None => Err(not_a_dictionary()),
        }
    }

    fn parse(&self) -> Result<Value, ApiFault> {
        let content_type = self.content_type.as_deref().unwrap_or_default();
        if !JSON_TYPES.contains(&content_type) {
            return Err(ApiFault::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("Unknown mimetype: {content_type}"),
            ));
        }
        json::read(&self.bytes).map_err(|told| bad_request(told.to_owned()))
    }
}

/// Middleware around a route that takes no body: what a client says there is not passed over.
pub async fn refuse(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    // Most requests have none, and go on as they are.
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let sent = Request::from_parts(parts.clone(), body);
    match Body::from_request(sent, &app)
        .await
        .and_then(|body| body.refuse())
    {
        Ok(()) => {
            next.run(Request::from_parts(parts, axum::body::Body::empty()))
                .await
        }
        Err(fault) => fault.into_response(),
    }
}

fn not_a_dictionary() -> ApiFault {
    bad_request("Request must be a JSON dict".to_owned())
}

fn bad_request(detail: String) -> ApiFault {
    ApiFault::new(StatusCode::BAD_REQUEST, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_json_of_a_known_type() {
        let body = |content_type: Option<&str>, bytes: &'static str| Body {
            content_type: content_type.map(str::to_owned),
            bytes: Bytes::from_static(bytes.as_bytes()),
        };
        const JSON: Option<&str> = Some("application/json");
        assert!(body(JSON, "[1]").json("x").is_ok());
        let status = |body: Body| body.json("x").unwrap_err().status().as_u16();
        assert_eq!(status(body(Some("text/plain"), "hello")), 415);
        assert_eq!(status(body(None, "{}")), 415);
        assert_eq!(status(body(Some("text/plain"), "")), 400);
        assert_eq!(status(body(JSON, "{")), 400);

        assert_eq!(body(None, "").object_or_null().unwrap(), Value::Null);
        assert!(body(JSON, "{}").object_or_null().unwrap().is_object());
        assert!(body(JSON, "[1]").object_or_null().is_err());

        let told = |body: Body| body.refuse().unwrap_err().detail().to_owned();
        for nothing in [body(None, ""), body(JSON, "{}")] {
            assert!(nothing.refuse().is_ok());
        }
        assert_eq!(told(body(JSON, r#"{"b": 1, "a": 2}"#)), "Unknown argument: \"b\"");
        for other in ["[]", "18446744073709551616"] {
            assert_eq!(told(body(JSON, other)), "Request must be a JSON dict");
            assert!(body(JSON, other).object_or_null().is_err());
        }
        assert_eq!(told(body(JSON, "x")), "Request is not in valid JSON format");
        assert_eq!(
            told(body(JSON, "[1e999]")),
            "Request has a number that is too large"
        );
        assert_eq!(
            told(body(Some("text/plain"), "x")),
            "Unknown mimetype: text/plain"
        );
    }
}
