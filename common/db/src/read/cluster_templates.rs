//! Reading cluster templates. Other than clusters, some are visible to everybody.

use diesel::dsl::exists;
use diesel::prelude::*;

use super::{Page, Tenancy, filled, readable};
use crate::MOST_BINDS;
use crate::connection::{AnyConnection, MultiBackend};
use crate::error::DbError;
use crate::rows::ClusterTemplateRow;
use crate::schema::{cluster, cluster_template};
use magnum_common::context::RequestContext;
use magnum_common::ids::TemplateUuid;
use magnum_common::model::ClusterTemplate;

type Boxed<'a> = cluster_template::BoxedQuery<'a, MultiBackend>;

/// Which templates a caller may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visibility {
    own: Tenancy,
    /// Public templates that are hidden as well.
    hidden_public: bool,
}

impl Visibility {
    /// A caller's own templates, all public ones that are not hidden, and for administrators the hidden public
    /// ones too.
    pub fn of(context: &RequestContext) -> Self {
        Self {
            own: Tenancy::of(context),
            hidden_public: context.is_admin(),
        }
    }

    /// Everything: for the program itself, which has to find a cluster's template regardless of its visibility.
    pub const fn all() -> Self {
        Self {
            own: Tenancy::All,
            hidden_public: true,
        }
    }

    fn filter<'a>(&self, query: Boxed<'a>) -> Boxed<'a> {
        use cluster_template::{hidden, project_id, public, user_id};

        // Parentheses of their own: what was filtered before must hold for public templates as well.
        let mut shown: Box<dyn BoxableExpression<cluster_template::table, MultiBackend, SqlType = _>> =
            Box::new(public.eq(true).and(hidden.eq(false).or(hidden.is_null())));
        if self.hidden_public {
            shown = Box::new(public.eq(true));
        }
        match &self.own {
            Tenancy::All => query,
            Tenancy::Project(project) => query.filter(project_id.eq(project.clone()).or(shown)),
            Tenancy::User(user) => query.filter(user_id.eq(user.clone()).or(shown)),
            Tenancy::Nobody => query.filter(shown),
        }
    }
}

/// The template with this uuid, if it is visible.
///
/// # Errors
/// The database failed.
pub fn find_by_uuid(
    conn: &mut AnyConnection,
    visibility: &Visibility,
    uuid: &TemplateUuid,
) -> Result<Option<ClusterTemplate>, DbError> {
    let query = cluster_template::table
        .filter(cluster_template::uuid.eq(uuid.to_string()))
        .into_boxed();
    one(conn, visibility.filter(query))
}

/// The template with this row number, if it is visible.
///
/// # Errors
/// The database failed.
pub fn find_by_id(
    conn: &mut AnyConnection,
    visibility: &Visibility,
    id: i32,
) -> Result<Option<ClusterTemplate>, DbError> {
    one(
        conn,
        visibility.filter(
            cluster_template::table
                .filter(cluster_template::id.eq(id))
                .into_boxed(),
        ),
    )
}

/// The visible templates with this name; two at most, since two are already one too many for a caller who
/// wants one. MySQL's collation compares names without regard to case.
///
/// # Errors
/// The database failed.
pub fn find_by_name(
    conn: &mut AnyConnection,
    visibility: &Visibility,
    name: &str,
) -> Result<Vec<ClusterTemplate>, DbError> {
    if name.contains('\0') {
        // PostgreSQL cannot hold such a name, nor be asked for it.
        return Ok(Vec::new());
    }
    let query = cluster_template::table
        .filter(cluster_template::name.eq(name.to_owned()))
        .into_boxed();
    let rows: Vec<ClusterTemplateRow> = visibility
        .filter(query)
        .select(ClusterTemplateRow::as_select())
        .order(cluster_template::id)
        .limit(2)
        .load(conn)?;
    rows.into_iter().map(ClusterTemplate::try_from).collect()
}

/// The templates with these uuids, regardless of visibility, in one query: for the clusters of a list.
///
/// # Errors
/// The database failed.
pub fn with_uuids(conn: &mut AnyConnection, uuids: &[TemplateUuid]) -> Result<Vec<ClusterTemplate>, DbError> {
    let mut rows: Vec<ClusterTemplateRow> = Vec::new();
    for part in uuids.chunks(MOST_BINDS) {
        let query: Boxed<'_> = cluster_template::table.into_boxed();
        let query = match part {
            // As for node groups: one statement that stays prepared.
            [one] => query.filter(cluster_template::uuid.eq(one.to_string())),
            many => {
                let texts: Vec<String> = many.iter().map(ToString::to_string).collect();
                query.filter(cluster_template::uuid.eq_any(texts))
            }
        };
        rows.extend(
            query
                .select(ClusterTemplateRow::as_select())
                .load::<ClusterTemplateRow>(conn)?,
        );
    }
    Ok(readable(rows))
}

/// One page of the visible templates.
///
/// # Errors
/// The database failed.
pub fn list(
    conn: &mut AnyConnection,
    visibility: &Visibility,
    page: &Page,
) -> Result<Vec<ClusterTemplate>, DbError> {
    filled(
        page,
        |row: &ClusterTemplateRow| row.id,
        |page| {
            let mut query = visibility.filter(cluster_template::table.into_boxed());
            if let Some(start) = page.start("cluster_template") {
                query = query.filter(start);
            }
            if let Some(limit) = page.limit {
                query = query.limit(i64::from(limit));
            }
            query
                .select(ClusterTemplateRow::as_select())
                .order(page.order("cluster_template"))
                .load(conn)
                .map_err(DbError::from)
        },
    )
}

/// Whether any cluster, of whatever project, was made from the template.
///
/// # Errors
/// The database failed.
pub fn is_referenced(conn: &mut AnyConnection, uuid: &TemplateUuid) -> Result<bool, DbError> {
    let users = cluster::table.filter(cluster::cluster_template_id.eq(uuid.to_string()));
    Ok(diesel::select(exists(users)).get_result(conn)?)
}

fn one(conn: &mut AnyConnection, query: Boxed<'_>) -> Result<Option<ClusterTemplate>, DbError> {
    query
        .select(ClusterTemplateRow::as_select())
        .first::<ClusterTemplateRow>(conn)
        .optional()?
        .map(ClusterTemplate::try_from)
        .transpose()
}
