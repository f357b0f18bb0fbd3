//! The body of a request.

use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http_body::Body as _;
use serde_json::Value;

use crate::faults::ApiFault;
use crate::state::App;

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
    pub fn json(&self, argument: &str) -> Result<Value, ApiFault> {
        if self.bytes.is_empty() {
            return Err(bad_request(format!("Missing argument: \"{argument}\"")));
        }
        if let Some(content_type) = self.content_type.as_deref().filter(|it| !JSON_TYPES.contains(it)) {
            return Err(ApiFault::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("Unknown mimetype: {content_type}"),
            ));
        }
        // The parser's own words would quote what was sent, and it may hold a secret.
        serde_json::from_slice(&self.bytes)
            .map_err(|_| bad_request("Request is not in valid JSON format".to_owned()))
    }
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
        assert!(body(None, "{}").json("x").is_ok());
        assert!(body(Some("application/json"), "[1]").json("x").is_ok());
        let status = |body: Body| body.json("x").unwrap_err().status().as_u16();
        assert_eq!(status(body(Some("text/plain"), "hello")), 415);
        assert_eq!(status(body(Some("text/plain"), "")), 400);
        assert_eq!(status(body(None, "{")), 400);
    }
}
