//! Federations: the rows that there are, and the refusal to make more.
//!
//! No conductor implements federations, Magnum's neither. Where this differs from Magnum: a new one is a 501 and not
//! a 202 that nothing comes of.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use magnum_common::error::Fault;
use magnum_common::model::Federation;
use serde_json::{Value, json};

use crate::faults::ApiFault;
use crate::policy::{Rule, Target};
use crate::request::{ApiRequest, Body, Ident};
use crate::state::App;
use crate::validation::body::Kind;
use crate::validation::patch::{self, Membership};
use crate::validation::query::{Argument, PAGING, Paging};
use crate::validation::{body, federation as rules};
use crate::views::collection::Page;
use crate::{store, views};

/// `GET /v1/federations`
///
/// # Errors
/// 400 for a limit, marker or order that is not valid; 404 for a marker that is no federation in the caller's
/// tenant scope.
pub async fn list(State(app): State<Arc<App>>, call: ApiRequest) -> Result<Json<Page<Value>>, ApiFault> {
    page(
        &app,
        &call,
        Rule::FederationGetAll,
        "federations",
        views::federation::brief,
    )
    .await
}

/// `GET /v1/federations/detail`
///
/// # Errors
/// Those of [`list`].
pub async fn detail(State(app): State<Arc<App>>, call: ApiRequest) -> Result<Json<Page<Value>>, ApiFault> {
    page(
        &app,
        &call,
        Rule::FederationDetail,
        "federations/detail",
        views::federation::full,
    )
    .await
}

async fn page(
    app: &App,
    call: &ApiRequest,
    rule: Rule,
    resource: &str,
    view: fn(&Federation, &str) -> Value,
) -> Result<Json<Page<Value>>, ApiFault> {
    let paging = Paging::from_arguments(&call.arguments(PAGING)?, app.max_limit)?;
    call.authorize_own(rule)?;
    let found = store::federations::page(&app.database, &call.context, paging.clone()).await?;
    let items = found
        .iter()
        .map(|federation| view(federation, &call.base))
        .collect();
    let last = found.last().and_then(|federation| federation.uuid.as_deref());
    Ok(Json(views::collection::page(
        &call.base,
        resource,
        "federations",
        items,
        last,
        &paging,
    )))
}

async fn find(app: &App, call: &ApiRequest, rule: Rule, ident: String) -> Result<Federation, ApiFault> {
    let federation = store::federations::find(&app.database, &call.context, ident).await?;
    call.authorize(rule, &Target::of(&federation))?;
    Ok(federation)
}

/// `GET /v1/federations/{ident}`
///
/// # Errors
/// 404 for a federation that is not in the caller's tenant scope.
pub async fn show(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    Ident(ident): Ident,
) -> Result<Json<Value>, ApiFault> {
    call.arguments(&[])?;
    let federation = find(&app, &call, Rule::FederationGet, ident).await?;
    Ok(Json(views::federation::full(&federation, &call.base)))
}

/// `POST /v1/federations`: checked as if it could be done, and refused.
///
/// # Errors
/// Always one: 400 for a body that breaks the schema, or lacks host cluster, properties or DNS zone; 404 for
/// a host cluster that is not in the caller's tenant scope; else 501.
pub async fn create(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    body: Body,
) -> Result<StatusCode, ApiFault> {
    call.arguments(&[])?;
    let given = body::read(rules::ARGUMENT, &body.json(rules::ARGUMENT)?, rules::FIELDS)?;
    call.authorize_own(Rule::FederationCreate)?;
    store::clusters::find(&app.database, &call.context, rules::host(&given)?).await?;
    rules::check_properties(&given)?;
    Err(ApiFault::from(rules::not_implemented()).with_status(StatusCode::NOT_IMPLEMENTED))
}

/// What a change can be asked with.
pub const UPDATE_ARGUMENTS: &[Argument] = &[Argument::new("rollback", Kind::Boolean)];

/// `PATCH /v1/federations/{ident}`
///
/// # Errors
/// 400 for a wrong or an empty patch; 404 for a federation or a cluster that is not in the caller's tenant
/// scope, and a cluster that is to leave and is no member; 409 for one that is to join and is a member.
pub async fn update(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    Ident(ident): Ident,
    body: Body,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    let rollback = call
        .arguments(UPDATE_ARGUMENTS)?
        .boolean("rollback")?
        .unwrap_or(false);
    let mut patch = patch::read(&body.json("patch")?, &rules::PATCH_RULES)?;
    let before = find(&app, &call, Rule::FederationUpdate, ident).await?;
    if patch.is_empty() {
        let text = "A patch of a federation needs at least one operation.";
        return Err(Fault::invalid_parameter(text).into());
    }
    let mut after = before.clone();
    if let Some(membership) = patch.take_membership("member_ids") {
        let (Membership::Join(named) | Membership::Leave(named)) = &membership;
        let cluster = store::federations::member(&app.database, &call.context, named.clone()).await?;
        rules::move_member(&mut after, &membership, cluster.as_str())?;
    }
    let after = rules::change(&patch, &after)?;
    app.conductor
        .federation_update(&call.context, &before, &after, rollback)
        .await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"uuid": after.uuid}))))
}

/// `DELETE /v1/federations/{ident}`
///
/// # Errors
/// 404 for a federation that is not in the caller's tenant scope.
pub async fn delete(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    Ident(ident): Ident,
) -> Result<StatusCode, ApiFault> {
    call.arguments(&[])?;
    let federation = find(&app, &call, Rule::FederationDelete, ident).await?;
    app.conductor
        .federation_delete(&call.context, federation.uuid.as_deref().unwrap_or_default())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
