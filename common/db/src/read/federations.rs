//! Reading federations: rows that Python services made, as nothing else makes any.

use diesel::dsl::count_star;
use diesel::prelude::*;

use super::{Page, Tenancy, filled};
use crate::connection::{AnyConnection, MultiBackend};
use crate::error::DbError;
use crate::rows::FederationRow;
use crate::schema::federation;
use magnum_common::model::Federation;

type Boxed<'a> = federation::BoxedQuery<'a, MultiBackend>;

/// Which federations a list holds. Empty: all that the tenancy allows. Of a column, the outer `None` does not
/// filter, the inner one wants NULL.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct Filter {
    pub name: Option<Option<String>>,
    pub project_id: Option<Option<String>>,
    pub hostcluster_id: Option<Option<String>>,
    /// Exactly this text of JSON.
    pub member_ids: Option<Option<String>>,
    /// Exactly this text of JSON.
    pub properties: Option<Option<String>>,
    /// Any of these; of none of these there are no federations.
    pub statuses: Option<Vec<String>>,
}

/// The federation with this uuid, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_uuid(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    uuid: &str,
) -> Result<Option<Federation>, DbError> {
    let query = federation::table
        .filter(federation::uuid.eq(uuid.to_owned()))
        .into_boxed();
    one(conn, visible(query, tenancy))
}

/// The federation with this row number, if the caller may see it.
///
/// # Errors
/// The database failed.
pub fn find_by_id(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    id: i32,
) -> Result<Option<Federation>, DbError> {
    let query = federation::table.filter(federation::id.eq(id)).into_boxed();
    one(conn, visible(query, tenancy))
}

/// The federations with this name that the caller may see; two at most, since two are already one too many.
///
/// # Errors
/// The database failed.
pub fn find_by_name(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    name: &str,
) -> Result<Vec<Federation>, DbError> {
    if name.contains('\0') {
        // PostgreSQL cannot hold such a name, nor be asked for it.
        return Ok(Vec::new());
    }
    let query = federation::table
        .filter(federation::name.eq(name.to_owned()))
        .into_boxed();
    let rows: Vec<FederationRow> = visible(query, tenancy)
        .select(FederationRow::as_select())
        .order(federation::id)
        .limit(2)
        .load(conn)?;
    rows.into_iter().map(Federation::try_from).collect()
}

/// One page of federations.
///
/// # Errors
/// The database failed.
pub fn list(
    conn: &mut AnyConnection,
    tenancy: &Tenancy,
    filter: &Filter,
    page: &Page,
) -> Result<Vec<Federation>, DbError> {
    filled(
        page,
        |row: &FederationRow| row.id,
        |page| {
            let mut query = visible(filtered(filter), tenancy);
            if let Some(start) = page.start("federation") {
                query = query.filter(start);
            }
            if let Some(limit) = page.limit {
                query = query.limit(i64::from(limit));
            }
            query
                .select(FederationRow::as_select())
                .order(page.order("federation"))
                .load(conn)
                .map_err(DbError::from)
        },
    )
}

/// How many federations a list without end would hold.
///
/// # Errors
/// The database failed.
pub fn count_listed(conn: &mut AnyConnection, tenancy: &Tenancy, filter: &Filter) -> Result<i64, DbError> {
    let query = visible(filtered(filter), tenancy);
    Ok(query.select(count_star()).get_result(conn)?)
}

fn visible<'a>(query: Boxed<'a>, tenancy: &Tenancy) -> Boxed<'a> {
    match tenancy {
        Tenancy::All => query,
        Tenancy::Project(project) => query.filter(federation::project_id.eq(project.clone())),
        // The table has no user.
        Tenancy::User(_) | Tenancy::Nobody => query.filter(federation::id.lt(0)),
    }
}

fn filtered(filter: &Filter) -> Boxed<'static> {
    let mut query = federation::table.into_boxed();
    macro_rules! equal {
        ($($column:ident),*) => {
            $(match filter.$column.clone() {
                None => {}
                Some(None) => query = query.filter(federation::$column.is_null()),
                Some(Some(value)) => query = query.filter(federation::$column.eq(value)),
            })*
        };
    }
    equal!(name, project_id, hostcluster_id, member_ids, properties);
    if let Some(statuses) = filter.statuses.clone() {
        query = query.filter(federation::status.eq_any(statuses));
    }
    query
}

fn one(conn: &mut AnyConnection, query: Boxed<'_>) -> Result<Option<Federation>, DbError> {
    query
        .select(FederationRow::as_select())
        .first::<FederationRow>(conn)
        .optional()?
        .map(Federation::try_from)
        .transpose()
}
