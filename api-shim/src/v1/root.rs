//! Version discovery. Both documents are public.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use serde_json::Value;

use crate::faults::ApiFault;
use crate::request::{self, Call};
use crate::state::App;
use crate::views;

/// `GET /`
pub async fn versions(State(app): State<Arc<App>>, request: Request) -> Json<Value> {
    Json(views::root::versions(&request::base(
        &request,
        app.trust_proxy_headers,
    )))
}

/// `GET /v1`
pub async fn v1(call: Call) -> Result<Json<Value>, ApiFault> {
    call.arguments(&[])?;
    Ok(Json(views::root::v1(&call.base)))
}
