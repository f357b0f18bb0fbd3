//! The limit by project, inside of the routes: only there it is known who asks.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use super::ApiRequest;
use crate::edge::limits::{RequestLimits, too_often};

/// Middleware inside of the routes, where the caller is known. A caller without a project is limited by user.
pub async fn of_projects(State(limits): State<Arc<RequestLimits>>, request: Request, next: Next) -> Response {
    let context = request.extensions().get::<ApiRequest>().map(|call| &call.context);
    let who = context.and_then(|context| context.project_id().or_else(|| context.user_id()));
    if let Some(who) = who
        && let Err(wait) = limits.ask_as_project(who)
    {
        return too_often(&request, "project", wait);
    }
    next.run(request).await
}
