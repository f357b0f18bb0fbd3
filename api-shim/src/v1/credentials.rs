//! The credential that a cluster uses towards its cloud: a new one, asked of a conductor.
//!
//! Where this differs from Magnum: an administrator who is a member of some project may do so in every project.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::policy::Rule;
use crate::request::{ApiRequest, Ident};
use crate::state::App;
use crate::store;

/// `PATCH /v1/credentials/{cluster}`
///
/// # Errors
/// 400 where status or driver do not allow it; 404 for a cluster that is not in the caller's tenant scope;
/// 406 before 1.12; 409 for a rotation that is stopped; 500 where the driver fails.
pub async fn rotate(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    call.since(Version::CREDENTIALS, "credentials")?;
    call.arguments(&[])?;
    call.authorize_own(Rule::CredentialRotate)?;
    call.allow_all_projects(Rule::CredentialRotateAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    app.conductor
        .credential_rotate(&call.context, &found.cluster)
        .await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"uuid": found.cluster.uuid}))))
}
