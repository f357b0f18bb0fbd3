//! Driver engines: what runs a driver that `magnum_drivers` found.
//!
//! Discovery and resolution (names, versions, cluster types, the priority chain) are pure code that the API
//! needs too and live in `common`; here is only what works.

pub mod call;
pub mod driver;
pub mod error;
pub mod exec;
pub mod registry;

pub use call::{
    ClusterChanges, ClusterRef, DriverCall, DriverReport, NoProgress, NodeGroupChanges, Observation,
    Progress, ProgressSink, Task,
};
pub use driver::Driver;
pub use error::DriverError;
pub use registry::{Loaded, Registry};
