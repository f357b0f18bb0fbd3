//! Named shapes of requests and answers, as JSON Schema: what a request may carry from the tables by which bodies are
//! read ([`crate::validation::body`]), what an answer holds from the tables by which it is rendered
//! ([`crate::views::attribute`]).
//!
//! The routes name these shapes; the document that is made of both, [`crate::description`], is served here.

pub mod glossary;
pub mod schemas;

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::faults::ApiFault;
use crate::microversion::Version;
use crate::request::ApiRequest;
use crate::state::App;
use crate::validation::{actions, certificate, cluster, cluster_template, federation, node_group, quota};
use crate::views;

use self::schemas::{closed, given, shown};

/// A named shape of a request or of an answer.
#[derive(Clone, Copy)]
pub struct Model {
    /// Its name in the document.
    pub name: &'static str,
    /// Its schema in a version.
    pub schema: fn(Version) -> Object,
}

const fn model(name: &'static str, schema: fn(Version) -> Object) -> Model {
    Model { name, schema }
}

use views::certificate::CertificateView;
use views::cluster::ClusterView;
use views::cluster_template::TemplateView;
use views::federation::FederationView;
use views::mservice::ServiceView;
use views::node_group::NodeGroupView;
use views::operation::OperationView;
use views::quota::QuotaView;

macro_rules! models {
    ($($(#[$doc:meta])* $constant:ident $name:literal = $schema:expr;)*) => {
        $($(#[$doc])* pub const $constant: Model = model($name, $schema);)*
    };
}

models! {
    /// A cluster template.
    TEMPLATE "ClusterTemplate" = |version| shown::<TemplateView>(views::cluster_template::FULL, version);
    /// A cluster template to be made.
    TEMPLATE_REQUEST "ClusterTemplateRequest" = |version| given(cluster_template::FIELDS, version);
    /// A cluster in a list.
    CLUSTER_BRIEF "ClusterBrief" = |version| shown::<ClusterView>(views::cluster::BRIEF, version);
    /// A cluster in a list with details.
    CLUSTER_LONG "ClusterLong" = |version| shown::<ClusterView>(views::cluster::LONG, version);
    /// A single cluster.
    CLUSTER "Cluster" = |version| shown::<ClusterView>(views::cluster::SINGLE, version);
    /// A cluster to be made.
    CLUSTER_REQUEST "ClusterRequest" = |version| given(cluster::FIELDS, version);
    /// Another size of a node group.
    RESIZE_REQUEST "ResizeRequest" = |version| given(actions::RESIZE_FIELDS, version);
    /// Another template for a cluster.
    UPGRADE_REQUEST "UpgradeRequest" = |version| given(actions::UPGRADE_FIELDS, version);
    /// Nodes to be built anew.
    REBUILD_REQUEST "RebuildRequest" = |version| given(actions::REBUILD_FIELDS, version);
    /// Nodes to be restarted.
    REBOOT_REQUEST "RebootRequest" = |version| given(actions::REBOOT_FIELDS, version);
    /// A node group in a list.
    NODE_GROUP_BRIEF "NodeGroupBrief" = |version| shown::<NodeGroupView>(views::node_group::BRIEF, version);
    /// A single node group.
    NODE_GROUP "NodeGroup" = |version| shown::<NodeGroupView>(views::node_group::FULL, version);
    /// A node group that was asked for.
    NODE_GROUP_CREATED "NodeGroupCreated" = |version| shown::<NodeGroupView>(views::node_group::CREATED, version);
    /// A node group to be made.
    NODE_GROUP_REQUEST "NodeGroupRequest" = |version| given(node_group::FIELDS, version);
    /// What happened to a cluster. What only administrators see may be absent.
    OPERATION "Operation" = |version| shown::<OperationView>(views::operation::FOR_ADMINISTRATORS, version);
    /// A certificate.
    CERTIFICATE "Certificate" = |version| shown::<CertificateView>(views::certificate::FULL, version);
    /// A certificate to be signed.
    CERTIFICATE_REQUEST "CertificateRequest" = |version| given(certificate::FIELDS, version);
    /// A quota that was set.
    QUOTA "Quota" = |version| shown::<QuotaView>(views::quota::SET, version);
    /// A quota that was set, or the default.
    QUOTA_OR_DEFAULT "QuotaOrDefault" = |version| shown::<QuotaView>(views::quota::ANY, version);
    /// A quota to be set.
    QUOTA_REQUEST "QuotaRequest" = |version| given(quota::FIELDS, version);
    /// How many clusters and nodes there are.
    STATISTICS "Statistics" = |_| statistics();
    /// A conductor.
    SERVICE "Service" = |version| shown::<ServiceView>(views::mservice::FULL, version);
    /// A federation in a list.
    FEDERATION_BRIEF "FederationBrief" = |version| shown::<FederationView>(views::federation::BRIEF, version);
    /// A federation.
    FEDERATION "Federation" = |version| shown::<FederationView>(views::federation::FULL, version);
    /// A federation to be made.
    FEDERATION_REQUEST "FederationRequest" = |version| given(federation::FIELDS, version);
}

fn statistics() -> Object {
    let mut object = ObjectBuilder::new().additional_properties(closed());
    for name in crate::v1::stats::COUNTS {
        let count = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .description(Some(glossary::about(name)));
        object = object.property(*name, count).required(*name);
    }
    object.build()
}

/// `GET /v1/openapi.json`
///
/// # Errors
/// What the client is told.
pub async fn show(State(app): State<Arc<App>>, call: ApiRequest) -> Result<Response, ApiFault> {
    call.arguments(&[])?;
    let text = (app.description)(call.version).ok_or_else(ApiFault::internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}
