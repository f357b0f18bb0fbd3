//! Writes that both programs make.

pub mod unless_exists;

pub use unless_exists::unless_exists;
