//! The admin interface, on `[conductor] admin_listen`.
//!
//! | path | says |
//! |---|---|
//! | `/healthcheck` | the process answers: `OK` |
//! | `/readiness` | requests would be recorded now; otherwise 503 and which part is missing |
//! | `/metrics` | Prometheus |
//!
//! A few connections at a time, each with a limit for the head of a request; names under which it is asked are those of
//! [`AdminHosts`].
//!
//! It has no authentication, and shows of tenants the uuids of their clusters and node groups and what these use: keep it
//! on an address that only operators reach.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use magnum_db::{self as db, Database};
use magnum_rpc::{Health, Transport};
use magnum_service::AdminHosts;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::metric_definitions;
use crate::periodic::utilisation::UtilisationFigures;

/// How long the database may take to answer `/readiness`.
const PATIENCE: Duration = Duration::from_secs(2);

/// After a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(500);

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

/// Most connections at a time. Further ones wait: Prometheus, probes and operators need a handful.
const MOST_CONNECTIONS: usize = 64;

/// How long the head of a request may take, and a connection may be idle between two.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest that a connection lives, however slowly its client reads. None of the answers takes long.
const LIFETIME: Duration = Duration::from_secs(300);

/// Serves until `shutdown`.
pub async fn serve(
    listener: TcpListener,
    hosts: AdminHosts,
    readiness: Readiness,
    shutdown: CancellationToken,
) {
    let service = routes(readiness).layer(from_fn_with_state(Arc::new(hosts), only_known_hosts));
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let permit = Arc::clone(&permits).acquire_owned().await.ok();
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            accepted = accepted => accepted,
            () = shutdown.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let (service, shutdown) = (service.clone(), shutdown.clone());
                tokio::spawn(async move {
                    connection(stream, service, shutdown).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // No file descriptors, or a client that has gone already.
                tracing::debug!(%error, "the admin interface accepts no connection at the moment");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, service: Router, shutdown: CancellationToken) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)));
    tokio::select! {
        _ = serving.as_mut() => {}
        () = sleep(LIFETIME) => {}
        () = shutdown.cancelled() => {
            serving.as_mut().graceful_shutdown();
            let _ = timeout(PATIENCE, serving).await;
        }
    }
}

async fn only_known_hosts(State(hosts): State<Arc<AdminHosts>>, request: Request, next: Next) -> Response {
    let header = request.headers().get(header::HOST);
    // One that is no text is nobody's name.
    if hosts.allow(header.map(|name| name.to_str().unwrap_or_default())) {
        return next.run(request).await;
    }
    let advice = "this name is not one of the admin interface: [conductor] admin_hosts lists them\n";
    (StatusCode::MISDIRECTED_REQUEST, advice).into_response()
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
    let answered = timeout(PATIENCE, parts.database.run(db::now_ms)).await;
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
