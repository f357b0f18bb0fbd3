//! Cluster templates: the one resource that the API writes itself.

use magnum_common::clock;
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::TemplateUuid;
use magnum_common::model::ClusterTemplate;
use magnum_db::read::cluster_templates::Visibility;
use magnum_db::read::{self, SortKey};
use magnum_db::write::cluster_templates::Written;
use magnum_db::{AnyConnection, Database, DbError, lock, write};

use super::{Ident, StoreError, only, page_of, reading};
use crate::validation::query::Paging;

/// The template with this uuid or name, if it is visible to the caller.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn find(
    database: &Database,
    context: &RequestContext,
    ident: String,
) -> Result<ClusterTemplate, StoreError> {
    look_up(database, context, ident, false).await
}

/// The same for a new cluster, where Magnum takes the row's number too.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn find_or_number(
    database: &Database,
    context: &RequestContext,
    ident: String,
) -> Result<ClusterTemplate, StoreError> {
    look_up(database, context, ident, true).await
}

async fn look_up(
    database: &Database,
    context: &RequestContext,
    ident: String,
    numbers: bool,
) -> Result<ClusterTemplate, StoreError> {
    let visibility = Visibility::of(context);
    reading(database, move |connection| {
        let number = ident.parse::<i32>().ok().filter(|_| numbers);
        let found = match (number, Ident::of(&ident)) {
            (Some(number), _) => read::cluster_templates::find_by_id(connection, &visibility, number)?
                .into_iter()
                .collect(),
            (None, Ident::Uuid(uuid)) => {
                let uuid = TemplateUuid::from(uuid);
                read::cluster_templates::find_by_uuid(connection, &visibility, &uuid)?
                    .into_iter()
                    .collect()
            }
            (None, Ident::Name(name)) => {
                read::cluster_templates::find_by_name(connection, &visibility, &name)?
            }
        };
        Ok(only(
            found,
            || Fault::cluster_template_not_found(&ident),
            "Multiple ClusterTemplates exist with same name. Please use the ClusterTemplate uuid instead.",
        )?)
    })
    .await
}

/// One page of the templates that the caller may see.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn page(
    database: &Database,
    context: &RequestContext,
    paging: Paging,
) -> Result<Vec<ClusterTemplate>, StoreError> {
    let visibility = Visibility::of(context);
    reading(database, move |connection| {
        let after = match &paging.marker {
            None => None,
            Some(marker) => {
                let uuid = TemplateUuid::from(marker.as_str());
                let template = read::cluster_templates::find_by_uuid(connection, &visibility, &uuid)?;
                template
                    .ok_or_else(|| Fault::cluster_template_not_found(marker))?
                    .id
            }
        };
        let page = page_of(&paging, SortKey::of_cluster_template(&paging.sort_key), after)?;
        Ok(read::cluster_templates::list(connection, &visibility, &page)?)
    })
    .await
}

/// Inserts a template and returns it as its row is.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn insert(
    database: &Database,
    mut template: ClusterTemplate,
) -> Result<ClusterTemplate, StoreError> {
    template.created_at = Some(clock::row_now());
    database
        .transaction(move |connection| {
            match write::cluster_templates::insert(connection, &template) {
                Err(DbError::UniqueViolation { .. }) => {
                    return Err(StoreError::Refused(Fault::new(
                        Exception::ClusterTemplateAlreadyExists,
                        format!("A ClusterTemplate with UUID {} already exists.", template.uuid),
                    )));
                }
                other => other?,
            }
            row_of(connection, &template.uuid)
        })
        .await
}

/// Writes what changed and returns the template as its row is. `None`: the row is not as it was `before`, and
/// nothing was written.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn update(
    database: &Database,
    before: ClusterTemplate,
    after: ClusterTemplate,
) -> Result<Option<ClusterTemplate>, StoreError> {
    database
        .transaction(move |connection| {
            if lock::cluster_template(connection, &before.uuid)?
                && row_of(connection, &before.uuid)? != before
            {
                return Ok(None);
            }
            let written = write::cluster_templates::update(connection, &before, &after)?;
            told(&written, &before.uuid)?;
            row_of(connection, &before.uuid).map(Some)
        })
        .await
}

/// Deletes a template that no cluster uses.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn delete(database: &Database, uuid: TemplateUuid) -> Result<(), StoreError> {
    database
        .transaction(move |connection| {
            let written = write::cluster_templates::delete(connection, &uuid)?;
            Ok(told(&written, &uuid)?)
        })
        .await
}

fn row_of(connection: &mut AnyConnection, uuid: &TemplateUuid) -> Result<ClusterTemplate, StoreError> {
    let row = read::cluster_templates::find_by_uuid(connection, &Visibility::all(), uuid)?;
    Ok(row.ok_or_else(|| Fault::cluster_template_not_found(uuid.as_str()))?)
}

fn told(written: &Written, uuid: &TemplateUuid) -> Result<(), Fault> {
    match written {
        Written::Done => Ok(()),
        Written::Absent => Err(Fault::cluster_template_not_found(uuid.as_str())),
        Written::Referenced => Err(Fault::new(
            Exception::ClusterTemplateReferenced,
            format!("ClusterTemplate {uuid} is referenced by one or multiple clusters."),
        )),
    }
}
