//! A cluster's certificates, asked of a conductor: its CA, a signature by it, new ones for all of them.
//!
//! Where this differs from Magnum: an administrator may do so in every project; a kind of CA that is not known is a
//! 400 and not the Kubernetes CA.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use magnum_common::error::{Exception, Fault};
use magnum_objects::records::Certificate;
use serde_json::{Value, json};

use crate::faults::ApiFault;
use crate::policy::{Rule, Target};
use crate::request::{ApiRequest, Body, Ident, Idents};
use crate::state::App;
use crate::store::clusters::FoundCluster;
use crate::validation::body::Kind;
use crate::validation::query::Argument;
use crate::validation::{body, certificate as rules};
use crate::{store, views};

/// The cluster, if the caller may do what `rule` says with its certificates.
async fn cluster(
    app: &App,
    call: &mut ApiRequest,
    rule: Rule,
    ident: String,
) -> Result<FoundCluster, ApiFault> {
    call.allow_all_projects(match rule {
        Rule::CertificateCreate => Rule::CertificateCreateAllProjects,
        Rule::CertificateRotateCa => Rule::CertificateRotateCaAllProjects,
        _ => Rule::CertificateGetAllProjects,
    })?;
    let found = store::clusters::find(&app.database, &call.context, ident).await?;
    call.authorize(rule, &Target::of(&found.cluster))?;
    Ok(found)
}

/// What can be asked for.
pub const ARGUMENTS: &[Argument] = &[Argument::new("ca_cert_type", Kind::Choice(rules::KINDS))];

/// `GET /v1/certificates/{cluster}`
///
/// # Errors
/// 400 for an unknown kind of CA; 404 for a cluster that is not in the caller's tenant scope, or has no such
/// CA; 500 where the CA cannot be read from its store.
pub async fn show(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    Ident(ident): Ident,
) -> Result<Json<Value>, ApiFault> {
    let arguments = call.arguments(ARGUMENTS)?;
    let kind = arguments.get("ca_cert_type").map(str::to_owned);
    authority(&app, call, ident, kind).await
}

/// `GET /v1/certificates/{cluster}/{ca_cert_type}`
///
/// # Errors
/// Those of [`show`].
pub async fn show_kind(
    State(app): State<Arc<App>>,
    call: ApiRequest,
    Idents(ident, kind): Idents,
) -> Result<Json<Value>, ApiFault> {
    call.arguments(&[])?;
    authority(&app, call, ident, Some(kind)).await
}

async fn authority(
    app: &App,
    mut call: ApiRequest,
    ident: String,
    kind: Option<String>,
) -> Result<Json<Value>, ApiFault> {
    let kind = kind.filter(|kind| !kind.is_empty());
    rules::check_kind(kind.as_deref())?;
    let found = cluster(app, &mut call, Rule::CertificateGet, ident).await?;
    let certificate = app
        .conductor
        .get_ca_certificate(&call.context, &found.cluster, kind.as_deref())
        .await?;
    let shown = Certificate {
        pem: certificate.pem,
        ..Certificate::default()
    };
    Ok(Json(views::certificate::show(
        &shown,
        &found.cluster.uuid,
        &call.base,
    )))
}

/// `POST /v1/certificates`. A cluster that is not there is the client's mistake (400): the path is there.
///
/// # Errors
/// 400 for a body that breaks the schema, a cluster that is not in the caller's tenant scope, and a request
/// that cannot be signed; 404 where the cluster has no such CA; 500 where the CA cannot be read from its
/// store.
pub async fn sign(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    body: Body,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    call.arguments(&[])?;
    let given = body::read(rules::ARGUMENT, &body.json(rules::ARGUMENT)?, rules::FIELDS)?;
    let wanted = rules::wanted(&given)?;
    let found = match cluster(&app, &mut call, Rule::CertificateCreate, wanted.cluster).await {
        Err(fault) if fault.status() == StatusCode::NOT_FOUND => {
            return Err(fault.with_status(StatusCode::BAD_REQUEST));
        }
        other => other?,
    };
    let mut certificate = Certificate {
        project_id: call.context.project_id().map(str::to_owned),
        user_id: call.context.user_id().map(str::to_owned),
        cluster_uuid: Some(found.cluster.uuid.to_string()),
        csr: Some(wanted.csr),
        ca_cert_type: wanted.kind,
        ..Certificate::default()
    };
    let signed = app
        .conductor
        .sign_certificate(&call.context, &found.cluster, &certificate)
        .await?;
    certificate.pem = signed.pem;
    let view = views::certificate::show(&certificate, &found.cluster.uuid, &call.base);
    Ok((StatusCode::CREATED, Json(view)))
}

/// `PATCH /v1/certificates/{cluster}`: all certificates of the cluster anew.
///
/// # Errors
/// 400 for a cluster without TLS, and where status or driver do not allow it; 404 for a cluster that is not
/// in the caller's tenant scope; 409 for a rotation that is stopped; 500 where the driver or the store of
/// certificates fails.
pub async fn rotate(
    State(app): State<Arc<App>>,
    mut call: ApiRequest,
    Ident(ident): Ident,
) -> Result<(StatusCode, Json<Value>), ApiFault> {
    call.arguments(&[])?;
    let found = cluster(&app, &mut call, Rule::CertificateRotateCa, ident).await?;
    if found
        .template
        .as_ref()
        .is_some_and(|template| template.tls_disabled)
    {
        return Err(Fault::new(
            Exception::NotSupported,
            "Rotating the CA certificate on a non-TLS cluster is not supported",
        )
        .into());
    }
    app.conductor
        .rotate_ca_certificate(&call.context, &found.cluster)
        .await?;
    Ok((StatusCode::ACCEPTED, Json(json!({"uuid": found.cluster.uuid}))))
}
