//! What a cluster's row refers to, opened for its driver.

use async_trait::async_trait;
use magnum_common::error::ErrorClass;
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;
use magnum_driver_api::{CaMaterial, ClusterCertificates, DriverError};

use super::{Cause, CertificateError, CertificateFormatError, Certificates, key};

#[async_trait]
impl ClusterCertificates for Certificates {
    async fn open(&self, cluster: &Cluster) -> Result<Option<CaMaterial>, DriverError> {
        let (Some(ca), Some(client)) = (&cluster.ca_cert_ref, &cluster.magnum_cert_ref) else {
            return Ok(None);
        };
        let (ca, client) = tokio::try_join!(self.ca(ca), async {
            let pair = self.in_time(self.manager().get(client)).await?;
            let key = self.opened(pair.private_key, pair.passphrase).await?;
            Ok::<_, CertificateError>((pair.certificate, key))
        })
        .map_err(|error| match error.class() {
            ErrorClass::Transient => DriverError::Transient(error.to_string()),
            ErrorClass::Permanent | ErrorClass::NotSupported => DriverError::Permanent(error.to_string()),
        })?;
        let (client, key) = client;
        Ok(Some(CaMaterial { ca, client, key }))
    }
}

impl Certificates {
    /// The key without its passphrase.
    async fn opened(&self, key: Secret, passphrase: Option<Secret>) -> Result<Secret, Cause> {
        self.work(move || Ok(key::opened(&key, passphrase.as_ref()).map_err(CertificateFormatError::from)?))
            .await
    }
}
