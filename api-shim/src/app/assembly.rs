//! What a running API is made of, by the options: the state that handlers share, the services on its two addresses with
//! what a request passes before its handler, and the limits of connections. Nothing here connects or listens.

use std::convert::Infallible;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use magnum_config::{HealthcheckSection, Settings};
use magnum_db::Database;
use magnum_drivers::api_exchange::CallTimes;
use magnum_rpc::Transport;
use magnum_service::AdminHosts;
use tower::util::{MapRequestLayer, MapResponseLayer};
use tower::{Layer as _, Service, ServiceBuilder};

use super::StartError;
use crate::admin::services::Services;
use crate::auth::Authenticator;
use crate::cloud::Cloud;
use crate::conductor_api::ConductorApi;
use crate::connections::{Limits, ShutdownSignals, StallLimits};
use crate::driver_catalog::DriverCatalog;
use crate::edge::arrival::{self, Proxies};
use crate::edge::cors::{self, Cors};
use crate::edge::limits::{self, RequestLimits};
use crate::edge::{path, render};
use crate::health::probe::Probe;
use crate::health::{self, Check, Health};
use crate::policy::{Policy, Source};
use crate::state::App;
use crate::{admin, description, router};

/// How long after its time limit an unconfirmed message may still reach a conductor.
const UNCONFIRMED_DELAY: Duration = Duration::from_secs(60);

/// How long a connection may be idle, in addition to what a request waits for other services.
const IDLE: Duration = Duration::from_secs(120);

/// Minimum rate at which a client must read a response, in bytes per second.
// Evaluated by the compiler: it is not 0.
const READ_RATE: NonZeroU64 = NonZeroU64::new(16 * 1024).unwrap();

/// The health of what the API depends on, probed once for all who ask.
pub(super) struct Probes {
    /// Of the database.
    pub(super) database: Arc<Probe>,
    /// Of the broker.
    pub(super) broker: Arc<Probe>,
}

impl Probes {
    /// The health check of `[healthcheck]`, at `path`.
    pub(super) fn health(&self, settings: &Settings, path: &str, shutdown: &ShutdownSignals) -> Arc<Health> {
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
pub(super) fn app_state(
    settings: &Settings,
    transport: Arc<dyn Transport>,
    database: Database,
) -> Result<App, StartError> {
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
pub(super) fn public_service(
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
pub(super) fn admin_service(
    settings: &Settings,
    app: &Arc<App>,
    probes: &Probes,
    health: Arc<Health>,
) -> impl Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + use<>
{
    let admin = admin::Admin {
        app: Arc::clone(app),
        database: Arc::clone(&probes.database),
        broker: Arc::clone(&probes.broker),
        services: Arc::new(Services::new(settings, app, Arc::clone(&probes.database))),
    };
    let hosts = AdminHosts::new(&settings.default.host, &settings.api.admin_hosts);
    ServiceBuilder::new()
        .layer(from_fn_with_state(Arc::new(hosts), admin::only_known_hosts))
        .layer(from_fn_with_state(health, health::answer))
        .service(admin::routes(admin))
}

fn proxies(settings: &Settings) -> Proxies {
    Proxies {
        trusted: settings.oslo_middleware.enable_proxy_headers_parsing,
    }
}

pub(super) fn connection_limits(settings: &Settings) -> Limits {
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
