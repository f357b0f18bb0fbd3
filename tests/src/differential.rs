//! Random requests to the real Magnum's API and to ours, on equal databases.
//!
//! ```text
//! description, rows, values ─ generate ─▶ request ─▶ stage: both APIs ─▶ compare ─▶ rows: a row of docs/differences.md?
//!                                            ▲                                          │ none
//!                                            └──────────────── shrink ◀─────────────────┘
//! ```
//!
//! Both have the sample rows in a database of their own, and one stand-in for the cloud. Requests come in sequences of up to
//! five; what a sequence has changed is undone before the next. A difference that no rule knows is made smaller, one part
//! at a time, as long as it stays.
//!
//! With conductors, what they were sent is waited for on both sides, and the cluster and its node groups are looked at
//! (`look`) before the sequence goes on.
//!
//! Guarantee: one seed gives the same requests, on one version of `rand`. Not covered: how a cluster looks while its driver is
//! at work, as the two conductors' drivers end their work at other times.

mod compare;
mod generate;
mod look;
mod request;
mod rows;
mod run;
mod saved;
mod shrink;
mod stage;

pub use self::rows::{Rule, rules};
pub use self::run::{Limits, Report, run};
pub use self::stage::{Behind, Stage};
