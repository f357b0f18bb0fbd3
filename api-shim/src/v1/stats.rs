//! Statistics: how many clusters and nodes a project has, or the whole cloud. Masters are nodes, too.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use magnum_common::error::{Exception, Fault};
use serde_json::{Value, json};

use crate::faults::ApiFault;
use crate::policy::Rule;
use crate::request::ApiRequest;
use crate::state::App;
use crate::store;
use crate::validation::body::FREE_TEXT;
use crate::validation::query::Argument;

/// What can be asked for.
pub const ARGUMENTS: &[Argument] = &[
    Argument::new("project_id", FREE_TEXT),
    Argument::new("type", FREE_TEXT),
];

/// What is counted.
pub const COUNTS: &[&str] = &["clusters", "nodes"];

/// `GET /v1/stats`: of one project; for an administrator who names none, of all.
///
/// # Errors
/// 400 for a type other than `cluster`; 403 for another project than the caller's, unless an administrator
/// asks.
pub async fn show(State(app): State<Arc<App>>, call: ApiRequest) -> Result<Json<Value>, ApiFault> {
    let arguments = call.arguments(ARGUMENTS)?;
    call.authorize_own(Rule::StatsGetAll)?;
    if !arguments
        .get("type")
        .unwrap_or("cluster")
        .eq_ignore_ascii_case("cluster")
    {
        let text = "Invalid stats type. Allowed values are 'cluster'";
        return Err(Fault::invalid_parameter(text).into());
    }
    let named = arguments.get("project_id").filter(|project| !project.is_empty());
    let project = match named {
        _ if call.context.is_admin() => named,
        None => call.context.project_id(),
        Some(project) if call.context.project_id() == Some(project) => named,
        Some(_) => return Err(Fault::new(Exception::NotAuthorized, "Not authorized.").into()),
    };
    let (clusters, nodes) = store::stats(&app.database, project.map(str::to_owned)).await?;
    let counts = COUNTS
        .iter()
        .map(|name| (*name).to_owned())
        .zip([json!(clusters), json!(nodes)]);
    Ok(Json(Value::Object(counts.collect())))
}
