//! The admin interface, on `[conductor] admin_listen`.
//!
//! | path | says |
//! |---|---|
//! | `/healthcheck` | the process answers: `OK` |
//! | `/readiness` | requests would be recorded now; otherwise 503 and which part is missing |
//! | `/metrics` | Prometheus |
//!
//! It has no authentication, and shows of tenants the uuids of their clusters and node groups and what these use: keep it
//! on an address that only operators reach.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use magnum_db::{self as db, Database};
use magnum_rpc::{Health, Transport};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::metric_definitions;
use crate::periodic::utilisation::UtilisationFigures;

/// How long the database may take to answer `/readiness`.
const PATIENCE: Duration = Duration::from_secs(2);

/// What `/readiness` asks, and `/metrics` shows.
#[derive(Clone)]
pub struct Readiness {
    /// The database.
    pub database: Database,
    /// The broker.
    pub transport: Arc<dyn Transport>,
    /// Whether messages are being taken.
    pub consuming: Arc<AtomicBool>,
    /// What clusters use, for `/metrics`.
    pub used: UtilisationFigures,
}

/// Serves until `shutdown`.
pub async fn serve(listener: TcpListener, readiness: Readiness, shutdown: CancellationToken) {
    let served = axum::serve(listener, routes(readiness))
        .with_graceful_shutdown(shutdown.cancelled_owned())
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "the admin interface ended");
    }
}

/// Listens at the address.
///
/// # Errors
/// The system's: the address is in use, is not this machine's, or needs a privilege.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

fn routes(readiness: Readiness) -> Router {
    Router::new()
        .route("/healthcheck", get(async || "OK"))
        .route("/readiness", get(ready))
        .route("/metrics", get(metrics))
        .with_state(readiness)
}

async fn ready(State(parts): State<Readiness>) -> Response {
    let answered = tokio::time::timeout(PATIENCE, parts.database.run(db::now_ms)).await;
    let database = matches!(answered, Ok(Ok(_)));
    let broker = matches!(parts.transport.health(), Health::Connected | Health::Idle);
    let consuming = parts.consuming.load(Ordering::Relaxed);
    let status = if database && broker && consuming {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let body = json!({"database": database, "broker": broker, "consuming": consuming});
    (status, Json(body)).into_response()
}

async fn metrics(State(parts): State<Readiness>) -> Response {
    match metric_definitions::rendered().map(|text| text + &parts.used.rendered()) {
        Some(text) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            "this process does not record metrics\n",
        )
            .into_response(),
    }
}
