//! What a request meets before the API's own routes, outermost first.
//!
//! | what | where |
//! |---|---|
//! | health, which meets nothing else | [`crate::health`] |
//! | its ids, how its client sees us, its line in the log, its numbers | [`arrival`] |
//! | browsers of other sites | [`cors`] |
//! | a head that is too large, a client that asks too often | [`limits`] |
//! | a path that is written otherwise | [`path`] |
//!
//! Its fault, if it has one, gets its body on the way out ([`render`]).
//!
//! The order is that of Magnum's pipeline, except that a preflight has a request id, too. Inside of the routes there
//! is one more: the limit by project, which needs to know who asks.

pub mod arrival;
pub mod cors;
pub mod forwarded;
pub mod limits;
pub mod path;
pub mod render;
