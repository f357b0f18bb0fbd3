//! The management cluster of drivers for Cluster API: where it is, and whether it has what a driver needs.
//!
//! | module | topic |
//! |---|---|
//! | [`access`] | where it is written down, and the connection to it |
//! | [`Connection`] | the one of a process, made anew when its kubeconfig changes |
//! | [`needs`] | what a driver needs of it: groups of kinds in certain versions, and rights |
//! | [`served`] | which of these groups it has, and in which version |
//! | [`rights`] | which of these rights the account has |
//! | [`check()`] | all of it at once, as findings |
//! | [`objects`] | objects: applied, read, deleted |
//! | [`watch`] | objects of certain kinds, watched |
//!
//! Guarantees: a check changes nothing, takes no longer than [`access::CONNECT_WITHIN`] and [`access::ANSWER_WITHIN`] allow each
//! request, and neither tokens nor keys appear in an error. It does not guarantee that controllers run: kinds are served also
//! where nobody sees to them.

pub mod access;
mod check;
mod connection;
pub mod needs;
pub mod objects;
pub mod rights;
pub mod served;
pub mod watch;

pub use self::access::ManagementCluster;
pub use self::check::{CheckError, Report, check};
pub use self::connection::Connection;
