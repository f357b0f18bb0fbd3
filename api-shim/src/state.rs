//! What every handler can reach.

use std::sync::Arc;
use std::time::Duration;

use magnum_config::ClusterTemplateSection;
use magnum_db::Database;
use magnum_drivers::api_exchange::CallTimes;
use magnum_rpc::Transport;

use crate::auth::Authenticator;
use crate::cloud::Cloud;
use crate::conductor_api::ConductorApi;
use crate::driver_catalog::DriverCatalog;
use crate::edge::limits::RequestLimits;
use crate::microversion::Version;
use crate::policy::Policy;

/// Shared by all requests. Settings are taken apart once, so that a handler names what it needs.
#[expect(missing_docs, reason = "the names are those of the options or of the types")]
pub struct App {
    pub database: Database,
    pub transport: Arc<dyn Transport>,
    pub conductor: ConductorApi,
    pub cloud: Cloud,
    pub drivers: DriverCatalog,
    pub authenticator: Arc<Authenticator>,
    pub policy: Arc<Policy>,
    pub limits: Arc<RequestLimits>,
    /// The API's description in a version. It is made from the routes, which handlers do not know.
    pub description: fn(Version) -> Option<&'static str>,
    pub cluster_template: ClusterTemplateSection,
    pub max_limit: u32,
    pub max_body_bytes: usize,
    pub client_timeout: Duration,
    pub max_clusters_per_project: u32,
    pub default_boot_volume_size: u32,
    pub accept_wait: Duration,
    /// Lifetime of a quota reservation until the 202 is sent; `reservation_timeout` applies from then on.
    pub first_reservation: Duration,
    pub reservation_timeout: Duration,
    pub service_down_time: Duration,
    /// Names of drivers whose own API may be called.
    pub custom_api: Vec<String>,
    /// How long such a call may take.
    pub driver_call_times: CallTimes,
}
