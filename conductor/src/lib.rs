//! magnum-conductor as a library.

pub mod cli;
pub mod drivers;
pub mod store;
