//! The loaded drivers, and the engines that run them.
//!
//! The interface of a driver is the crate `magnum_driver_api`, each engine is a crate of its own below
//! `conductor/engines/`. Discovery and resolution (names, versions, cluster types, the priority chain) are pure code
//! that the API needs too and live in `magnum_drivers`.

pub mod registry;

pub use registry::{Loaded, Registry};
