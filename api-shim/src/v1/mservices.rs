//! The services, for administrators.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use magnum_common::clock;
use serde_json::{Value, json};

use crate::faults::ApiFault;
use crate::policy::Rule;
use crate::request::ApiRequest;
use crate::state::App;
use crate::{store, views};

/// `GET /v1/mservices`
///
/// # Errors
/// Only [those of every route](super#errors-of-every-route).
pub async fn list(State(app): State<Arc<App>>, call: ApiRequest) -> Result<Json<Value>, ApiFault> {
    call.arguments(&[])?;
    call.authorize_own(Rule::ServiceGetAll)?;
    let services = store::services(&app.database).await?;
    let now = clock::utc_now().naive_utc();
    let down_after = i64::try_from(app.service_down_time.as_secs()).unwrap_or(i64::MAX);
    let items: Vec<Value> = services
        .iter()
        .map(|service| views::mservice::show(service, now, down_after))
        .collect();
    Ok(Json(json!({"mservices": items})))
}
