//! A driver's own API: ours, from microversion 1.16 on. Magnum has nothing like it.
//!
//! In this order, so that nobody learns anything of a cluster that is not theirs, nor of drivers that the operator has
//! not opened: version, cluster, `[drivers] custom_api`, route and method, policy, body and query. The rule is the
//! driver's to name; one that neither Magnum's defaults nor a policy file define lets nobody pass. The conductor checks
//! all but the rule again, and that it was the right one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use magnum_common::error::Fault;
use magnum_drivers::api_exchange::{LARGEST_BODY, LONGEST_QUERY, MOST_ARGUMENTS};
use magnum_drivers::{ApiAnswer, ApiMethod, ApiQuestion, DriverInfo, FoundRoute};
use magnum_telemetry::field;
use serde_json::Value;

use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::policy::{Rule, Target};
use crate::request::{ApiRequest, Body, Idents};
use crate::state::App;
use crate::store;
use crate::store::clusters::FoundCluster;

/// `GET` and `DELETE /v1/clusters/{ident}/driver/{path}`: without a body.
///
/// # Errors
/// 400 for a query that is too long; 404 for an unknown cluster or route, a deleted template, and a driver
/// that `[drivers] custom_api` does not name; 406 before 1.16; 409 for a change while something works on the
/// cluster; 500 where the driver fails; 501 where driver or conductor cannot do it; 503 where no conductor
/// has the driver, or room for the call; 504 without a reply in time; 400, 404, 409 and 422 as the driver
/// says.
///
/// A wrong method is no error here but a response, 405, for its header `Allow`.
pub async fn ask(
    State(app): State<Arc<App>>,
    method: Method,
    call: ApiRequest,
    idents: Idents,
) -> Result<Response, ApiFault> {
    handed_on(&app, method, call, idents, None).await
}

/// `POST`, `PUT` and `PATCH /v1/clusters/{ident}/driver/{path}`: with an object, or nothing, as body.
///
/// # Errors
/// Those of [`ask`], 400 for a body that is no object, and 413 for one that is too large for a driver.
pub async fn ask_with_body(
    State(app): State<Arc<App>>,
    method: Method,
    call: ApiRequest,
    idents: Idents,
    body: Body,
) -> Result<Response, ApiFault> {
    handed_on(&app, method, call, idents, Some(body)).await
}

async fn handed_on(
    app: &App,
    method: Method,
    mut call: ApiRequest,
    Idents(ident, path): Idents,
    body: Option<Body>,
) -> Result<Response, ApiFault> {
    call.since(Version::DRIVER_API, "driver")?;
    call.allow_all_projects(Rule::ClusterDriverApiAllProjects)?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    let driver = driver_of(app, &found).await?;
    // The router serves no other methods.
    let method: ApiMethod = method.as_str().parse().map_err(|()| ApiFault::internal())?;
    let route = match driver.api.find(&path, method) {
        FoundRoute::Route(route) => route,
        FoundRoute::OtherMethods(methods) => return Ok(other_methods(&methods)),
        FoundRoute::None => return Err(ApiFault::framework(StatusCode::NOT_FOUND, "")),
    };
    call.authorize_named(&route.policy, &Target::of(&found.cluster))?;
    let question = ApiQuestion {
        uuid: found.cluster.uuid.to_string(),
        policy: route.policy.clone(),
        path,
        method,
        query: query(&call)?,
        body: body_of(body)?,
        timeout_ms: u64::try_from(app.driver_call_times.driver.as_millis()).unwrap_or(u64::MAX),
    };
    tracing::Span::current().record(field::CLUSTER, found.cluster.uuid.as_str());
    let answer = app
        .conductor
        .cluster_driver_call(&call.context, &question, app.driver_call_times.patience)
        .await
        .map_err(ApiFault::of_driver_call)?;
    tracing::info!(
        { field::DRIVER } = driver.name, { field::HTTP_METHOD } = %method, path = question.path,
        "a conductor has answered for the driver's own API"
    );
    match answer {
        ApiAnswer::Replied { status, body } => replied(status, body),
        ApiAnswer::Refused { because, reason } => Err(ApiFault::of_driver_refusal(because, reason)),
    }
}

/// The driver of a cluster, if users may call it.
async fn driver_of(app: &App, found: &FoundCluster) -> Result<DriverInfo, ApiFault> {
    let template = found
        .template
        .as_ref()
        .ok_or_else(|| Fault::cluster_template_not_found(found.cluster.cluster_template_id.as_str()))?;
    let built = app.drivers.that_built(&found.cluster, template).await?;
    if !app.custom_api.contains(&built.name) {
        return Err(ApiFault::framework(StatusCode::NOT_FOUND, ""));
    }
    built.info.ok_or_else(|| {
        ApiFault::new(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("No conductor that runs has announced the driver {}.", built.name),
        )
    })
}

fn other_methods(methods: &[ApiMethod]) -> Response {
    let names: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
    let mut response = ApiFault::framework(StatusCode::METHOD_NOT_ALLOWED, "").into_response();
    if let Ok(allowed) = HeaderValue::from_str(&names.join(", ")) {
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// The query's arguments, which are the driver's to understand.
fn query(call: &ApiRequest) -> Result<Vec<(String, String)>, ApiFault> {
    let query = call.free_arguments();
    let bytes: usize = query.iter().map(|(name, value)| name.len() + value.len()).sum();
    if query.len() > MOST_ARGUMENTS || bytes > LONGEST_QUERY {
        return Err(ApiFault::new(
            StatusCode::BAD_REQUEST,
            format!(
                "The query of a driver's own API has at most {MOST_ARGUMENTS} arguments and {LONGEST_QUERY} bytes."
            ),
        ));
    }
    Ok(query)
}

/// The body: an object, or null where there is none.
fn body_of(body: Option<Body>) -> Result<Value, ApiFault> {
    let Some(body) = body else {
        return Ok(Value::Null);
    };
    let given = body.object_or_null()?;
    if given.to_string().len() > LARGEST_BODY {
        return Err(ApiFault::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("The body for a driver's own API has at most {LARGEST_BODY} bytes."),
        ));
    }
    Ok(given)
}

/// What the driver replied. Its refusals get the shape of all other faults, so that every client can show them.
fn replied(status: u16, body: Value) -> Result<Response, ApiFault> {
    match (status, body) {
        (200, body) => Ok((StatusCode::OK, Json(body)).into_response()),
        (202, body) => Ok((StatusCode::ACCEPTED, Json(body)).into_response()),
        (204, Value::Null) => Ok(StatusCode::NO_CONTENT.into_response()),
        (400 | 404 | 409 | 422, Value::String(text)) => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            Err(ApiFault::new(status, text))
        }
        (status, _) => {
            tracing::warn!(
                { field::HTTP_STATUS } = status,
                "a conductor hands on a reply that no driver may give"
            );
            Err(ApiFault::internal())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_reply_is_handed_on_and_a_refusal_becomes_a_fault() {
        for status in [200, 202] {
            assert_eq!(replied(status, json!([1])).unwrap().status().as_u16(), status);
        }
        assert_eq!(replied(204, Value::Null).unwrap().status().as_u16(), 204);
        for status in [400, 404, 409, 422] {
            let fault = replied(status, json!("no such node")).unwrap_err();
            assert_eq!(
                (fault.status().as_u16(), fault.detail()),
                (status, "no such node")
            );
        }
    }

    #[test]
    fn reply_outside_of_the_limits_is_an_error_of_the_service() {
        for (status, body) in [
            (204, json!(1)),
            (409, json!({})),
            (500, json!("a traceback")),
            (301, json!("x")),
        ] {
            let fault = replied(status, body).unwrap_err();
            assert_eq!(fault.status().as_u16(), 500);
            assert!(!fault.detail().contains("traceback"));
        }
    }

    #[test]
    fn a_405_names_the_methods_that_there_are() {
        let response = other_methods(&[ApiMethod::Get, ApiMethod::Put]);
        assert_eq!(response.status().as_u16(), 405);
        assert_eq!(response.headers()[header::ALLOW], "GET, PUT");
    }
}
