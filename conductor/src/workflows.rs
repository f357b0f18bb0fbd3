//! What an operation of each kind does, as data and pure functions, plus the one effect: the driver call.
//!
//! A workflow is a list of named steps. The executor ([`crate::operations`]) walks it: intent into the journal,
//! effect, result into the journal. A step whose result is journalled never runs again; one whose intent stands
//! without a result runs again. Hence every step may run twice, and names that a cloud sees come from the
//! cluster's uuid and the operation's id, never from an attempt.
//!
//! Workflows know drivers and domain types. They know neither database nor lease nor message.
//!
//! Where Magnum differs: its handlers run the same sequences in one go, inside the message's thread, and what a
//! crash cuts off is never taken up again.

pub mod args;
mod certificate_refs;
pub mod choose_driver;
pub mod choose_nodes;
pub mod description;
pub mod format;
pub mod kinds;
pub mod outcome;
pub mod rules;
pub mod start;

pub use args::Args;
pub use certificate_refs::CertificateRefs;
pub use choose_driver::{DriverRef, DriverSource};
pub use description::Step;
pub use kinds::{OperationKind, Work};
