//! The single integration binary: one link for all tests, one set of servers for all of them.
//!
//! One module per topic; each says in its documentation what it proves. Nothing is ever ignored or skipped:
//! a test that needs a server fails when the server is missing.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed expectation is how a test fails"
)]

mod auth;
mod bad_input;
mod bench;
mod broker;
mod certificates;
mod clients;
mod conductor_process;
mod config_dialect;
mod database;
mod documents;
mod drivers;
mod edge;
mod engines;
mod example_drivers;
mod fuzzing;
mod harness;
mod health_check;
mod house;
mod kubernetes_health;
mod kubernetes_monitor;
mod lookups;
mod magnum_dev;
mod migrations;
mod objects;
mod objects_rpc;
mod operations;
mod operators;
mod peers;
mod policy;
mod probe;
mod process;
mod properties;
mod query_counts;
pub(crate) mod rest;
mod rows;
mod status_command;
mod status_sync;
mod traces;
mod wire;
