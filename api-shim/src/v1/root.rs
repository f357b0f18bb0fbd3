//! Version discovery. Both documents are public.

use axum::Json;
use axum::extract::Request;
use serde_json::Value;

use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::request::{self, ApiRequest};
use crate::validation::query::Arguments;
use crate::views;

/// `GET /`
///
/// # Errors
/// 400 for any argument in the query; 406 where `Accept` excludes JSON.
pub async fn versions(request: Request) -> Result<Json<Value>, ApiFault> {
    request::refuse_other_types(request.headers())?;
    Arguments::parse(request.uri().query(), &[], Version::MIN)?;
    Ok(Json(views::root::versions(&request::base(&request))))
}

/// `GET /v1`
///
/// # Errors
/// Those [of every route](super#errors-of-every-route) that need neither caller nor database: it is public.
pub async fn v1(call: ApiRequest) -> Result<Json<Value>, ApiFault> {
    call.arguments(&[])?;
    Ok(Json(views::root::v1(&call.base)))
}
