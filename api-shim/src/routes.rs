//! Every route of the API: what it is, what it takes and answers, and who serves it.
//!
//! One table, read by the router and by the API's document ([`crate::description`]): what is served is described, and what
//! is described is served. Paths have the one form that [`crate::edge::path::rewrite`] gives them.

mod route;

use axum::routing::{delete, get, patch, post, put};

use self::route::ResponseKind::{All, Document, Empty, Never, One, Page, Uuid};
use self::route::route;
use crate::microversion::Version;
use crate::openapi;
use crate::v1::{
    actions, certificates, cluster_templates, clusters, credentials, driver_api, federations, mservices,
    node_groups, operations, quotas, root, stats,
};
use crate::validation::query::PAGING;
use crate::validation::{
    actions as actions_of, certificate, cluster, cluster_template, federation, node_group, quota,
};

pub use self::route::{Body, ResponseKind, Route};

/// The routes under `/v1`, in the order of the document.
pub const ROUTES: &[Route] = &[
    route(
        "GET",
        "/v1",
        "show_version",
        "What this version of the API has.",
        Document("Links to the collections."),
        || get(root::v1),
    ),
    route(
        "GET",
        "/v1/openapi.json",
        "show_document",
        "This document, in the microversion of the request.",
        Document("An OpenAPI document."),
        || get(openapi::show),
    ),
    // Cluster templates.
    route(
        "GET",
        "/v1/clustertemplates",
        "list_cluster_templates",
        "List cluster templates: the project's, and public ones.",
        Page("clustertemplates", openapi::TEMPLATE),
        || get(cluster_templates::list),
    )
    .query(PAGING),
    route(
        "GET",
        "/v1/clustertemplates/detail",
        "list_cluster_templates_with_details",
        "The same list: cluster templates have one form.",
        Page("clustertemplates", openapi::TEMPLATE),
        || get(cluster_templates::detail),
    )
    .query(PAGING),
    route(
        "GET",
        "/v1/clustertemplates/{ident}",
        "show_cluster_template",
        "Show a cluster template.",
        One(200, openapi::TEMPLATE),
        || get(cluster_templates::show),
    ),
    route(
        "POST",
        "/v1/clustertemplates",
        "create_cluster_template",
        "Make a cluster template.",
        One(201, openapi::TEMPLATE),
        || post(cluster_templates::create),
    )
    .body(openapi::TEMPLATE_REQUEST, cluster_template::FIELDS)
    .faults(&[404, 409]),
    route(
        "PATCH",
        "/v1/clustertemplates/{ident}",
        "update_cluster_template",
        "Change a cluster template. One that clusters use keeps all but its name, its tags and who sees it.",
        One(200, openapi::TEMPLATE),
        || patch(cluster_templates::update),
    )
    .patch(&cluster_template::PATCH_RULES),
    route(
        "DELETE",
        "/v1/clustertemplates/{ident}",
        "delete_cluster_template",
        "Delete a cluster template that no cluster uses.",
        Empty(204),
        || delete(cluster_templates::delete),
    ),
    // Clusters.
    route(
        "GET",
        "/v1/clusters",
        "list_clusters",
        "List clusters.",
        Page("clusters", openapi::CLUSTER_BRIEF),
        || get(clusters::list),
    )
    .query(PAGING),
    route(
        "GET",
        "/v1/clusters/detail",
        "list_clusters_with_details",
        "List clusters with all their attributes.",
        Page("clusters", openapi::CLUSTER_LONG),
        || get(clusters::detail),
    )
    .query(PAGING),
    route(
        "GET",
        "/v1/clusters/{ident}",
        "show_cluster",
        "Show a cluster.",
        One(200, openapi::CLUSTER),
        || get(clusters::show),
    ),
    route(
        "POST",
        "/v1/clusters",
        "create_cluster",
        "Make a cluster. It can be read as soon as it is accepted; its status tells how far it is.",
        Uuid(202),
        || post(clusters::create),
    )
    .body(openapi::CLUSTER_REQUEST, cluster::FIELDS)
    .faults(&[404, 409]),
    route(
        "PATCH",
        "/v1/clusters/{ident}",
        "update_cluster",
        "Change the number of default workers, or the health that a monitor reports.",
        Uuid(202),
        || patch(clusters::update),
    )
    .query(clusters::UPDATE_ARGUMENTS)
    .patch(&cluster::PATCH_RULES),
    route(
        "DELETE",
        "/v1/clusters/{ident}",
        "delete_cluster",
        "Delete a cluster. Allowed in every status.",
        Empty(204),
        || delete(clusters::delete),
    ),
    route(
        "POST",
        "/v1/clusters/{ident}/actions/resize",
        "resize_cluster",
        "Change the number of nodes of a node group.",
        Uuid(202),
        || post(actions::resize),
    )
    .since(Version::RESIZE)
    .body(openapi::RESIZE_REQUEST, actions_of::RESIZE_FIELDS),
    route(
        "POST",
        "/v1/clusters/{ident}/actions/upgrade",
        "upgrade_cluster",
        "Move a node group to another cluster template.",
        Uuid(202),
        || post(actions::upgrade),
    )
    .since(Version::UPGRADE)
    .body(openapi::UPGRADE_REQUEST, actions_of::UPGRADE_FIELDS),
    route(
        "POST",
        "/v1/clusters/{ident}/actions/rebuild",
        "rebuild_nodes",
        "Build nodes of a cluster anew.",
        Uuid(202),
        || post(actions::rebuild),
    )
    .since(Version::NODE_ACTIONS)
    .body(openapi::REBUILD_REQUEST, actions_of::REBUILD_FIELDS)
    .faults(&[501]),
    route(
        "POST",
        "/v1/clusters/{ident}/actions/reboot",
        "reboot_nodes",
        "Restart nodes of a cluster.",
        Uuid(202),
        || post(actions::reboot),
    )
    .since(Version::NODE_ACTIONS)
    .body(openapi::REBOOT_REQUEST, actions_of::REBOOT_FIELDS)
    .faults(&[501]),
    route(
        "GET",
        "/v1/clusters/{ident}/operations",
        "list_operations",
        "List what happened to a cluster, in the order of acceptance; also to a deleted one, by its uuid, for as long \
         as the journal keeps it.",
        Page("operations", openapi::OPERATION),
        || get(operations::list),
    )
    .since(Version::OPERATIONS)
    .query(PAGING),
    route(
        "GET",
        "/v1/clusters/{ident}/driver/{*path}",
        "call_driver_api_get",
        "Ask the own API of the cluster's driver: a route that the driver declares, where the operator allows it. The driver \
         may name another rule for it.",
        Document("Any JSON, as the driver documents it; also with 202, or 204 without a body."),
        || get(driver_api::ask),
    )
    .since(Version::DRIVER_API)
    .faults(&[405, 422, 501, 504]),
    route(
        "POST",
        "/v1/clusters/{ident}/driver/{*path}",
        "call_driver_api_post",
        "The same with POST.",
        Document("Any JSON, as the driver documents it; also with 202, or 204 without a body."),
        || post(driver_api::ask_with_body),
    )
    .since(Version::DRIVER_API)
    .free_body()
    .faults(&[405, 422, 501, 504]),
    route(
        "PUT",
        "/v1/clusters/{ident}/driver/{*path}",
        "call_driver_api_put",
        "The same with PUT.",
        Document("Any JSON, as the driver documents it; also with 202, or 204 without a body."),
        || put(driver_api::ask_with_body),
    )
    .since(Version::DRIVER_API)
    .free_body()
    .faults(&[405, 422, 501, 504]),
    route(
        "PATCH",
        "/v1/clusters/{ident}/driver/{*path}",
        "call_driver_api_patch",
        "The same with PATCH; the body is an object, no JSON patch.",
        Document("Any JSON, as the driver documents it; also with 202, or 204 without a body."),
        || patch(driver_api::ask_with_body),
    )
    .since(Version::DRIVER_API)
    .free_body()
    .faults(&[405, 422, 501, 504]),
    route(
        "DELETE",
        "/v1/clusters/{ident}/driver/{*path}",
        "call_driver_api_delete",
        "The same with DELETE.",
        Document("Any JSON, as the driver documents it; also with 202, or 204 without a body."),
        || delete(driver_api::ask),
    )
    .since(Version::DRIVER_API)
    .faults(&[405, 422, 501, 504]),
    // Node groups.
    route(
        "GET",
        "/v1/clusters/{ident}/nodegroups",
        "list_node_groups",
        "List the node groups of a cluster.",
        Page("nodegroups", openapi::NODE_GROUP_BRIEF),
        || get(node_groups::list),
    )
    .since(Version::NODE_GROUPS)
    .query(node_groups::ARGUMENTS),
    route(
        "GET",
        "/v1/clusters/{ident}/nodegroups/{group}",
        "show_node_group",
        "Show a node group.",
        One(200, openapi::NODE_GROUP),
        || get(node_groups::show),
    )
    .since(Version::NODE_GROUPS),
    route(
        "POST",
        "/v1/clusters/{ident}/nodegroups",
        "create_node_group",
        "Make a node group.",
        One(202, openapi::NODE_GROUP_CREATED),
        || post(node_groups::create),
    )
    .since(Version::NODE_GROUPS)
    .body(openapi::NODE_GROUP_REQUEST, node_group::FIELDS),
    route(
        "PATCH",
        "/v1/clusters/{ident}/nodegroups/{group}",
        "update_node_group",
        "Change the bounds of a node group, and what its nodes carry.",
        One(202, openapi::NODE_GROUP),
        || patch(node_groups::update),
    )
    .since(Version::NODE_GROUPS)
    .patch(&node_group::PATCH_RULES),
    route(
        "DELETE",
        "/v1/clusters/{ident}/nodegroups/{group}",
        "delete_node_group",
        "Delete a node group that is no default one.",
        Empty(204),
        || delete(node_groups::delete),
    )
    .since(Version::NODE_GROUPS),
    // Certificates and credentials.
    route(
        "GET",
        "/v1/certificates/{cluster}",
        "show_ca_certificate",
        "Show a CA certificate of a cluster.",
        One(200, openapi::CERTIFICATE),
        || get(certificates::show),
    )
    .query(certificates::ARGUMENTS),
    route(
        "GET",
        "/v1/certificates/{cluster}/{kind}",
        "show_ca_certificate_of_kind",
        "The same, the kind of CA in the path.",
        One(200, openapi::CERTIFICATE),
        || get(certificates::show_kind),
    ),
    route(
        "POST",
        "/v1/certificates",
        "sign_certificate",
        "Have a certificate signed by a CA of a cluster.",
        One(201, openapi::CERTIFICATE),
        || post(certificates::sign),
    )
    .body(openapi::CERTIFICATE_REQUEST, certificate::FIELDS)
    .faults(&[404, 409]),
    route(
        "PATCH",
        "/v1/certificates/{cluster}",
        "rotate_ca_certificate",
        "Give a cluster new CAs.",
        Uuid(202),
        || patch(certificates::rotate),
    ),
    route(
        "PATCH",
        "/v1/credentials/{cluster}",
        "rotate_credential",
        "Give a cluster a new credential towards its cloud.",
        Uuid(202),
        || patch(credentials::rotate),
    )
    .since(Version::CREDENTIALS),
    // Quotas, statistics, services.
    route(
        "GET",
        "/v1/quotas",
        "list_quotas",
        "List the quotas that were set.",
        Page("quotas", openapi::QUOTA),
        || get(quotas::list),
    )
    .query(quotas::ARGUMENTS)
    .faults(&[404]),
    route(
        "GET",
        "/v1/quotas/{project}/{resource}",
        "show_quota",
        "Show the quota of a project, or the default that holds for it.",
        One(200, openapi::QUOTA_OR_DEFAULT),
        || get(quotas::show),
    ),
    route(
        "POST",
        "/v1/quotas",
        "create_quota",
        "Set the quota of a project.",
        One(201, openapi::QUOTA),
        || post(quotas::create),
    )
    .body(openapi::QUOTA_REQUEST, quota::FIELDS)
    .faults(&[404, 409]),
    route(
        "PATCH",
        "/v1/quotas/{project}/{resource}",
        "update_quota",
        "Change the quota of a project. The body is an object, no JSON patch; what the path says counts.",
        One(202, openapi::QUOTA),
        || patch(quotas::update),
    )
    .body(openapi::QUOTA_REQUEST, quota::FIELDS),
    route(
        "DELETE",
        "/v1/quotas/{project}/{resource}",
        "delete_quota",
        "Take a quota away: the default holds from then on.",
        Empty(204),
        || delete(quotas::delete),
    ),
    route(
        "GET",
        "/v1/stats",
        "show_statistics",
        "Count clusters and nodes.",
        One(200, openapi::STATISTICS),
        || get(stats::show),
    )
    .query(stats::ARGUMENTS),
    route(
        "GET",
        "/v1/mservices",
        "list_services",
        "List the conductors.",
        All("mservices", openapi::SERVICE),
        || get(mservices::list),
    ),
    // Federations.
    route(
        "GET",
        "/v1/federations",
        "list_federations",
        "List federations.",
        Page("federations", openapi::FEDERATION_BRIEF),
        || get(federations::list),
    )
    .query(PAGING),
    route(
        "GET",
        "/v1/federations/detail",
        "list_federations_with_details",
        "List federations with all their attributes.",
        Page("federations", openapi::FEDERATION),
        || get(federations::detail),
    )
    .query(PAGING),
    route(
        "GET",
        "/v1/federations/{ident}",
        "show_federation",
        "Show a federation.",
        One(200, openapi::FEDERATION),
        || get(federations::show),
    ),
    route(
        "POST",
        "/v1/federations",
        "create_federation",
        "Checked, and refused: no conductor implements federations.",
        Never,
        || post(federations::create),
    )
    .body(openapi::FEDERATION_REQUEST, federation::FIELDS)
    .faults(&[404, 409, 501]),
    route(
        "PATCH",
        "/v1/federations/{ident}",
        "update_federation",
        "Change a federation: its properties, or one member.",
        Uuid(202),
        || patch(federations::update),
    )
    .query(federations::UPDATE_ARGUMENTS)
    .patch(&federation::PATCH_RULES),
    route(
        "DELETE",
        "/v1/federations/{ident}",
        "delete_federation",
        "Delete a federation.",
        Empty(204),
        || delete(federations::delete),
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::policy::Rule;

    #[test]
    fn every_route_has_a_name_of_its_own_and_a_rule_unless_it_is_for_everybody() {
        let names: BTreeSet<&str> = ROUTES.iter().map(|route| route.name).collect();
        assert_eq!(names.len(), ROUTES.len());
        for route in ROUTES {
            let for_everybody = matches!(route.path, "/v1" | "/v1/openapi.json");
            assert_eq!(
                route.rules().next().is_none(),
                for_everybody,
                "{} {}",
                route.method,
                route.path
            );
        }
    }

    #[test]
    fn every_request_that_a_rule_names_is_a_route() {
        for rule in Rule::ALL {
            for (method, path) in rule.operations() {
                let found = ROUTES
                    .iter()
                    .any(|route| (route.method, route.path) == (*method, *path));
                assert!(found, "{}: {method} {path}", rule.name());
            }
        }
    }
}
