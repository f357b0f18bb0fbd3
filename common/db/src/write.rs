//! Writes that both programs make, and those whose rules belong to the table.
//!
//! # Errors
//! Every write returns a [`DbError`](super::DbError) when the database fails or does not take a value; a row that does
//! not exist, or exists already, is a result and not an error unless the function says otherwise.

pub mod cluster_health;
pub mod cluster_reservations;
pub mod cluster_templates;
pub mod pending_changes;
pub mod quotas;
pub mod services;
pub mod unless_exists;

pub use unless_exists::unless_exists;
