//! Rows of Magnum's tables, and their conversion to and from the domain types.
//!
//! A row struct is a table: every column in the database's own types, `Option` where it may be NULL. It is read,
//! and inserted (without its number). Reading into the domain type is lenient where a value is only for show
//! (an unknown status reads as none, with a warning) and strict where guessing could do harm (labels that are
//! not a JSON object are [`DbError::Corrupt`](super::DbError::Corrupt)).
//!
//! Updates write what changed and nothing else, as Magnum does: other services write other columns of the same
//! row at the same time. `XRow::changes_since` gives those columns; it sets `updated_at` too.

pub mod cluster;
pub mod cluster_template;
pub mod json;
pub mod node_group;
pub mod records;
pub mod text;

pub use cluster::{ClusterChanges, ClusterRow};
pub use cluster_template::{ClusterTemplateChanges, ClusterTemplateRow};
pub use node_group::{NodeGroupChanges, NodeGroupRow};
pub use records::{FederationRow, MagnumServiceRow, QuotaRow, X509KeyPairRow};
pub use text::{FreeText, RowTime};

/// A row struct and its set of changes, for a table in which every column but the number may be NULL.
macro_rules! row {
    (
        $(#[$doc:meta])*
        $row:ident, $changes:ident, $table:ident { $($column:ident: $kind:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, PartialEq, diesel::Queryable, diesel::Selectable, diesel::Insertable,
        )]
        #[diesel(table_name = crate::schema::$table, treat_none_as_default_value = false)]
        #[expect(missing_docs, reason = "the names are the columns'")]
        pub struct $row {
            #[diesel(skip_insertion)]
            pub id: i32,
            $(pub $column: Option<$kind>,)*
            pub created_at: Option<crate::rows::RowTime>,
            pub updated_at: Option<crate::rows::RowTime>,
        }

        /// Columns to set. The outer `None` leaves a column alone, the inner one writes NULL.
        #[derive(Debug, Clone, PartialEq, diesel::AsChangeset)]
        #[diesel(table_name = crate::schema::$table)]
        #[expect(missing_docs, reason = "the names are the columns'")]
        pub struct $changes {
            $(pub $column: Option<Option<$kind>>,)*
            pub updated_at: crate::rows::RowTime,
        }

        impl Default for $changes {
            fn default() -> Self {
                Self {
                    $($column: None,)*
                    updated_at: crate::rows::RowTime::now(),
                }
            }
        }

        impl $changes {
            /// Whether nothing but `updated_at` would be written.
            pub fn is_empty(&self) -> bool {
                true $(&& self.$column.is_none())*
            }
        }

        impl $row {
            /// The columns in which this row differs from an older state of it.
            pub fn changes_since(&self, old: &Self) -> $changes {
                $changes {
                    $($column: (self.$column != old.$column).then(|| self.$column.clone()),)*
                    updated_at: crate::rows::RowTime::now(),
                }
            }
        }
    };
}
use row;

use magnum_common::model::Timestamp;

fn time(time: Option<RowTime>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

/// A status that this release does not know must not hide the whole row.
fn lenient<T>(text: Option<String>, table: &'static str, row: &str) -> Option<T>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let text = text?;
    text.parse()
        .inspect_err(
            |error| tracing::warn!(table, row, error = %error, "an unknown value in a row reads as none"),
        )
        .ok()
}
