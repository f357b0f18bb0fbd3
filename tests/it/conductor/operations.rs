//! The life of operations, on each of the three databases, with conductors in this process and a scripted driver.
//!
//! What a killed process or a lost broker does is in the crash matrix and the outage tests; here every rule of
//! the journal is met once on purpose.

mod accepting;
mod answers;
mod certificates;
mod changing;
mod choosing;
mod deleting;
mod fairness;
mod fencing;
mod history;
mod holding;
mod locked_rows;
mod long_history;
mod not_here;
mod operators;
mod reasons;
mod rebooting;
mod releases;
mod running;
#[cfg(feature = "simulation")]
mod slow_line;
mod slow_questions;
mod strange_failures;
mod suspects;
mod unanswered_commits;
pub(crate) mod world;
