//! Health: for load balancers on the API's own port, for operators on a port of their own.
//!
//! `GET /healthcheck` says that the process serves requests, as oslo's middleware does: `OK`, or JSON when that
//! is asked for, and 503 while the file `/etc/magnum/healthcheck_disable` exists (to take a host out of
//! rotation). It touches neither database nor broker: their outage must not make a balancer drop every API at
//! once. `[api] admin_listen` adds `/readiness`, which asks both, and `/metrics` for Prometheus.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use magnum_common::rpc::Health;
use serde_json::json;

use crate::state::App;
use crate::{metric_definitions, store};

const DISABLING_FILE: &str = "/etc/magnum/healthcheck_disable";

/// `GET /healthcheck`
pub async fn check(headers: HeaderMap) -> Response {
    answer(&headers, Path::new(DISABLING_FILE).exists())
}

fn answer(headers: &HeaderMap, disabled: bool) -> Response {
    let (status, reason) = if disabled {
        (StatusCode::SERVICE_UNAVAILABLE, "DISABLED BY FILE")
    } else {
        (StatusCode::OK, "OK")
    };
    let wants_json = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|accept| accept.contains("application/json"));
    if wants_json {
        (status, Json(json!({"detailed": false, "reasons": [reason]}))).into_response()
    } else {
        (status, reason).into_response()
    }
}

/// The routes of the admin interface.
pub fn admin_routes(app: Arc<App>) -> Router {
    Router::new()
        .route("/healthcheck", get(check))
        .route("/readiness", get(readiness))
        .route("/metrics", get(metrics))
        .with_state(app)
}

/// Whether requests would succeed now. A broker that nothing has needed yet counts as ready.
async fn readiness(State(app): State<Arc<App>>) -> Response {
    let database = store::is_reachable(&app.database).await;
    let broker = !matches!(app.transport.health(), Health::Reconnecting | Health::Closed);
    let status = if database && broker {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(json!({"database": database, "broker": broker}))).into_response()
}

async fn metrics() -> Response {
    match metric_definitions::rendered() {
        Some(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            "this process does not record metrics\n",
        )
            .into_response(),
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn health_is_text_or_json_and_can_be_switched_off() {
        let json = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("application/json"))]);
        assert_eq!(
            answer(&json, false).headers()[header::CONTENT_TYPE],
            "application/json"
        );
        let text = answer(&HeaderMap::new(), false);
        assert_eq!(text.status(), StatusCode::OK);
        assert_eq!(text.headers()[header::CONTENT_TYPE], "text/plain; charset=utf-8");
        assert_eq!(answer(&json, true).status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
