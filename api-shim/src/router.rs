//! The routes of the table ([`crate::routes`]), with everything around them.
//!
//! Paths arrive in one form ([`crate::edge::path::rewrite`]): with `/v1` in front and without a slash at the end. What is
//! not here is an honest 404.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get};
use tower_http::catch_panic::CatchPanicLayer;

use crate::edge::{arrival, render};
use crate::request::limit;
use crate::routes::{Body, ROUTES};
use crate::state::App;
use crate::v1::{quotas, root};
use crate::{auth, faults, request};

/// The routes, with what belongs to them. Innermost first: the limit by project, version, which route it is, identity,
/// panics, fault bodies. Identity stands before the routing, so that nobody learns without a token what is there. What
/// a request meets before is in [`crate::edge`].
pub fn routes(app: Arc<App>) -> Router {
    let mut v1 = Router::new()
        // Paths that say what is missing.
        .route("/v1/clusters/{ident}/actions", MethodRouter::new())
        .route("/v1/clusters/{ident}/actions/{action}", MethodRouter::new())
        .route(
            "/v1/quotas/{project}",
            get(quotas::incomplete)
                .patch(quotas::incomplete)
                .delete(quotas::incomplete),
        );
    let refuse_body = from_fn_with_state(Arc::clone(&app), request::refuse_body);
    for route in ROUTES {
        let mut handler = route.handler();
        if matches!(route.body, Body::None) && route.looks_at_a_body() {
            handler = handler.route_layer(refuse_body.clone());
        }
        v1 = v1.route(route.path, handler);
    }
    let v1 = v1
        .route_layer(from_fn_with_state(Arc::clone(&app.limits), limit::of_projects))
        .route_layer(from_fn_with_state(Arc::clone(&app), request::enter));

    Router::new()
        .route("/", get(root::versions))
        .merge(v1)
        .route_layer(from_fn(arrival::note_route))
        .fallback(faults::not_found)
        .method_not_allowed_fallback(faults::method_not_allowed)
        .layer(from_fn_with_state(
            Arc::clone(&app.authenticator),
            auth::authenticate,
        ))
        .layer(CatchPanicLayer::custom(faults::panicked))
        .layer(from_fn(render::render))
        .with_state(app)
}
