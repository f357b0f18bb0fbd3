//! The typed sections, which together are the option table.
//!
//! Names, forms and defaults are Magnum's unless marked `ours true`. The rest of Magnum's
//! options, which have no effect here, are listed in `known.rs`.

mod api;
mod certificates;
mod clusters;
mod conductor;
mod database;
mod default;
mod drivers;
mod http;
mod messaging;
mod openstack;
mod otlp;
mod trust;

pub use api::{ApiSection, AuthStrategy};
pub use certificates::{
    CertManagerType, CertificatesSection, KeyType, UnsealedKeys, X509Extension, X509KeyUsage, X509Section,
};
pub use clusters::{CinderSection, ClusterSection, ClusterTemplateSection, KubernetesSection, QuotasSection};
pub use conductor::{ConductorSection, MessageAuthentication, ObjectsRpcScope, RpcContentType};
pub use database::DatabaseSection;
pub use default::DefaultSection;
pub use drivers::{ClusterTypeCheck, DriversSection};
pub use http::{CorsSection, HealthBackend, HealthcheckSection, OsloMiddlewareSection, OsloPolicySection};
pub use messaging::{
    Compression, Compressor, ConcurrencySection, FailoverStrategy, LoginMethod, NotificationsSection,
    RabbitSection,
};
pub use openstack::{
    BarbicanClientSection, CacheProtection, CinderClientSection, GlanceClientSection, KeystoneAuthSection,
    KeystoneAuthtokenSection, NeutronClientSection, NovaClientSection,
};
pub use otlp::OtlpSection;
pub use trust::TrustSection;

/// This machine's host name; `localhost` where it has none that can be used.
pub(crate) fn host_name() -> String {
    hostname::get()
        .ok()
        .and_then(|name| name.into_string().ok())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}
