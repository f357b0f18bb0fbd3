//! Which drivers there are and which one builds a cluster: pure code, needed by the API and the conductor.
//!
//! A driver is a folder with a `driver.toml` ([`manifest`]): name, version, what cluster types it provides, what
//! it can do, and which engine runs it. [`discovery`] finds the folders; one that is broken is reported and
//! harms nothing else. [`Registry`] holds what was found here or announced by conductors ([`announced`]);
//! [`resolution`] chooses from it by one written rule. What a driver offers by an API of its own is [`api_route`], and how
//! a call of it travels [`api_exchange`]. Engines, which run drivers, live in the conductor.
//!
//! Where we differ from Magnum: drivers are folders instead of Python entry points; several may provide the same
//! cluster type and several versions may be installed; a name is checked wherever it comes from.

pub mod announced;
pub mod api_exchange;
pub mod api_route;
pub mod discovery;
pub mod info;
pub mod manifest;
pub mod registry;
pub mod resolution;
mod trust;

pub use announced::Announcement;
pub use api_exchange::{ApiAnswer, ApiQuestion, ApiRefusal};
pub use api_route::{ApiMethod, ApiRoute, ApiRoutes, FoundRoute};
pub use discovery::{DriverFolder, LoadError, LoadOutcome, discover, load};
pub use info::{Capabilities, ClusterType, DriverInfo, MasterSizeRule};
pub use magnum_config::ClusterTypeCheck;
pub use manifest::{EngineSpec, ExecSpec, HealthSource, MANIFEST_FILE, Manifest, Problem, PythonSpec};
pub use registry::Registry;
pub use resolution::{
    ImageProperties, Level, ResolutionRequest, ResolutionRules, Resolved, can_operate, check_distro,
    for_existing_cluster, for_unrecorded_cluster, resolve, resolve_stored, type_of,
};
