//! The API as one thing that starts and stops: in `magnum-api`, in `magnum-dev`, in tests.
//!
//! [`Api::start`] returns once the socket listens. [`Api::stop`] drains for `[api] shutdown_delay`: the health check
//! returns 503 and every response closes its connection, so that a load balancer sends its clients elsewhere. Then it
//! accepts no more connections and lets requests in progress complete, for at most `[api] shutdown_timeout`. The
//! transport and the database are the caller's and outlive the API.
//!
//! [`Api::reload`] applies what can change while the API runs.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use magnum_config::{HealthcheckSection, Settings};
use magnum_db::Database;
use magnum_drivers::api_exchange::CallTimes;
use magnum_openstack::ServiceError;
use magnum_rpc::Transport;
use tokio::task::JoinHandle;
use tower::util::{MapRequestLayer, MapResponseLayer};
use tower::{Layer as _, Service, ServiceBuilder};

use crate::auth::Authenticator;
use crate::cloud::Cloud;
use crate::conductor_api::ConductorApi;
use crate::connections::{self, Limits, Listening, ShutdownSignals, StallLimits, Tls, TlsError};
use crate::driver_catalog::DriverCatalog;
use crate::edge::arrival::{self, Proxies};
use crate::edge::cors::{self, Cors};
use crate::edge::limits::{self, RequestLimits};
use crate::edge::{path, render};
use crate::health::probe::Probe;
use crate::health::{self, Check, Health, broker_probe, database_probe};
use crate::policy::{Policy, PolicyErrors, Source};
use crate::state::App;
use crate::{admin, description, metric_definitions, router};

/// How long after its time limit an unconfirmed message may still reach a conductor.
const UNCONFIRMED_DELAY: Duration = Duration::from_secs(60);

/// How long a connection may be idle, in addition to what a request waits for other services.
const IDLE: Duration = Duration::from_secs(120);

/// Minimum rate at which a client must read a response, in bytes per second.
// Evaluated by the compiler: it is not 0.
const READ_RATE: NonZeroU64 = NonZeroU64::new(16 * 1024).unwrap();

/// Why the API does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Clients cannot be authenticated as `[api] auth_strategy` says.
    #[error("{0} ([api] auth_strategy = keystone; noauth trusts every client and is for development)")]
    Authentication(ServiceError),
    /// Other services cannot be accessed as configured.
    #[error(transparent)]
    Cloud(ServiceError),
    /// The policy files cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyErrors),
    /// The TLS certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The address is taken, or not ours.
    #[error("cannot listen on {option} {address}: {source}")]
    Listen {
        /// The options that set the address.
        option: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the system reports.
        source: std::io::Error,
    },
    /// The socket that systemd has passed is not one to listen on.
    #[error("the socket of the service manager: {0}")]
    Inherited(std::io::Error),
}

/// A running API.
pub struct Api {
    address: SocketAddr,
    admin_address: Option<SocketAddr>,
    tls: Option<Tls>,
    app: Arc<App>,
    shutdown: ShutdownSignals,
    shutdown_delay: Duration,
    shutdown_timeout: Duration,
    tasks: Vec<JoinHandle<()>>,
}

impl Api {
    /// Starts on `[api] host` and `port` (0 takes a free one).
    ///
    /// # Errors
    /// An option cannot be used, a file cannot be read, or the address is taken; see [`StartError`].
    pub async fn start(
        settings: &Settings,
        transport: Arc<dyn Transport>,
        database: Database,
    ) -> Result<Self, StartError> {
        Self::start_on(None, settings, transport, database).await
    }

    /// Starts on `socket`, which listens already, or else as [`Api::start`] does.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start_on(
        socket: Option<std::net::TcpListener>,
        settings: &Settings,
        transport: Arc<dyn Transport>,
        database: Database,
    ) -> Result<Self, StartError> {
        let options = &settings.api;
        let tls = Tls::from_settings(options)?;
        let probes = Probes {
            database: database_probe(database.clone()),
            broker: broker_probe(Arc::clone(&transport)),
        };
        let app = Arc::new(open(settings, transport, database)?);
        let configured = SocketAddr::new(options.host, options.port);
        let listening = match socket {
            Some(socket) => Listening::inherited(socket).map_err(StartError::Inherited)?,
            None => bind("[api] host and port", configured).await?,
        };
        let admin_listening = match options.admin_listen {
            Some(address) => Some(bind("[api] admin_listen", address).await?),
            None => None,
        };
        // Nothing below can fail: no task is left behind by a start that does.
        metric_definitions::describe();
        let shutdown = ShutdownSignals::default();
        let address = listening.address().unwrap_or(configured);
        let limits = connection_limits(settings);
        let health = probes.health(settings, &settings.healthcheck.path, &shutdown);
        let service = public_service(settings, &app, health);
        let mut tasks = vec![
            tokio::spawn(Arc::clone(&app.policy).watch(shutdown.stop.clone())),
            tokio::spawn(connections::serve(
                listening,
                tls.clone(),
                limits.clone(),
                shutdown.clone(),
                service,
            )),
        ];
        let mut admin_address = None;
        if let Some(listening) = admin_listening {
            admin_address = listening.address().ok();
            let health = probes.health(settings, "/healthcheck", &shutdown);
            let service = admin_service(&app, &probes, health);
            let serving = connections::serve(listening, None, limits, shutdown.clone(), service);
            tasks.push(tokio::spawn(serving));
        }
        tracing::info!(%address, tls = tls.is_some(), "the API listens");
        Ok(Self {
            address,
            admin_address,
            tls,
            app,
            shutdown,
            shutdown_delay: options.shutdown_delay,
            shutdown_timeout: options.shutdown_timeout,
            tasks,
        })
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the admin interface, if there is one.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// Reloads certificate, key, policy files and driver folders. A failure is logged, and what was loaded before stays
    /// in use.
    pub async fn reload(&self, settings: &Settings) {
        if let Some(tls) = self.tls.clone() {
            let options = settings.api.clone();
            match tokio::task::spawn_blocking(move || tls.reload(&options)).await {
                Ok(Ok(())) => tracing::info!("certificate and key were read again"),
                Ok(Err(error)) => tracing::error!(%error, "the old certificate stays"),
                Err(error) => tracing::error!(%error, "the old certificate stays"),
            }
        }
        let policy = Arc::clone(&self.app.policy);
        if let Err(error) = tokio::task::spawn_blocking(move || policy.reload()).await {
            tracing::error!(%error, "the rules stay as they were");
        }
        self.app.drivers.reload(settings).await;
    }

    /// Stops in order; see above. Takes at most `[api] shutdown_delay` and `shutdown_timeout` together.
    pub async fn stop(self) {
        if !self.shutdown_delay.is_zero() {
            self.shutdown.drain.store(true, Ordering::Relaxed);
            tokio::time::sleep(self.shutdown_delay).await;
        }
        self.shutdown.stop.cancel();
        let mut tasks = futures::future::join_all(self.tasks);
        if tokio::time::timeout(self.shutdown_timeout, &mut tasks)
            .await
            .is_err()
        {
            tracing::warn!(
                waited_s = self.shutdown_timeout.as_secs_f64(),
                "some requests did not end in time and were cut off"
            );
            self.shutdown.abort.cancel();
            tasks.await;
        }
    }
}

/// The health of what the API depends on, probed once for all who ask.
struct Probes {
    database: Arc<Probe>,
    broker: Arc<Probe>,
}

impl Probes {
    /// The health check of `[healthcheck]`, at `path`.
    fn health(&self, settings: &Settings, path: &str, shutdown: &ShutdownSignals) -> Arc<Health> {
        let section = HealthcheckSection {
            path: path.to_owned(),
            ..settings.healthcheck.clone()
        };
        let checks = Check::all(&section, &self.database, &self.broker);
        let draining = Arc::clone(&shutdown.drain);
        Arc::new(Health::new(&section, checks, draining, &settings.default.host))
    }
}

/// What handlers share. Connects to nothing yet.
fn open(settings: &Settings, transport: Arc<dyn Transport>, database: Database) -> Result<App, StartError> {
    let options = &settings.api;
    Ok(App {
        conductor: ConductorApi::new(Arc::clone(&transport), settings),
        cloud: Cloud::from_settings(settings).map_err(StartError::Cloud)?,
        drivers: DriverCatalog::new(database.clone(), settings),
        authenticator: Arc::new(Authenticator::from_settings(settings).map_err(StartError::Authentication)?),
        policy: Arc::new(Policy::load(Source::from_settings(settings))?),
        limits: Arc::new(RequestLimits::new(options)),
        description: description::served,
        cluster_template: settings.cluster_template.clone(),
        max_limit: options.max_limit,
        max_body_bytes: settings.oslo_middleware.max_request_body_size,
        client_timeout: options.client_timeout,
        max_clusters_per_project: settings.quotas.max_clusters_per_project,
        default_boot_volume_size: settings.cinder.default_boot_volume_size,
        accept_wait: options.accept_wait,
        first_reservation: options.publish_timeout + options.accept_wait + UNCONFIRMED_DELAY,
        reservation_timeout: settings.quotas.reservation_timeout,
        service_down_time: settings.default.service_down_time,
        custom_api: settings.drivers.custom_api.clone(),
        driver_call_times: CallTimes::new(
            settings.drivers.custom_api_timeout,
            settings.default.rpc_response_timeout,
        ),
        transport,
        database,
    })
}

/// The service on `[api] host` and `port`: the routes, with what a request meets before them.
fn public_service(
    settings: &Settings,
    app: &Arc<App>,
    health: Arc<Health>,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + use<>
{
    let routes = MapResponseLayer::new(render::withdraw_head)
        .layer(MapRequestLayer::new(path::rewrite).layer(router::routes(Arc::clone(app))));
    ServiceBuilder::new()
        .layer(from_fn_with_state(health, health::answer))
        .layer(from_fn_with_state(proxies(settings), arrival::pass))
        .layer(from_fn_with_state(
            Arc::new(Cors::new(&settings.cors)),
            cors::answer,
        ))
        .layer(from_fn_with_state(Arc::clone(&app.limits), limits::at_the_door))
        .service(routes)
}

/// The service on `[api] admin_listen`.
fn admin_service(
    app: &Arc<App>,
    probes: &Probes,
    health: Arc<Health>,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + use<>
{
    let admin = admin::Admin {
        app: Arc::clone(app),
        database: Arc::clone(&probes.database),
        broker: Arc::clone(&probes.broker),
    };
    ServiceBuilder::new()
        .layer(from_fn_with_state(health, health::answer))
        .service(admin::routes(admin))
}

fn proxies(settings: &Settings) -> Proxies {
    Proxies {
        trusted: settings.oslo_middleware.enable_proxy_headers_parsing,
    }
}

fn connection_limits(settings: &Settings) -> Limits {
    let options = &settings.api;
    Limits {
        connections: options.max_connections,
        head: options.keep_alive_timeout,
        head_bytes: options.max_header_size,
        stall: StallLimits {
            idle: IDLE
                + options.keep_alive_timeout
                + options.client_timeout
                + options.accept_wait
                + options.publish_timeout
                + options.lookup_timeout
                + settings.default.rpc_response_timeout,
            response: options.client_timeout,
            bytes_per_second: READ_RATE,
        },
    }
}

async fn bind(option: &'static str, address: SocketAddr) -> Result<Listening, StartError> {
    connections::bind(address)
        .await
        .map_err(|source| StartError::Listen {
            option,
            address,
            source,
        })
}
