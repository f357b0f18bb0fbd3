//! From a decoded message to a recorded operation. Mirrors Magnum's handlers by name.
//!
//! | module | topic |
//! |---|---|
//! | [`arguments`] | typed arguments, with Python's errors for wrong ones |
//! | [`command`], [`decode`] | the typed command of a message with valid arguments |
//! | [`plan`] | the row changes of accepting it: data made by pure functions |
//! | [`cluster_create`], [`cluster_update`], [`cluster_delete`], [`cluster_resize`] (upgrade too), [`nodegroup`], [`node_actions`], [`rotation`] | those functions |
//! | [`columns`] | values that no row can hold |
//! | [`accept`] | reads, plans, writes: one transaction for many messages |
//! | [`certificates`] | signing requests, and showing CAs |
//! | [`driver_api`] | calls of drivers' own APIs |
//! | [`question`] | calls that get a reply at once, without an operation |
//!
//! Guarantee: a message is accepted completely (journal and rows) or not at all, and the same message is never
//! accepted twice. State rules are checked against the rows, in that transaction, and every change of a status
//! compares the one that was read. Not guaranteed: an order between messages, which competing consumers do not
//! have anyway.

pub mod accept;
pub mod arguments;
pub mod certificates;
pub mod cluster_create;
pub mod cluster_delete;
pub mod cluster_resize;
pub mod cluster_update;
pub mod columns;
pub mod command;
pub mod decode;
pub mod driver_api;
pub mod node_actions;
pub mod nodegroup;
pub mod plan;
pub mod question;
pub mod rotation;

pub use accept::{Accepted, Acceptor, Incoming};
pub use command::Command;
pub use driver_api::DriverCalls;
pub use question::Answerer;
