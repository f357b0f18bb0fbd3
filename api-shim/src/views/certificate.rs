//! A certificate, with the request that it answers where there was one.

use magnum_common::ids::ClusterUuid;
use magnum_objects::records::Certificate;
use serde_json::Value;

use super::attribute::{self, Shown, View, attributes};
use super::links;
use crate::microversion::Version;
use crate::validation::certificate::KINDS;

/// The only form.
pub const FULL: View = 1;

/// What a row of the table reads.
#[derive(Debug)]
pub struct CertificateSource<'a> {
    certificate: &'a Certificate,
    cluster: &'a ClusterUuid,
    base: &'a str,
}

/// A certificate as it is shown.
#[derive(Debug)]
pub struct CertificateView;

impl Shown for CertificateView {
    type Source<'a> = CertificateSource<'a>;
    attributes! { Self, seen;
        "cluster_uuid": Uuid => seen.cluster;
        "links": Links => links::pair(seen.base, format!("certificates/{}", seen.cluster));
        "csr": Text, in FULL, maybe FULL => seen.certificate.csr.as_ref();
        "pem": Text, in FULL, maybe FULL => seen.certificate.pem.as_ref();
        "ca_cert_type": Choice(KINDS), in FULL, maybe FULL => seen.certificate.ca_cert_type.as_ref();
    }
}

/// The certificate of this cluster. What it does not have is left out.
pub fn show(certificate: &Certificate, cluster: &ClusterUuid, base: &str) -> Value {
    let seen = CertificateSource {
        certificate,
        cluster,
        base,
    };
    attribute::render::<CertificateView>(seen, FULL, Version::MAX)
}
