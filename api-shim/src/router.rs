//! Every route on one screen.
//!
//! Paths arrive in one form ([`request::rewrite`]): with `/v1` in front and without a slash at the end. What is
//! not here is an honest 404.

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, get, patch, post};
use tower_http::catch_panic::CatchPanicLayer;

use crate::state::App;
use crate::v1::{
    actions, certificates, cluster_templates, clusters, credentials, federations, mservices, node_groups,
    quotas, root, stats,
};
use crate::{auth, faults, health, request};

/// The routes, with everything around them. Innermost first: version, identity, panics, fault bodies, ids. Identity
/// stands before the routing, so that nobody learns without a token what is there.
pub fn routes(app: Arc<App>) -> Router {
    let v1 = Router::new()
        .route("/v1", get(root::v1))
        .route(
            "/v1/clustertemplates",
            get(cluster_templates::list).post(cluster_templates::create),
        )
        .route("/v1/clustertemplates/detail", get(cluster_templates::detail))
        .route(
            "/v1/clustertemplates/{ident}",
            get(cluster_templates::show)
                .patch(cluster_templates::update)
                .delete(cluster_templates::delete),
        )
        .route("/v1/clusters", get(clusters::list).post(clusters::create))
        .route("/v1/clusters/detail", get(clusters::detail))
        .route(
            "/v1/clusters/{ident}",
            get(clusters::show)
                .patch(clusters::update)
                .delete(clusters::delete),
        )
        .route("/v1/clusters/{ident}/actions", MethodRouter::new())
        .route("/v1/clusters/{ident}/actions/{action}", MethodRouter::new())
        .route("/v1/clusters/{ident}/actions/resize", post(actions::resize))
        .route("/v1/clusters/{ident}/actions/upgrade", post(actions::upgrade))
        .route(
            "/v1/clusters/{ident}/nodegroups",
            get(node_groups::list).post(node_groups::create),
        )
        .route(
            "/v1/clusters/{ident}/nodegroups/{group}",
            get(node_groups::show)
                .patch(node_groups::update)
                .delete(node_groups::delete),
        )
        .route("/v1/certificates", post(certificates::sign))
        .route(
            "/v1/certificates/{cluster}",
            get(certificates::show).patch(certificates::rotate),
        )
        .route("/v1/certificates/{cluster}/{kind}", get(certificates::show_kind))
        .route("/v1/credentials/{cluster}", patch(credentials::rotate))
        .route("/v1/quotas", get(quotas::list).post(quotas::create))
        .route(
            "/v1/quotas/{project}/{resource}",
            get(quotas::show).patch(quotas::update).delete(quotas::delete),
        )
        .route(
            "/v1/quotas/{project}",
            get(quotas::incomplete)
                .patch(quotas::incomplete)
                .delete(quotas::incomplete),
        )
        .route("/v1/stats", get(stats::show))
        .route(
            "/v1/federations",
            get(federations::list).post(federations::create),
        )
        .route("/v1/federations/detail", get(federations::detail))
        .route(
            "/v1/federations/{ident}",
            get(federations::show)
                .patch(federations::update)
                .delete(federations::delete),
        )
        .route("/v1/mservices", get(mservices::list))
        .route_layer(from_fn_with_state(Arc::clone(&app), request::enter));

    Router::new()
        .route("/", get(root::versions))
        .route("/healthcheck", get(health::check))
        .merge(v1)
        .fallback(faults::not_found)
        .method_not_allowed_fallback(faults::method_not_allowed)
        .layer(from_fn_with_state(Arc::clone(&app), auth::authenticate))
        .layer(CatchPanicLayer::custom(faults::panicked))
        .layer(from_fn(faults::render))
        .layer(from_fn(request::identify))
        .with_state(app)
}
