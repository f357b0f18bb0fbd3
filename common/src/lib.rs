//! What every crate of Magnum speaks: the field's words as types, and set-up that every program needs.
//!
//! Admission: the item is domain vocabulary that both programs use, or process set-up that both need, and it does no
//! I/O. What crosses the wire, lies in tables or asks a service has a crate of its own beside this one:
//!
//! | crate | topic | may use |
//! |---|---|---|
//! | `magnum-common` | [`ids`], [`model`], [`error`], [`context`], [`secret`], [`retry`], [`clock`] | |
//! | `magnum-config` | oslo.config's dialect and the typed sections | common |
//! | `magnum-telemetry` | the log | config |
//! | `magnum-tls` | certificates that no authority decides about | |
//! | `magnum-objects` | versioned objects | common |
//! | `magnum-rpc` | oslo.messaging's wire; the only crate that knows lapin | common, config, tls |
//! | `magnum-drivers` | driver manifests, discovery and resolution, pure | common, config |
//! | `magnum-openstack` | other OpenStack services | common, config, tls |
//! | `magnum-db` | connections, rows, shared reads and writes | common, config, drivers |
//!
//! Cargo keeps these walls: a crate cannot name what its manifest does not list.

pub mod clock;
pub mod context;
pub mod error;
pub mod ids;
pub mod model;
pub mod panic;
pub mod retry;
pub mod secret;
