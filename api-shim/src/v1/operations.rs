//! What happened to a cluster: ours, from microversion 1.15 on. Magnum has nothing like it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::Value;

use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::policy::{Rule, Target};
use crate::request::{ApiRequest, Ident};
use crate::state::App;
use crate::validation::query::{PAGING, Paging};
use crate::views::collection::Page;
use crate::views::operation::{self, FOR_ADMINISTRATORS, FOR_OWNERS};
use crate::{store, views};

/// Most operations on one page: each comes with all that happened to it.
const MOST: u32 = 100;

/// `GET /v1/clusters/{ident}/operations`: also of a cluster that is deleted, by its uuid, for as long as the journal
/// keeps its operations.
///
/// # Errors
/// 400 for a limit, marker or order that is not valid; 404 for a cluster that is neither in the caller's
/// tenant scope nor, deleted, known to the journal as theirs, and a marker that is none of its operations;
/// 406 before 1.15.
pub async fn list(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(cluster): Ident,
) -> Result<Json<Page<Value>>, ApiFault> {
    call.since(Version::OPERATIONS, "operations")?;
    let arguments = call.arguments(PAGING)?;
    let paging = Paging::from_arguments(&arguments, app.max_limit.min(MOST))?;
    call.allow_all_projects(Rule::ClusterGetOperationsAllProjects)?;
    let page = store::operations::page(&app.database, &call.context, cluster, paging.clone()).await?;
    call.authorize(Rule::ClusterGetOperations, &Target::of(&page.owner))?;
    let view = if call.context.is_admin() {
        FOR_ADMINISTRATORS
    } else {
        FOR_OWNERS
    };
    let shown = page
        .operations
        .iter()
        .map(|one| operation::show(one, page.events_of(one), view, call.version));
    Ok(Json(views::collection::page(
        &call.base,
        &format!("clusters/{}/operations", page.cluster),
        "operations",
        shown.collect(),
        page.operations.last().map(|one| one.uuid.as_str()),
        &paging,
    )))
}
