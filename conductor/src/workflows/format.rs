//! The journal's format: a number that rises when operations get something that conductors before did not know, be it a kind, a
//! step, or an argument without which a request is another one.
//!
//! Each operation has the lowest number with which it can be carried out ([`Workflow::format`]), so a new number concerns none but
//! the operations that use what is new, and all others are still for every conductor. A conductor claims what is within
//! [`KNOWN`], announces that, and leaves the rest to those that know more.
//!
//! To raise it: count [`KNOWN`] up, and have the `format` of the workflows in question return it where a request needs it. What a
//! request can do without needs no number: who does not know an argument leaves it as it is.
//!
//! [`Workflow::format`]: super::description::Workflow::format

/// The first: all kinds, steps and arguments of the releases that had no number.
pub const FIRST: i32 = 1;

/// The highest one that this release knows.
pub const KNOWN: i32 = FIRST;
