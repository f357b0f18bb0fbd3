//! Quotas: how many clusters a project may have. Administrators set them, everybody sees their own.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use magnum_common::error::{Exception, Fault};
use serde_json::Value;

use crate::faults::ApiFault;
use crate::policy::Rule;
use crate::request::{ApiRequest, Body, Idents};
use crate::state::App;
use crate::validation::body::Kind;
use crate::validation::query::{Argument, LIMIT, NUMBERED_MARKER, Paging, SORT_DIR, SORT_KEY};
use crate::validation::{body, quota as rules};
use crate::views::collection::Page;
use crate::{store, views};

fn authorize(call: &ApiRequest, rule: Rule) -> Result<(), ApiFault> {
    Ok(call.authorize_own(rule)?)
}

/// What a list can be asked for.
pub const ARGUMENTS: &[Argument] = &[
    NUMBERED_MARKER,
    LIMIT,
    SORT_KEY,
    SORT_DIR,
    Argument::new("all_tenants", Kind::Boolean),
];

/// `GET /v1/quotas`: of the caller's project, or of all.
///
/// # Errors
/// 400 for a limit, marker, order or `all_tenants` that is not valid; 404 for a marker that is no quota.
pub async fn list(State(app): State<Arc<App>>, call: ApiRequest) -> Result<Json<Page<Value>>, ApiFault> {
    let arguments = call.arguments(ARGUMENTS)?;
    let paging = Paging::numbered(&arguments, app.max_limit)?;
    let all = arguments.boolean("all_tenants")?.unwrap_or(false);
    authorize(&call, Rule::QuotaGetAll)?;
    let all = all && call.context.is_admin();
    let project = (!all).then(|| call.context.project_id().unwrap_or_default().to_owned());
    let quotas = store::quotas::page(&app.database, project, paging.clone()).await?;
    let last = quotas.last().and_then(|quota| quota.id).map(|id| id.to_string());
    let filters: &[(&str, &str)] = if all { &[("all_tenants", "True")] } else { &[] };
    Ok(Json(views::collection::filtered_page(
        &call.base,
        "quotas",
        "quotas",
        quotas.iter().map(views::quota::show).collect(),
        last.as_deref(),
        &paging,
        filters,
    )))
}

/// `GET /v1/quotas/{project}/{resource}`: what was set, else the default. The resource's name is not checked, since
/// only clusters are limited.
///
/// # Errors
/// 403 for another project than the caller's, unless an administrator asks.
pub async fn show(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    Idents(project, resource): Idents,
) -> Result<Json<Value>, ApiFault> {
    call.arguments(&[])?;
    authorize(&call, Rule::QuotaGet)?;
    if !call.context.is_admin() && call.context.project_id() != Some(project.as_str()) {
        return Err(Fault::new(Exception::NotAuthorized, "Not authorized.").into());
    }
    let found = store::quotas::find(&app.database, project.clone(), resource).await?;
    Ok(Json(match &found {
        Some(quota) => views::quota::show(quota),
        None => views::quota::default(&project, app.max_clusters_per_project),
    }))
}

/// A path that names the project only.
pub async fn incomplete() -> ApiFault {
    ApiFault::new(StatusCode::BAD_REQUEST, "Missing argument: \"resource\"")
}

/// `POST /v1/quotas`
///
/// # Errors
/// 400 for a body that breaks the schema or names no project; 404 for a project that Keystone does not have;
/// 409 for one that has a quota. Also the 401, 403 and 503 of [look-ups](super#errors-of-some-routes).
pub async fn create(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    body: Body,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    call.arguments(&[])?;
    let given = body::read(rules::ARGUMENT, &body.json(rules::ARGUMENT)?, rules::FIELDS)?;
    authorize(&call, Rule::QuotaCreate)?;
    let (project, limit) = (rules::project(&given)?, rules::hard_limit(&given)?);
    app.cloud.inquire(&call.context).project(&project).await?;
    let quota = store::quotas::insert(&app.database, project, rules::CLUSTER.to_owned(), limit).await?;
    Ok((StatusCode::CREATED, Json(views::quota::show(&quota))))
}

/// `PATCH /v1/quotas/{project}/{resource}`: a plain object, no JSON patch. What the path says counts.
///
/// # Errors
/// 400 for a body that breaks the schema; 404 where no quota was set.
pub async fn update(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    Idents(project, resource): Idents,
    body: Body,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    call.arguments(&[])?;
    let argument = rules::PATCH_ARGUMENT;
    let given = body::read(argument, &body.json(argument)?, rules::FIELDS)?;
    authorize(&call, Rule::QuotaUpdate)?;
    let limit = rules::hard_limit(&given)?;
    let quota = store::quotas::update(&app.database, project, resource, limit).await?;
    Ok((StatusCode::ACCEPTED, Json(views::quota::show(&quota))))
}

/// `DELETE /v1/quotas/{project}/{resource}`
///
/// # Errors
/// 404 where no quota was set.
pub async fn delete(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    Idents(project, resource): Idents,
) -> Result<StatusCode, ApiFault> {
    call.arguments(&[])?;
    authorize(&call, Rule::QuotaDelete)?;
    store::quotas::delete(&app.database, project, resource).await?;
    Ok(StatusCode::NO_CONTENT)
}
