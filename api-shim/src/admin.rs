//! The admin interface, on `[api] admin_listen`.
//!
//! | path | says |
//! |---|---|
//! | `/healthcheck` | what the API's own port says, wherever `[healthcheck] path` puts it there |
//! | `/readiness` | whether requests would succeed now: asks database and broker |
//! | `/metrics` | Prometheus |
//! | `/ui` | pages for people: what is stuck and why, operations, conductors, drivers (`ui`); `/` leads there |
//!
//! It has no authentication and shows what goes on in every project: keep it on an address that only operators reach.

pub mod services;
mod ui;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use magnum_rpc::Health as BrokerHealth;
use magnum_service::AdminHosts;
use serde_json::json;

use self::services::Services;
use crate::health::probe::Probe;
use crate::metric_definitions;
use crate::state::App;

/// What the admin interface reaches.
#[derive(Clone)]
pub struct Admin {
    /// What handlers reach, too.
    pub app: Arc<App>,
    /// Whether the database answers.
    pub database: Arc<Probe>,
    /// Whether the broker does.
    pub broker: Arc<Probe>,
    /// What the pages show of these two, and of Keystone.
    pub services: Arc<Services>,
}

/// The routes, health excepted.
pub fn routes(admin: Admin) -> Router {
    Router::new()
        .route("/readiness", get(readiness))
        .route("/metrics", get(metrics))
        .merge(ui::routes())
        .with_state(admin)
}

/// Refuses requests under a name that may be a stranger's ([`AdminHosts`]).
pub async fn only_known_hosts(
    State(hosts): State<Arc<AdminHosts>>,
    request: Request,
    next: Next,
) -> Response {
    let header = request.headers().get(header::HOST);
    // One that is no text is nobody's name.
    if hosts.allow(header.map(|name| name.to_str().unwrap_or_default())) {
        return next.run(request).await;
    }
    let advice = "this name is not one of the admin interface: [api] admin_hosts lists them\n";
    (StatusCode::MISDIRECTED_REQUEST, advice).into_response()
}

/// Whether requests would succeed now.
async fn readiness(State(admin): State<Admin>) -> Response {
    let (database, broker) = tokio::join!(admin.database.ask(), admin.broker.ask());
    // Our own end needs no question, and an older answer does not count then.
    let is_closed = admin.app.transport.health() == BrokerHealth::Closed;
    let (database, broker) = (database.is_ok(), broker.is_ok() && !is_closed);
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
