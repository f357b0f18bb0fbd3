//! The API as one thing that starts and stops: in `magnum-api`, in `magnum-dev`, in tests.
//!
//! [`Api::start`] returns once the socket listens. [`Api::stop`] lets running requests end, at most
//! `DRAIN` long, and then closes. The transport and the database are the caller's and outlive the API.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use magnum_common::config::{ApiSection, Settings};
use magnum_common::db::Database;
use magnum_common::openstack::ServiceError;
use magnum_common::rpc::Transport;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::util::{MapRequest, MapRequestLayer, MapResponse, MapResponseLayer};
use tower::{Layer as _, Service};

use crate::auth::Authenticator;
use crate::cloud::Cloud;
use crate::conductor_api::ConductorApi;
use crate::connections::Patient;
use crate::driver_catalog::DriverCatalog;
use crate::policy::{Policy, PolicyErrors, Source};
use crate::state::App;
use crate::{faults, health, metric_definitions, request, router};

/// How long running requests may take to end when the API stops.
const DRAIN: Duration = Duration::from_secs(30);

/// How long after its time a message that the broker has not confirmed may still reach a conductor.
const STORED: Duration = Duration::from_secs(60);

/// How long a connection may stand still, besides what a request waits for others.
const SILENCE: Duration = Duration::from_secs(120);

/// Why the API does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Clients cannot be identified in the way that is asked for.
    #[error("{0} ([api] auth_strategy = keystone; noauth believes every client and is for development)")]
    Authentication(ServiceError),
    /// Other services cannot be asked.
    #[error(transparent)]
    Cloud(ServiceError),
    /// The policy files cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
    /// The request to read files again cannot be heard.
    #[error("cannot receive SIGHUP: {0}")]
    Signal(std::io::Error),
    /// TLS is a proxy's business.
    #[error(
        "[api] enabled_ssl = true is not supported: put a TLS proxy in front and set enabled_ssl = false"
    )]
    Tls,
    /// The address is taken, or not ours.
    #[error("cannot listen on {option} {address}: {source}")]
    Listen {
        /// The options that say where.
        option: &'static str,
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}

/// A running API.
pub struct Api {
    address: SocketAddr,
    admin_address: Option<SocketAddr>,
    shutdown: CancellationToken,
    servers: Vec<JoinHandle<()>>,
}

impl Api {
    /// Starts on `[api] host` and `port` (0 takes a free one).
    pub async fn start(
        settings: &Settings,
        transport: Arc<dyn Transport>,
        database: Database,
    ) -> Result<Self, StartError> {
        if settings.api.enabled_ssl {
            return Err(StartError::Tls);
        }
        let policy = Arc::new(Policy::load(Source::from_settings(settings))?);
        let app = Arc::new(App {
            conductor: ConductorApi::new(Arc::clone(&transport), settings),
            cloud: Cloud::from_settings(settings).map_err(StartError::Cloud)?,
            drivers: DriverCatalog::new(database.clone(), settings),
            authenticator: Authenticator::from_settings(settings).map_err(StartError::Authentication)?,
            policy: Arc::clone(&policy),
            cluster_template: settings.cluster_template.clone(),
            max_limit: settings.api.max_limit,
            max_body_bytes: settings.oslo_middleware.max_request_body_size,
            max_clusters_per_project: settings.quotas.max_clusters_per_project,
            default_boot_volume_size: settings.cinder.default_boot_volume_size,
            accept_wait: settings.api.accept_wait,
            reservation_first: settings.api.publish_timeout + settings.api.accept_wait + STORED,
            reservation_timeout: settings.quotas.reservation_timeout,
            service_down_time: settings.default.service_down_time,
            trust_proxy_headers: settings.oslo_middleware.enable_proxy_headers_parsing,
            transport,
            database,
        });
        metric_definitions::describe();
        let shutdown = CancellationToken::new();
        let patience = SILENCE
            + settings.api.accept_wait
            + settings.api.publish_timeout
            + settings.api.lookup_timeout
            + settings.default.rpc_response_timeout;
        let listener = listen(&settings.api).await?;
        let address = local_address(&listener, &settings.api);
        let mut servers = vec![serve(
            Patient::new(listener, patience),
            outside(router::routes(Arc::clone(&app))),
            shutdown.clone(),
        )];
        servers.push(tokio::spawn(
            policy.watch(shutdown.clone()).map_err(StartError::Signal)?,
        ));
        let mut admin_address = None;
        if let Some(address) = settings.api.admin_listen {
            let listener = bind("[api] admin_listen", address).await?;
            admin_address = listener.local_addr().ok();
            let listener = Patient::new(listener, patience);
            servers.push(serve(listener, health::admin_routes(app), shutdown.clone()));
        }
        tracing::info!(%address, "the API listens");
        Ok(Self {
            address,
            admin_address,
            shutdown,
            servers,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the admin interface listens, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// Stops listening and waits for running requests.
    pub async fn stop(self) {
        self.shutdown.cancel();
        let drained = tokio::time::timeout(DRAIN, futures::future::join_all(self.servers)).await;
        if drained.is_err() {
            tracing::warn!(
                waited_s = DRAIN.as_secs(),
                "some requests did not end in time and were cut off"
            );
        }
    }
}

async fn listen(section: &ApiSection) -> Result<TcpListener, StartError> {
    bind("[api] host and port", SocketAddr::new(section.host, section.port)).await
}

async fn bind(option: &'static str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| StartError::Listen {
            option,
            address,
            source,
        })
}

/// Where the system has put it, when port 0 was asked for.
fn local_address(listener: &TcpListener, section: &ApiSection) -> SocketAddr {
    listener
        .local_addr()
        .unwrap_or_else(|_| SocketAddr::new(section.host, section.port))
}

type Outside = MapResponse<MapRequest<Router, fn(Request) -> Request>, fn(Response) -> Response>;

/// The API's routes, with what has to stand outside of the router: paths in any of their forms, and `Allow`.
fn outside(router: Router) -> Outside {
    let rewrite: fn(Request) -> Request = request::rewrite;
    let withdraw_head: fn(Response) -> Response = faults::withdraw_head;
    MapResponseLayer::new(withdraw_head).layer(MapRequestLayer::new(rewrite).layer(router))
}

/// Serves until told to stop.
fn serve<S>(listener: Patient, service: S, shutdown: CancellationToken) -> JoinHandle<()>
where
    S: Service<Request, Response = Response, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    let service = axum::ServiceExt::<Request>::into_make_service(service);
    tokio::spawn(async move {
        let served = axum::serve(listener, service)
            .with_graceful_shutdown(shutdown.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!(error = %error, "the HTTP server ended");
        }
    })
}
