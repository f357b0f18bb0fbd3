//! Messages in, answers out.
//!
//! [`consumer`] takes batches from the queue; [`dispatch`] says what each message is; what is to be recorded goes
//! to [`crate::handlers::accept`]; [`reply`] sends answers. A message is acknowledged after the commit that made
//! it safe, never before and never after the work (oslo's server acknowledges before it dispatches, and loses
//! what it had in hand when it dies).

pub mod consumer;
mod direct;
pub mod dispatch;
mod held_back;
mod intake;
pub mod reply;

pub use consumer::Consumer;
pub use reply::TransportSink;
