//! `sign_certificate` and `get_ca_certificate`: calls about the CAs of a cluster.
//!
//! The reference of the CA is read from the cluster's row, in the caller's tenant scope. Magnum takes it from the object
//! in the message, so that any sender can use any CA.

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Cluster;
use magnum_db::read::{Tenancy, clusters};
use magnum_db::{Database, DbError};
use magnum_objects::records::Certificate;
use magnum_objects::{self as objects, Received};
use serde_json::{Map, Value};

use super::arguments::Arguments;
use crate::certificates::{CertificateError, Certificates};

/// One of a cluster's CAs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ca {
    Kubernetes,
    Etcd,
    FrontProxy,
}

impl Ca {
    /// The CA of `ca_cert_type`, as Magnum reads it: unknown types mean the first CA.
    fn of(kind: Option<&str>) -> Self {
        match kind {
            Some("etcd") => Self::Etcd,
            Some("front_proxy" | "front-proxy") => Self::FrontProxy,
            _ => Self::Kubernetes,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Kubernetes => "kubernetes",
            Self::Etcd => "etcd",
            Self::FrontProxy => "front-proxy",
        }
    }

    fn reference(self, cluster: &Cluster) -> Result<&str, Fault> {
        let reference = match self {
            Self::Kubernetes => &cluster.ca_cert_ref,
            Self::Etcd => &cluster.etcd_ca_cert_ref,
            Self::FrontProxy => &cluster.front_proxy_ca_cert_ref,
        };
        reference
            .as_deref()
            .filter(|text| !text.is_empty())
            .ok_or_else(|| {
                let why = match self {
                    Self::Kubernetes => "it is still being created, or has no TLS",
                    Self::Etcd | Self::FrontProxy => {
                        "it is still being created, or older than this kind of CA; rotating its CA makes one"
                    }
                };
                Fault::new(
                    Exception::X509KeyPairNotFound,
                    format!("Cluster {} has no {} CA: {why}.", cluster.uuid, self.name()),
                )
            })
    }
}

/// `sign_certificate(cluster, certificate)`: the certificate object, with `pem`.
///
/// # Errors
/// The fault for the caller: wrong arguments, no such cluster or CA, a refused request, or the database or the store of
/// certificates not available.
pub async fn sign_certificate(
    certificates: &Certificates,
    db: &Database,
    args: Map<String, Value>,
    context: &RequestContext,
) -> Result<Value, Fault> {
    let mut args = Arguments::new("sign_certificate", args);
    let uuid = objects::cluster::decode(&args.value("cluster")?)?.uuid()?;
    let wanted: Received<Certificate> = Received::decode(&args.value("certificate")?)?;
    args.finish()?;
    let csr = wanted.text("csr").ok_or_else(|| {
        Fault::new(
            Exception::InvalidCsr,
            "Received invalid csr: it is missing.".to_owned(),
        )
    })?;
    let ca = Ca::of(wanted.text("ca_cert_type"));
    let cluster = find(db, context, uuid).await?;
    let pem = certificates
        .sign(ca.reference(&cluster)?, csr)
        .await
        .map_err(logged_fault)?;
    let mut answer = wanted.into_object();
    answer.set("pem", &Value::String(pem))?;
    Ok(answer.encode())
}

/// `get_ca_certificate(cluster, ca_cert_type=None)`: a certificate object with the CA's `pem`.
///
/// # Errors
/// The fault for the caller: wrong arguments, no such cluster or CA, or the database or the store of certificates not
/// available.
pub async fn get_ca_certificate(
    certificates: &Certificates,
    db: &Database,
    args: Map<String, Value>,
    context: &RequestContext,
) -> Result<Value, Fault> {
    let mut args = Arguments::new("get_ca_certificate", args);
    let uuid = objects::cluster::decode(&args.value("cluster")?)?.uuid()?;
    let kind = args.optional("ca_cert_type");
    args.finish()?;
    let ca = Ca::of(kind.as_ref().and_then(Value::as_str));
    let cluster = find(db, context, uuid).await?;
    let pem = certificates
        .ca(ca.reference(&cluster)?)
        .await
        .map_err(logged_fault)?;
    let certificate = Certificate {
        project_id: cluster.project_id,
        user_id: cluster.user_id,
        cluster_uuid: Some(cluster.uuid.into_string()),
        pem: Some(pem),
        ..Certificate::default()
    };
    Ok(objects::encode_changed(
        &certificate,
        &["project_id", "user_id", "cluster_uuid", "pem"],
    ))
}

async fn find(db: &Database, context: &RequestContext, uuid: ClusterUuid) -> Result<Cluster, Fault> {
    let tenancy = Tenancy::of(context);
    let wanted = uuid.clone();
    let found = db
        .run(move |conn| clusters::find_by_uuid(conn, &tenancy, &wanted))
        .await
        .map_err(|error| database(&error))?;
    found.ok_or_else(|| Fault::cluster_not_found(uuid.as_str()))
}

fn database(error: &DbError) -> Fault {
    tracing::warn!(%error, "a question about certificates finds no database");
    Fault::new(
        Exception::MagnumException,
        "The database is not available; try again.",
    )
}

/// Logs an error that is not the caller's, and returns its fault.
fn logged_fault(error: CertificateError) -> Fault {
    let text = error.to_string();
    let fault = Fault::from(error);
    // Mistakes of the caller are in the fault only.
    if fault.code() >= 500 {
        tracing::warn!(error = text, "a certificate cannot be had");
    }
    fault
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_as_magnum_reads_it() {
        for (kind, ca) in [
            (None, Ca::Kubernetes),
            (Some("kubernetes"), Ca::Kubernetes),
            (Some("nonsense"), Ca::Kubernetes),
            (Some("etcd"), Ca::Etcd),
            (Some("front_proxy"), Ca::FrontProxy),
            (Some("front-proxy"), Ca::FrontProxy),
        ] {
            assert_eq!(Ca::of(kind), ca);
        }
    }

    #[test]
    fn request_for_a_missing_etcd_ca_is_refused_with_advice() {
        let mut cluster = Cluster::new("u-1".into(), "t".into());
        cluster.ca_cert_ref = Some("r".into());
        assert_eq!(Ca::Kubernetes.reference(&cluster), Ok("r"));
        let fault = Ca::Etcd.reference(&cluster).unwrap_err();
        assert_eq!(fault.code(), 404);
        assert!(
            fault.message.contains("etcd CA") && fault.message.contains("rotating"),
            "{fault}"
        );
    }
}
