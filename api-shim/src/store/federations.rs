//! Federations: rows that Python services made, as nothing else makes any.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Federation;
use magnum_db::Database;
use magnum_db::read::{self, SortKey, Tenancy};

use super::{Ident, StoreError, only, page_of, reading};
use crate::validation::query::Paging;

fn not_found(ident: &str) -> Fault {
    Fault::new(
        Exception::FederationNotFound,
        format!("Federation {ident} could not be found."),
    )
}

/// One page of the federations that the caller may see.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn page(
    database: &Database,
    context: &RequestContext,
    paging: Paging,
) -> Result<Vec<Federation>, StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let after = match &paging.marker {
            None => None,
            Some(marker) => {
                let found = read::federations::find_by_uuid(connection, &tenancy, marker)?;
                found.ok_or_else(|| not_found(marker))?.id
            }
        };
        let page = page_of(&paging, SortKey::of_federation(&paging.sort_key), after)?;
        let filter = read::federations::Filter::default();
        Ok(read::federations::list(connection, &tenancy, &filter, &page)?)
    })
    .await
}

/// The federation with this uuid or name.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn find(
    database: &Database,
    context: &RequestContext,
    ident: String,
) -> Result<Federation, StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let found = match Ident::of(&ident) {
            Ident::Uuid(uuid) => read::federations::find_by_uuid(connection, &tenancy, &uuid)?
                .into_iter()
                .collect(),
            Ident::Name(name) => read::federations::find_by_name(connection, &tenancy, &name)?,
        };
        Ok(only(
            found,
            || not_found(&ident),
            "Multiple federations exist with same name. Please use the federation uuid instead.",
        )?)
    })
    .await
}

/// The uuid of a cluster that shall join or leave, by its uuid only.
///
/// # Errors
/// The database failed, or what it holds refuses the request: see [`StoreError`].
pub async fn member(
    database: &Database,
    context: &RequestContext,
    uuid: String,
) -> Result<ClusterUuid, StoreError> {
    let tenancy = Tenancy::of(context);
    reading(database, move |connection| {
        let found = match Ident::of(&uuid) {
            Ident::Uuid(uuid) => {
                read::clusters::find_by_uuid(connection, &tenancy, &ClusterUuid::from(uuid))?
            }
            Ident::Name(_) => None,
        };
        Ok(found.ok_or_else(|| Fault::cluster_not_found(&uuid))?.uuid)
    })
    .await
}
