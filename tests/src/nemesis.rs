//! Faults of real deployments, many at once and by a seed, while tenants ask; in the end [`crate::checker`] decides.
//!
//! | module | topic |
//! |---|---|
//! | [`kind`] | every kind of fault: whom it meets, what it takes, how long it lasts |
//! | [`plan`] | from a seed to a schedule; pure |
//! | [`world`], [`host`] | the deployment: servers of its own, and conductors as if each were on a machine of its own |
//! | [`faults`] | how each kind is done, undone, and seen to have happened |
//! | [`load`] | tenants that ask for everything, and remember what they were told |
//! | [`service_manager`] | starts again what has ended with an error |
//! | [`watch`] | when things were written, by a clock that nobody steps |
//! | [`run`], [`report`] | one run, and what it says |
//!
//! A seed fixes the plan and what each tenant chooses. It does not fix the timing: two runs of one seed meet the same faults at
//! the same times, and not the same races. `StdRng` is that of this checkout's version of `rand`.
//!
//! Every fault says whether it had an effect, since a fault that does nothing proves nothing: see [`faults::Effect`].

pub mod faults;
pub mod host;
pub mod kind;
pub mod load;
pub mod plan;
pub mod report;
pub mod run;
pub mod service_manager;
pub mod watch;
pub mod world;
