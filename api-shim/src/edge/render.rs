//! Faults become answers: the body, which needs the request's id and method, and the line in the log.

use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use super::arrival::Ids;
use super::path::method_sent;
use crate::faults::ApiFault;

/// Middleware: gives every fault its body, and logs the error behind it.
pub async fn render(request: Request, next: Next) -> Response {
    let request_id = request
        .extensions()
        .get::<Ids>()
        .map(|ids| ids.own.as_str().to_owned())
        .unwrap_or_default();
    let method = method_sent(&request);
    let under_v1 = request.uri().path().starts_with("/v1");
    let response = next.run(request).await;
    let Some(fault) = fault_of(&response) else {
        return response;
    };
    fault.log();
    let (mut parts, _) = response.into_parts();
    if under_v1 {
        parts.extensions.insert(HeadIsNotServed);
    }
    let (formed, body) = fault.rendered(&request_id, &method).into_parts();
    parts.headers.extend(formed.headers);
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, body)
}

#[derive(Debug, Clone, Copy)]
struct HeadIsNotServed;

/// Takes HEAD out of `Allow`: the router names it wherever there is a GET, but under `/v1` it is not served. Stands
/// outside of the router, which adds the header after every layer of its own.
pub fn withdraw_head(mut response: Response) -> Response {
    let headers = response.headers();
    let allowed = headers.get(header::ALLOW).and_then(|value| value.to_str().ok());
    let Some(allowed) = allowed.filter(|_| response.extensions().get::<HeadIsNotServed>().is_some()) else {
        return response;
    };
    let methods: Vec<&str> = allowed
        .split(',')
        .map(str::trim)
        .filter(|method| *method != "HEAD")
        .collect();
    if let Ok(value) = HeaderValue::from_str(&methods.join(", ")) {
        response.headers_mut().insert(header::ALLOW, value);
    }
    response
}

/// The fault in a response; also made from a bare error status, so that nothing that stands between us and the
/// client (the router's own 405, a body limit) answers in another shape.
fn fault_of(response: &Response) -> Option<ApiFault> {
    if let Some(fault) = response.extensions().get::<ApiFault>() {
        return Some(fault.clone());
    }
    let status = response.status();
    let formed = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value == "application/json");
    let is_error = status.is_client_error() || status.is_server_error();
    (is_error && !formed).then(|| ApiFault::framework(status, ""))
}
