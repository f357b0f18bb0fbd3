//! The API as one thing that starts and stops: in `magnum-api`, in `magnum-dev`, in tests.
//!
//! [`Api::start`] returns once the socket listens. [`Api::stop`] first goes on for `[api] shutdown_delay` while health
//! says 503 and every answer ends its connection, so that a balancer sends its clients elsewhere; then it takes no
//! more connections and lets running requests end, at most `[api] shutdown_timeout` long. The transport and the
//! database are the caller's and outlive the API.
//!
//! [`Api::reload`] takes over what can change while it runs.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::middleware::from_fn_with_state;
use magnum_config::Settings;
use magnum_db::Database;
use magnum_openstack::ServiceError;
use magnum_rpc::Transport;
use tokio::task::JoinHandle;
use tower::util::{MapRequestLayer, MapResponseLayer};
use tower::{Layer as _, ServiceBuilder};

use crate::auth::Authenticator;
use crate::cloud::Cloud;
use crate::conductor_api::ConductorApi;
use crate::connections::{self, Ending, Limits, Listening, Patience, Tls, TlsError};
use crate::driver_catalog::DriverCatalog;
use crate::edge::arrival::{self, Proxies};
use crate::edge::cors::{self, Cors};
use crate::edge::limits::{self, RequestLimits};
use crate::health::{self, Check, Health, broker_probe, database_probe};
use crate::policy::{Policy, PolicyErrors, Source};
use crate::state::App;
use crate::{admin, faults, metric_definitions, request, router};

/// How long after its time a message that the broker has not confirmed may still reach a conductor.
const STORED: Duration = Duration::from_secs(60);

/// How long a connection may stand still, besides what a request waits for others.
const SILENCE: Duration = Duration::from_secs(120);

/// Bytes of an answer that a client must take per second.
// The compiler works it out: it is not 0.
const PACE: NonZeroU64 = NonZeroU64::new(16 * 1024).unwrap();

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
    /// There is no certificate, or no key.
    #[error(transparent)]
    Tls(#[from] TlsError),
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
    ending: Ending,
    shutdown_delay: Duration,
    shutdown_timeout: Duration,
    servers: Vec<JoinHandle<()>>,
}

impl Api {
    /// Starts on `[api] host` and `port` (0 takes a free one).
    pub async fn start(
        settings: &Settings,
        transport: Arc<dyn Transport>,
        database: Database,
    ) -> Result<Self, StartError> {
        Self::start_on(None, settings, transport, database).await
    }

    /// The same on a socket that listens already, if there is one; `[api] host` and `port` do not count then.
    pub async fn start_on(
        socket: Option<std::net::TcpListener>,
        settings: &Settings,
        transport: Arc<dyn Transport>,
        database: Database,
    ) -> Result<Self, StartError> {
        let options = &settings.api;
        let tls = Tls::from_settings(options)?;
        let asked = (
            database_probe(database.clone()),
            broker_probe(Arc::clone(&transport)),
        );
        let policy = Arc::new(Policy::load(Source::from_settings(settings))?);
        let app = Arc::new(App {
            conductor: ConductorApi::new(Arc::clone(&transport), settings),
            cloud: Cloud::from_settings(settings).map_err(StartError::Cloud)?,
            drivers: DriverCatalog::new(database.clone(), settings),
            authenticator: Authenticator::from_settings(settings).map_err(StartError::Authentication)?,
            policy: Arc::clone(&policy),
            limits: Arc::new(RequestLimits::new(options)),
            cluster_template: settings.cluster_template.clone(),
            max_limit: options.max_limit,
            max_body_bytes: settings.oslo_middleware.max_request_body_size,
            client_timeout: options.client_timeout,
            max_clusters_per_project: settings.quotas.max_clusters_per_project,
            default_boot_volume_size: settings.cinder.default_boot_volume_size,
            accept_wait: options.accept_wait,
            reservation_first: options.publish_timeout + options.accept_wait + STORED,
            reservation_timeout: settings.quotas.reservation_timeout,
            service_down_time: settings.default.service_down_time,
            transport,
            database,
        });
        let listening = match socket {
            Some(socket) => Listening::inherited(socket).map_err(StartError::Inherited)?,
            None => bind("[api] host and port", SocketAddr::new(options.host, options.port)).await?,
        };
        let operators = match options.admin_listen {
            Some(address) => Some(bind("[api] admin_listen", address).await?),
            None => None,
        };

        metric_definitions::describe();
        let ending = Ending::default();
        let health = |path: Option<&str>| {
            let checks = Check::all(&settings.healthcheck, &asked.0, &asked.1);
            let mut section = settings.healthcheck.clone();
            if let Some(path) = path {
                path.clone_into(&mut section.path);
            }
            let leaving = Arc::clone(&ending.leaving);
            Arc::new(Health::new(&section, checks, leaving, &settings.default.host))
        };

        let fallback = SocketAddr::new(options.host, options.port);
        let address = listening.address().unwrap_or(fallback);
        let service = MapResponseLayer::new(faults::withdraw_head)
            .layer(MapRequestLayer::new(request::rewrite).layer(router::routes(Arc::clone(&app))));
        let service = ServiceBuilder::new()
            .layer(from_fn_with_state(health(None), health::answer))
            .layer(from_fn_with_state(proxies(settings), arrival::pass))
            .layer(from_fn_with_state(
                Arc::new(Cors::new(&settings.cors)),
                cors::answer,
            ))
            .layer(from_fn_with_state(Arc::clone(&app.limits), limits::at_the_door))
            .service(service);
        let serving = connections::serve(
            listening,
            tls.clone(),
            connection_limits(settings),
            ending.clone(),
            service,
        );
        let watching = policy.watch(ending.stop.clone());
        let mut servers = vec![tokio::spawn(serving), tokio::spawn(watching)];

        let admin_address = operators.as_ref().and_then(|listening| listening.address().ok());
        if let Some(listening) = operators {
            let admin = admin::Admin {
                app: Arc::clone(&app),
                database: Arc::clone(&asked.0),
                broker: Arc::clone(&asked.1),
            };
            let service = ServiceBuilder::new()
                .layer(from_fn_with_state(health(Some("/healthcheck")), health::answer))
                .service(admin::routes(admin));
            let serving = connections::serve(
                listening,
                None,
                connection_limits(settings),
                ending.clone(),
                service,
            );
            servers.push(tokio::spawn(serving));
        }
        tracing::info!(%address, tls = tls.is_some(), "the API listens");
        Ok(Self {
            address,
            admin_address,
            tls,
            app,
            ending,
            shutdown_delay: options.shutdown_delay,
            shutdown_timeout: options.shutdown_timeout,
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

    /// Reads certificate, key, policy files and driver folders again. What cannot be used is logged, and what was stays.
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
            self.ending.leaving.store(true, Ordering::Relaxed);
            tokio::time::sleep(self.shutdown_delay).await;
        }
        self.ending.stop.cancel();
        let mut servers = futures::future::join_all(self.servers);
        if tokio::time::timeout(self.shutdown_timeout, &mut servers)
            .await
            .is_err()
        {
            tracing::warn!(
                waited_s = self.shutdown_timeout.as_secs_f64(),
                "some requests did not end in time and were cut off"
            );
            self.ending.cut.cancel();
            servers.await;
        }
    }
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
        patience: Patience {
            silence: SILENCE
                + options.keep_alive_timeout
                + options.client_timeout
                + options.accept_wait
                + options.publish_timeout
                + options.lookup_timeout
                + settings.default.rpc_response_timeout,
            answer: options.client_timeout,
            pace: PACE,
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
