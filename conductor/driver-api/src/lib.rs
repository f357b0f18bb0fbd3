//! The interface between the conductor and COE drivers, whatever engine runs them.
//!
//! A driver gets plain data ([`DriverCall`], [`ClusterRef`]) and returns what is to change ([`DriverReport`]) or why
//! it could not ([`DriverError`]). It never sees the database, the broker, leases or the journal, and this crate
//! depends on none of them. An engine is made from an [`EngineHost`] and from nothing else.
//!
//! Which drivers there are, and which of them builds a cluster, is decided elsewhere
//! (`magnum_drivers`): the API needs that, too.
//!
//! Where Magnum differs: its drivers are Python classes that read and write the database themselves.

mod api;
mod call;
mod certificates;
mod clock;
mod cloud;
mod driver;
mod error;
mod host;
pub mod limits;
mod objects;
mod observation;
mod progress;
mod reason;
mod report;
mod scale;
mod task;
mod trusts;
mod utilisation;

pub use api::{ApiCall, ApiReply, ApiStatus};
pub use call::DriverCall;
pub use certificates::{Authorities, CaMaterial, ClusterCertificates, KeyPair, NoCertificates};
pub use clock::{Clock, RandomSource};
pub use cloud::Cloud;
pub use driver::Driver;
pub use error::DriverError;
pub use host::{EngineHost, EngineOptions, EngineServices, GuardProgram, Shared};
pub use objects::{ClusterObjects, NoObjects, ObjectCall, ObjectError, ObjectTarget, SharedObjects};
pub use observation::{ClusterRef, HealthObservation, HealthReport, Observation};
pub use progress::{NoProgress, Progress, ProgressSink};
pub use reason::Reason;
pub use report::{ClusterChanges, DriverReport, NodeGroupChanges};
pub use scale::Shrinking;
pub use task::{Nodes, Task};
pub use trusts::{ClusterTrust, ClusterTrusts, NoTrusts};
pub use utilisation::{GroupUtilisation, Utilisation, UtilisationObservation, UtilisationReport};
