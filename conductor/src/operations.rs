//! Operations: what becomes of an accepted request.
//!
//! ```text
//! handlers ─record─▶ journal ◀─claim, fence, renew─ lease
//!                       ▲                             ▲
//!                       │ finish (rows + end)         │
//!                    executor ─▶ run (one operation) ─┘─▶ workflows ─▶ drivers
//!                       │
//!                    sweep (deadlines, orphans)     replies (answers of calls)     admin (operators)
//! ```
//!
//! | module | topic |
//! |---|---|
//! | [`state`] | which moves exist (pure) |
//! | [`retry`] | what a failure means (pure) |
//! | [`journal`] | the table and its events |
//! | [`lease`], [`keeper`] | ownership, and keeping it |
//! | [`lease_watch`] | which leases are over (pure, but for what it remembers) |
//! | [`executor`], [`run`] | claiming, and walking one operation through its steps |
//! | [`hold`] | the same for a call of a driver's own API, which is no operation |
//! | [`material`], [`request_context`] | what a step begins with |
//! | [`finish`] | what is written together with an end |
//! | [`stored_reply`], [`replies`], [`monitor`] | answers of calls, and signs of life until then |
//! | [`turns`] | in which order queued operations are begun: projects take turns |
//! | [`slots`] | how many operations run at once, and for whom there is room |
//! | [`breakers`] | which drivers this conductor leaves to others for a while |
//! | `lost_claim` | a lease that was lost by slowness counts against nobody |
//! | [`suspects`] | operations under which conductors end, and how they are kept from taking others along |
//! | [`at_work`] | what this process works on, for its report |
//! | [`sweep`] | what nobody's lease covers |
//! | `unanswered` | the last write of a worker, when it was not told what became of it |
//! | [`unread`] | what another release has written and this one cannot read |
//! | [`database_watch`] | how long the database has been seen: who has not seen it judges nobody |
//! | [`admin`] | list, show, retry, discard |
//! | [`notice`] | what is told to the notifier |
//! | [`crash_point`] | the points at which a test can stop a conductor |
//!
//! The guarantees stand in `docs/DURABILITY.md`. In one sentence: what was accepted is in the journal, what is in
//! the journal ends, and at every moment at most one conductor works on a cluster.

pub mod admin;
pub mod at_work;
pub mod breakers;
mod cluster_objects;
pub mod crash_point;
pub mod database_watch;
pub mod executor;
pub mod finish;
pub mod hold;
pub mod journal;
pub mod keeper;
pub mod lease;
pub mod lease_watch;
mod lost_claim;
pub mod material;
pub mod monitor;
pub mod notice;
pub mod progress;
pub mod replies;
pub mod request_context;
pub mod retry;
pub mod run;
pub mod services;
pub mod slots;
pub mod state;
pub mod stored_reply;
pub mod suspects;
pub mod sweep;
pub mod turns;
mod unanswered;
pub mod unread;

pub use executor::Executor;
pub use journal::{JournalError, Operation};
pub use lease::Lease;
pub use services::{OperationServices, OperationTiming, Signals};
pub use state::State;

pub use crate::workflows::OperationKind;
