//! The sub-commands of `magnum-conductor`, one file each.

pub mod config_dump;
