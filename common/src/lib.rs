//! What both halves of Magnum share.
//!
//! Admission to this crate: the item is (a) bytes on the wire, (b) a table or a row, (c) domain vocabulary
//! both sides speak, or (d) process set-up both programs need; and both use it. Anything else lives with its
//! owner.
//!
//! | module | topic |
//! |---|---|
//! | [`ids`], [`model`], [`error`], [`context`] | the field's words, as types |
//! | [`config`] | oslo.config's dialect and the typed sections |
//! | [`rpc`], [`objects`] | oslo.messaging's wire and versioned objects |
//! | [`db`] | the only place with connections; rows and shared reads |
//! | [`drivers`] | driver discovery and resolution, as pure code |
//! | [`openstack`] | other OpenStack services: one exchange, the catalog, a session |
//! | [`secret`], [`seal`], [`retry`], [`clock`], [`telemetry`] | process set-up |

pub mod clock;
pub mod config;
pub mod context;
pub mod db;
pub mod drivers;
pub mod error;
pub mod ids;
pub mod model;
pub mod objects;
pub mod openstack;
pub mod retry;
pub mod rpc;
pub mod seal;
pub mod secret;
pub mod telemetry;
mod tls;
