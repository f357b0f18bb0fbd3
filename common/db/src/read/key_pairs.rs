//! Reading key pairs of the `x509keypair` store, for callers who may see only their own.

use diesel::prelude::*;

use super::tenancy::keep_to;
use super::{Page, Tenancy};
use crate::connection::{AnyConnection, MultiBackend};
use crate::error::DbError;
use crate::rows::X509KeyPairRow;
use crate::schema::x509keypair;
use magnum_common::model::X509KeyPair;

type Boxed<'a> = x509keypair::BoxedQuery<'a, MultiBackend>;

/// Which key pairs a list holds. The outer `None` does not filter, the inner one wants NULL.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct Filter {
    pub project_id: Option<Option<String>>,
    pub user_id: Option<Option<String>>,
}

/// The key pair with this uuid, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_uuid(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    uuid: &str,
) -> Result<Option<X509KeyPair>, DbError> {
    let query = x509keypair::table
        .filter(x509keypair::uuid.eq(uuid.to_owned()))
        .into_boxed();
    one(conn, keep_to!(query, tenancy, x509keypair))
}

/// The key pair with this row number, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_id(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    id: i32,
) -> Result<Option<X509KeyPair>, DbError> {
    let query = x509keypair::table.filter(x509keypair::id.eq(id)).into_boxed();
    one(conn, keep_to!(query, tenancy, x509keypair))
}

/// One page of key pairs.
///
/// # Errors
/// The database failed.
pub fn list(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<X509KeyPair>, DbError> {
    let mut query = keep_to!(x509keypair::table.into_boxed(), tenancy, x509keypair);
    match filter.project_id.clone() {
        None => {}
        Some(None) => query = query.filter(x509keypair::project_id.is_null()),
        Some(Some(project)) => query = query.filter(x509keypair::project_id.eq(project)),
    }
    match filter.user_id.clone() {
        None => {}
        Some(None) => query = query.filter(x509keypair::user_id.is_null()),
        Some(Some(user)) => query = query.filter(x509keypair::user_id.eq(user)),
    }
    if let Some(start) = page.start("x509keypair") {
        query = query.filter(start);
    }
    if let Some(limit) = page.limit {
        query = query.limit(i64::from(limit));
    }
    let rows: Vec<X509KeyPairRow> = query
        .select(X509KeyPairRow::as_select())
        .order(page.order("x509keypair"))
        .load(conn)?;
    Ok(rows.into_iter().map(X509KeyPair::from).collect())
}

fn one(conn: &mut AnyConnection, query: Boxed<'_>) -> Result<Option<X509KeyPair>, DbError> {
    Ok(query
        .select(X509KeyPairRow::as_select())
        .first::<X509KeyPairRow>(conn)
        .optional()?
        .map(X509KeyPair::from))
}
