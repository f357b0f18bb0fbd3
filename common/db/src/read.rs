//! Queries that both programs need.
//!
//! Every query takes the tenancy that it has to keep to: there is no way to forget it, only to say
//! [`Tenancy::All`]. Lists leave out a row that cannot be read (its labels are not JSON, say) and log it as an
//! error, so that one broken row does not fail the whole list; a lookup of that row by name returns
//! [`super::DbError::Corrupt`]. A page that loses a row is filled up with the rows after it.
//!
//! # Errors
//! Every query returns a [`super::DbError`] when the database fails.

pub mod announced_drivers;
pub mod cluster_drivers;
pub mod cluster_reservations;
pub mod cluster_templates;
pub mod clusters;
pub mod federations;
pub mod key_pairs;
pub mod node_groups;
pub mod operations;
pub mod page;
pub mod pending_changes;
pub mod records;
pub mod tenancy;

pub use page::{Page, SortDir, SortKey};
pub use tenancy::Tenancy;

use super::error::DbError;

/// One page: as many rows as it holds, from as many queries as that takes. That is one, unless rows on it cannot be
/// read: then the page is filled up with what comes after them, since a client takes a short page for the last one.
fn filled<R, M: TryFrom<R, Error = DbError>>(
    page: &Page,
    number: impl Fn(&R) -> i32,
    mut rows_of: impl FnMut(&Page) -> Result<Vec<R>, DbError>,
) -> Result<Vec<M>, DbError> {
    let mut found = Vec::new();
    let mut rest = *page;
    loop {
        let rows = rows_of(&rest)?;
        let read = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        rest.after = rows.last().map(&number);
        found.extend(readable(rows));
        let Some(limit) = rest.limit.filter(|limit| read >= *limit) else {
            return Ok(found);
        };
        let wanted = page.limit.unwrap_or(limit);
        let missing = wanted.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
        if missing == 0 || read == 0 {
            return Ok(found);
        }
        rest.limit = Some(missing);
    }
}

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
