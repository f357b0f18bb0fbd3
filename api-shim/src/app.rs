//! The API as one thing that starts and stops: in `magnum-api`, in `magnum-dev`, in tests.
//!
//! [`Api::start`] returns once the socket listens. [`Api::stop`] drains for `[api] shutdown_delay`: the health check
//! returns 503 and every response closes its connection, so that a load balancer sends its clients elsewhere. Then it
//! accepts no more connections and lets requests in progress complete, for at most `[api] shutdown_timeout`. The
//! transport and the database are the caller's and outlive the API.
//!
//! [`Api::reload`] applies what can change while the API runs.

mod assembly;
mod start_report;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use magnum_config::{AuthStrategy, Settings};
use magnum_db::Database;
use magnum_openstack::ServiceError;
use magnum_rpc::Transport;
use magnum_service::StartReport;
use tokio::task::JoinHandle;

use self::assembly::{Probes, admin_service, app_state, connection_limits, public_service};
use crate::connections::{self, Listening, ShutdownSignals, Tls, TlsError};
use crate::health::{broker_probe, database_probe};
use crate::metric_definitions;
use crate::policy::PolicyErrors;
use crate::state::App;

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
    /// Who reaches the address would be an administrator.
    #[error(
        "with [api] auth_strategy = noauth every client is an administrator, and other machines reach {0}: listen on \
         127.0.0.1 ([api] host), use Keystone, or set [api] allow_noauth_on_network"
    )]
    NoauthOnNetwork(SocketAddr),
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
        let app = Arc::new(app_state(settings, transport, database)?);
        let configured = SocketAddr::new(options.host, options.port);
        let listening = match socket {
            Some(socket) => Listening::inherited(socket).map_err(StartError::Inherited)?,
            None => bind("[api] host and port", configured).await?,
        };
        let address = listening.address().unwrap_or(configured);
        let is_open = options.auth_strategy == AuthStrategy::Noauth && !address.ip().is_loopback();
        if is_open && !options.allow_noauth_on_network {
            return Err(StartError::NoauthOnNetwork(address));
        }
        let admin_listening = match options.admin_listen {
            Some(address) => Some(bind("[api] admin_listen", address).await?),
            None => None,
        };
        // Nothing below can fail: no task is left behind by a start that does.
        metric_definitions::describe();
        let shutdown = ShutdownSignals::default();
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
            let service = admin_service(settings, &app, &probes, health);
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

    /// What it has reached, and as whom: asked when it is polled, and safe to be given up.
    pub fn start_report(&self, settings: &Settings) -> impl Future<Output = StartReport> + Send + use<> {
        start_report::of(Arc::clone(&self.app), settings.clone())
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

async fn bind(option: &'static str, address: SocketAddr) -> Result<Listening, StartError> {
    connections::bind(address)
        .await
        .map_err(|source| StartError::Listen {
            option,
            address,
            source,
        })
}
