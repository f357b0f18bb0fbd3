//! Where a cluster's certificates are kept, as its row says it.

use magnum_common::model::Cluster;
use serde::{Deserialize, Serialize};

/// The values of the row's four columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateRefs {
    /// `ca_cert_ref`
    pub ca: String,
    /// `magnum_cert_ref`: the conductor's client certificate.
    pub magnum: String,
    /// `etcd_ca_cert_ref`
    pub etcd_ca: String,
    /// `front_proxy_ca_cert_ref`
    pub front_proxy_ca: String,
}

impl CertificateRefs {
    /// Writes them onto `cluster`.
    pub fn apply(self, cluster: &mut Cluster) {
        cluster.ca_cert_ref = Some(self.ca);
        cluster.magnum_cert_ref = Some(self.magnum);
        cluster.etcd_ca_cert_ref = Some(self.etcd_ca);
        cluster.front_proxy_ca_cert_ref = Some(self.front_proxy_ca);
    }
}
