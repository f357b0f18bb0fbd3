//! magnum-conductor as a library.

pub mod drivers;
