//! Writes that both programs make, and the ones whose rules belong to the table.

pub mod cluster_reservations;
pub mod cluster_templates;
pub mod quotas;
pub mod services;
pub mod unless_exists;

pub use unless_exists::unless_exists;
