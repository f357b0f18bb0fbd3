//! What a cluster's row refers to, opened for its driver, and kept open for a while.
//!
//! Health is asked about every minute. Without a cache each look at a cluster would cost two questions to the store,
//! with Barbican four requests, and the decryption of a key. What is behind a reference never changes: a rotation makes
//! new references, and those are opened anew. Material that was removed from the store may be used for [`KEPT`] longer.

use std::time::Duration;

use async_trait::async_trait;
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;
use magnum_driver_api::{Authorities, CaMaterial, ClusterCertificates, DriverError, KeyPair, Reason};
use moka::future::Cache;

use magnum_x509::{CertificateFormatError, key};

use super::{Cause, CertificateError, Certificates};

/// How long opened material is kept.
const KEPT: Duration = Duration::from_secs(15 * 60);

/// Clusters whose material is kept, at most: some 6 KiB each.
const CLUSTERS: u64 = 10_000;

/// References of a CA and of a client certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct References {
    ca: String,
    client: String,
}

/// Material that was opened lately. Clones share it. Failures are not kept.
#[derive(Debug, Clone)]
pub(super) struct OpenedMaterial(Cache<References, CaMaterial>);

impl Default for OpenedMaterial {
    fn default() -> Self {
        let cache = Cache::builder().max_capacity(CLUSTERS).time_to_live(KEPT);
        Self(cache.build())
    }
}

#[async_trait]
impl ClusterCertificates for Certificates {
    async fn open(&self, cluster: &Cluster) -> Result<Option<CaMaterial>, DriverError> {
        let (Some(ca), Some(client)) = (&cluster.ca_cert_ref, &cluster.magnum_cert_ref) else {
            return Ok(None);
        };
        let references = References {
            ca: ca.clone(),
            client: client.clone(),
        };
        let opening = self.read(ca, client);
        let material = self.inner.opened.0.try_get_with(references, opening).await;
        material.map(Some).map_err(|error| error.as_ref().clone())
    }

    async fn authorities(&self, cluster: &Cluster) -> Result<Authorities, DriverError> {
        let of = async |reference: &Option<String>, what: &str| match reference {
            Some(reference) => self
                .key_pair(reference)
                .await
                .map_err(|error| DriverError::of(error.class(), error.reason())),
            None => {
                let missing = format!("the cluster has no certificate for {what}");
                Err(DriverError::Permanent(Reason::open(missing)))
            }
        };
        let (kubernetes, etcd, front_proxy, client) = tokio::try_join!(
            of(&cluster.ca_cert_ref, "its API"),
            of(&cluster.etcd_ca_cert_ref, "etcd"),
            of(&cluster.front_proxy_ca_cert_ref, "its front proxy"),
            of(&cluster.magnum_cert_ref, "the conductor"),
        )?;
        Ok(Authorities {
            kubernetes,
            etcd,
            front_proxy,
            client,
        })
    }
}

impl Certificates {
    async fn read(&self, ca: &str, client: &str) -> Result<CaMaterial, DriverError> {
        let (ca, client) = tokio::try_join!(self.ca(ca), self.key_pair(client))
            .map_err(|error| DriverError::of(error.class(), error.reason()))?;
        Ok(CaMaterial {
            ca,
            client: client.certificate,
            key: client.key,
        })
    }

    async fn key_pair(&self, reference: &str) -> Result<KeyPair, CertificateError> {
        let pair = self.in_time(self.manager().get(reference)).await?;
        let key = self.opened(pair.private_key, pair.passphrase).await?;
        Ok(KeyPair {
            certificate: pair.certificate,
            key,
        })
    }

    /// The key without its passphrase.
    async fn opened(&self, key: Secret, passphrase: Option<Secret>) -> Result<Secret, Cause> {
        self.work(move || Ok(key::opened(&key, passphrase.as_ref()).map_err(CertificateFormatError::from)?))
            .await
    }
}
