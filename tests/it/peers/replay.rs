//! What replays of recorded cases have in common: which cases run, how values are compared, and how differences that are
//! there on purpose are told.
//!
//! A replay is a recording of what a driver did, played through our conductor. It runs a sample of its cases;
//! `MAGNUM_TESTS_PLUGIN_RUN=all` runs all of each (`docs/testing.md`).

pub mod columns;
pub mod comparing;
pub mod differences;
pub mod selection;

pub use columns::Columns;
pub use comparing::differ;
pub use differences::{Difference, Played, judge};
pub use selection::{Recorded, Selection, Suite};
