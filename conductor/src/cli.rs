//! The sub-commands of this crate's programs, one file each; their `main.rs` only parse and dispatch.

pub mod config_dump;
pub mod db_manage;
pub mod driver_manage;
pub mod operations;
