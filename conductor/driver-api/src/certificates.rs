//! A cluster's CA material, opened for its driver.

use async_trait::async_trait;
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;

use crate::DriverError;

/// What is needed to reach a cluster's API as its administrator. Texts are PEM.
#[derive(Debug, Clone, PartialEq)]
pub struct CaMaterial {
    /// The certificate of the CA that signs for the cluster's API.
    pub ca: String,
    /// The conductor's own client certificate.
    pub client: String,
    /// The private key of the client certificate, PKCS#8 and not encrypted: for memory, pipes and private files only.
    pub key: Secret,
}

/// A certificate with its private key. Texts are PEM.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyPair {
    /// The certificate.
    pub certificate: String,
    /// Its key, PKCS#8 and not encrypted: for memory, pipes and requests to the one who is to have it.
    pub key: Secret,
}

/// What a cluster signs with: for a driver that hands it to whoever builds the cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Authorities {
    /// Of the cluster's API.
    pub kubernetes: KeyPair,
    /// Of etcd.
    pub etcd: KeyPair,
    /// Of the front proxy.
    pub front_proxy: KeyPair,
    /// The conductor's own client certificate.
    pub client: KeyPair,
}

/// Opens what a cluster's row refers to, wherever `[certificates] cert_manager_type` keeps it.
#[async_trait]
pub trait ClusterCertificates: Send + Sync {
    /// The material that `cluster` refers to now; during a rotation that is the new one. `None`: the cluster has no
    /// certificates, or has none yet.
    ///
    /// # Errors
    /// Transient where the store may have it later, permanent where it does not have it or cannot read it.
    async fn open(&self, cluster: &Cluster) -> Result<Option<CaMaterial>, DriverError>;

    /// The certificates that `cluster` refers to now with their keys. Never kept: a driver asks for them when it builds a cluster,
    /// and lets go of them.
    ///
    /// # Errors
    /// As [`Self::open`]; permanent where the cluster has not all of them.
    async fn authorities(&self, cluster: &Cluster) -> Result<Authorities, DriverError>;
}

/// Where no cluster has certificates.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCertificates;

#[async_trait]
impl ClusterCertificates for NoCertificates {
    async fn open(&self, _cluster: &Cluster) -> Result<Option<CaMaterial>, DriverError> {
        Ok(None)
    }

    async fn authorities(&self, _cluster: &Cluster) -> Result<Authorities, DriverError> {
        Err(DriverError::Permanent("the cluster has no certificates".into()))
    }
}
