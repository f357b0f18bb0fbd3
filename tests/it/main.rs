//! The single integration binary: one link for all tests, one set of servers for all of them.
//!
//! One room per subject, one module per topic in it; each says in its documentation what it proves. Nothing is ever
//! ignored or skipped: a test that needs a server fails when the server is missing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is how a test fails"
)]

mod api;
mod conductor;
mod database;
mod house;
mod operators;
mod peers;
mod process;
mod wire;
