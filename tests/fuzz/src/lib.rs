//! The targets of `tests/src/fuzz.rs`, compiled once for all programs of `fuzz_targets`.

#[path = "../../src/fuzz.rs"]
pub mod fuzz;
