//! Writes that only the conductor makes.

pub mod announcements;
pub mod polls;
