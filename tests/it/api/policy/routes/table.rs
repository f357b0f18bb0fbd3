//! The policy, as an operator would write it down: one row per request. Data only.

use serde_json::{Value, json};

use super::{CLUSTER, FEDERATION, HOME, NODE_GROUP, PRIVATE_TEMPLATE, PUBLIC_TEMPLATE};

/// A call to a conductor ends as the timeout that it is.
const NO_REPLY: u16 = 503;

/// The same, of a call of a driver's own API.
const NO_REPLY_OF_DRIVER: u16 = 504;

/// Federations cannot be created.
pub(super) const NOT_IMPLEMENTED: u16 = 501;

/// Whom the policy allows a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Allowed {
    /// Every authenticated caller.
    Anybody,
    /// Readers of the project, and administrators.
    Readers,
    /// Members of the project, and administrators.
    Members,
    /// Members of the project, administrators among them.
    OnlyMembers,
    /// The reader who created it, and administrators.
    Creator,
    /// The member who created it, and administrators.
    CreatingMember,
    /// Administrators.
    Admins,
}

/// What a request is about, which decides the status of a refusal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Subject {
    /// The caller's own resources, existing or new.
    Own,
    /// The same, and a project is needed, even by an administrator.
    OwnProject,
    /// A resource: 404 for callers who cannot see it, 403 for those who may not.
    Resource,
    /// A resource that is named in the body: 400 if it does not exist for the caller.
    NamedInBody,
    /// Something in a cluster: 403 if the caller may not do it in any project, then 404 for other projects.
    InCluster,
    /// A resource to which administrators of other projects have no access either.
    NotForAdmins,
    /// A public resource: visible in every project.
    Public,
    /// A new resource made of one that must be in the caller's project.
    MadeOfResource,
    /// A figure about a project: 403 for any other project.
    Figure,
}

/// A request, whom the policy allows it, and the status of its success.
pub(super) struct Row {
    /// As the API's document names it.
    pub(super) route: (&'static str, &'static str),
    pub(super) path: String,
    pub(super) allowed: Allowed,
    pub(super) subject: Subject,
    pub(super) success: u16,
    pub(super) body: Value,
}

macro_rules! table {
    ($($method:ident $route:literal, $path:literal, $allowed:ident, $subject:ident, $success:expr $(, $body:expr)?;)*) => {
        vec![$(Row {
            route: (stringify!($method), $route),
            path: format!($path),
            allowed: Allowed::$allowed,
            subject: Subject::$subject,
            success: $success,
            body: [$($body,)? Value::Null].into_iter().next().unwrap_or_default(),
        },)*]
    };
}

pub(super) fn table() -> Vec<Row> {
    let template =
        json!({"name": "t", "coe": "kubernetes", "image_id": "ubuntu-plain", "driver": "fake_alpha"});
    let cluster = json!({"name": "c", "cluster_template_id": PUBLIC_TEMPLATE, "keypair": "k"});
    let csr = json!({"cluster_uuid": CLUSTER, "csr": "-----BEGIN CERTIFICATE REQUEST-----"});
    let federation = json!({"name": "f", "hostcluster_id": CLUSTER, "properties": {"dns-zone": "e."}});
    let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    let nodes = replace("/node_count", json!(2));
    let health = replace("/health_status", json!("HEALTHY"));
    table! {
        get "/v1", "/v1", Anybody, Own, 200;
        get "/v1/openapi.json", "/v1/openapi.json", Anybody, Own, 200;

        // A public template is visible in every project, and still needs a role.
        get "/v1/clustertemplates", "/v1/clustertemplates", Readers, Own, 200;
        get "/v1/clustertemplates/detail", "/v1/clustertemplates/detail", Readers, Own, 200;
        post "/v1/clustertemplates", "/v1/clustertemplates", Members, OwnProject, 201, template;
        get "/v1/clustertemplates/{ident}", "/v1/clustertemplates/{PRIVATE_TEMPLATE}", Readers, Resource, 200;
        get "/v1/clustertemplates/{ident}", "/v1/clustertemplates/{PUBLIC_TEMPLATE}", Readers, Public, 200;
        patch "/v1/clustertemplates/{ident}", "/v1/clustertemplates/{PRIVATE_TEMPLATE}", Members, Resource, 200,
            replace("/tags", json!("x"));
        delete "/v1/clustertemplates/{ident}", "/v1/clustertemplates/{PRIVATE_TEMPLATE}", Members, Resource, 204;

        get "/v1/clusters", "/v1/clusters", Readers, Own, 200;
        get "/v1/clusters/detail", "/v1/clusters/detail", Readers, Own, 200;
        post "/v1/clusters", "/v1/clusters", Members, OwnProject, 202, cluster;
        get "/v1/clusters/{ident}", "/v1/clusters/{CLUSTER}", Readers, Resource, 200;
        patch "/v1/clusters/{ident}", "/v1/clusters/{CLUSTER}", Members, Resource, 202, nodes;
        patch "/v1/clusters/{ident}", "/v1/clusters/{CLUSTER}", CreatingMember, Resource, 202, health;
        delete "/v1/clusters/{ident}", "/v1/clusters/{CLUSTER}", Members, Resource, 204;
        post "/v1/clusters/{ident}/actions/resize", "/v1/clusters/{CLUSTER}/actions/resize", Members, Resource, 202,
            json!({"node_count": 2});
        post "/v1/clusters/{ident}/actions/upgrade", "/v1/clusters/{CLUSTER}/actions/upgrade", Members, Resource,
            NO_REPLY, json!({"cluster_template": PUBLIC_TEMPLATE});
        post "/v1/clusters/{ident}/actions/rebuild", "/v1/clusters/{CLUSTER}/actions/rebuild", Members, Resource,
            NO_REPLY, json!({});
        post "/v1/clusters/{ident}/actions/reboot", "/v1/clusters/{CLUSTER}/actions/reboot", Members, Resource,
            NO_REPLY, json!({"type": "soft"});
        get "/v1/clusters/{ident}/operations", "/v1/clusters/{CLUSTER}/operations", Readers, Resource, 200;

        // The rules are those that the driver names.
        get "/v1/clusters/{ident}/driver/{path}", "/v1/clusters/{CLUSTER}/driver/usage", Readers, Resource, NO_REPLY_OF_DRIVER;
        post "/v1/clusters/{ident}/driver/{path}", "/v1/clusters/{CLUSTER}/driver/notes", Members, Resource, NO_REPLY_OF_DRIVER, json!({"text": "n"});
        put "/v1/clusters/{ident}/driver/{path}", "/v1/clusters/{CLUSTER}/driver/notes", Members, Resource, NO_REPLY_OF_DRIVER, json!({"text": "n"});
        patch "/v1/clusters/{ident}/driver/{path}", "/v1/clusters/{CLUSTER}/driver/notes", Members, Resource, NO_REPLY_OF_DRIVER, json!({"text": "n"});
        delete "/v1/clusters/{ident}/driver/{path}", "/v1/clusters/{CLUSTER}/driver/notes", CreatingMember, Resource, NO_REPLY_OF_DRIVER;

        get "/v1/clusters/{ident}/nodegroups", "/v1/clusters/{CLUSTER}/nodegroups", Readers, InCluster, 200;
        get "/v1/clusters/{ident}/nodegroups/{group}", "/v1/clusters/{CLUSTER}/nodegroups/{NODE_GROUP}", Readers,
            InCluster, 200;
        post "/v1/clusters/{ident}/nodegroups", "/v1/clusters/{CLUSTER}/nodegroups", Members, InCluster, 202,
            json!({"name": "n"});
        patch "/v1/clusters/{ident}/nodegroups/{group}", "/v1/clusters/{CLUSTER}/nodegroups/{NODE_GROUP}", Members,
            InCluster, 202, replace("/max_node_count", json!(5));
        delete "/v1/clusters/{ident}/nodegroups/{group}", "/v1/clusters/{CLUSTER}/nodegroups/{NODE_GROUP}", Members,
            InCluster, 204;

        // Certificates are for the cluster's creator; a new CA is for all members.
        get "/v1/certificates/{cluster}", "/v1/certificates/{CLUSTER}", Creator, Resource, NO_REPLY;
        get "/v1/certificates/{cluster}/{kind}", "/v1/certificates/{CLUSTER}/etcd", Creator, Resource, NO_REPLY;
        post "/v1/certificates", "/v1/certificates", CreatingMember, NamedInBody, NO_REPLY, csr;
        patch "/v1/certificates/{cluster}", "/v1/certificates/{CLUSTER}", Members, Resource, NO_REPLY;
        patch "/v1/credentials/{cluster}", "/v1/credentials/{CLUSTER}", OnlyMembers, InCluster, NO_REPLY;

        get "/v1/quotas", "/v1/quotas", Admins, Own, 200;
        get "/v1/quotas/{project}/{resource}", "/v1/quotas/{HOME}/Cluster", Readers, Figure, 200;
        post "/v1/quotas", "/v1/quotas", Admins, Own, 201, json!({"project_id": "c", "hard_limit": 3});
        patch "/v1/quotas/{project}/{resource}", "/v1/quotas/{HOME}/Cluster", Admins, Own, 202,
            json!({"hard_limit": 9});
        delete "/v1/quotas/{project}/{resource}", "/v1/quotas/{HOME}/Cluster", Admins, Own, 204;
        get "/v1/stats", "/v1/stats?project_id={HOME}", Readers, Figure, 200;
        get "/v1/mservices", "/v1/mservices", Admins, Own, 200;

        // Federations exist in old databases only; administrators of other projects have no access.
        get "/v1/federations", "/v1/federations", Readers, Own, 200;
        get "/v1/federations/detail", "/v1/federations/detail", Readers, Own, 200;
        get "/v1/federations/{ident}", "/v1/federations/{FEDERATION}", Readers, NotForAdmins, 200;
        post "/v1/federations", "/v1/federations", Members, MadeOfResource, NOT_IMPLEMENTED, federation;
        patch "/v1/federations/{ident}", "/v1/federations/{FEDERATION}", Members, NotForAdmins, 202,
            replace("/properties/dns-zone", json!("x."));
        delete "/v1/federations/{ident}", "/v1/federations/{FEDERATION}", Members, NotForAdmins, 204;
    }
}
