//! Queries that both programs need.
//!
//! Every query takes the tenancy that it has to keep to: there is no way to forget it, only to say
//! [`Tenancy::All`]. Lists leave out a row that cannot be read (its labels are not JSON, say) and log it as an
//! error, so that one broken row does not take the whole list from everybody; asking for that row by name
//! tells what is wrong with it.

pub mod announced_drivers;
pub mod cluster_templates;
pub mod clusters;
pub mod node_groups;
pub mod page;
pub mod records;
pub mod tenancy;

pub use page::{Page, SortDir, SortKey};
pub use tenancy::Tenancy;

use super::error::DbError;

/// Reads rows into the domain type, leaving out those that cannot be read.
fn readable<R, M: TryFrom<R, Error = DbError>>(rows: Vec<R>) -> Vec<M> {
    rows.into_iter()
        .filter_map(|row| {
            M::try_from(row)
                .inspect_err(|error| tracing::error!(error = %error, "a row is left out of a list"))
                .ok()
        })
        .collect()
}
