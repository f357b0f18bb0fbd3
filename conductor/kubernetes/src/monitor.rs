//! The health of a driver's clusters, each asked with its own CA material: what an engine hands on from its `health`.

use futures::stream::{self, StreamExt as _};
use magnum_driver_api::{
    ClusterCertificates, ClusterRef, DriverError, HealthObservation, HealthReport, Reason,
};

use super::{AccessError, ApiServerAccess, ClusterHealth, Limits, check};

/// API servers that one look asks at the same time. A look at 500 clusters that are all dead takes four times
/// [`Limits::time`] then: less than a look may take, so that the dead ones do not cost the others their health.
const AT_ONCE: usize = 128;

/// Asks the API server of each of `clusters`, some at the same time, each within `limits`.
///
/// A cluster without an API address yet, or whose CA material cannot be opened now, is a transient error; one whose
/// address or material cannot be used is a permanent one. An API server that does not answer is not an error: its
/// cluster is UNHEALTHY.
pub async fn health(
    clusters: &[ClusterRef],
    certificates: &dyn ClusterCertificates,
    limits: &Limits,
) -> Vec<HealthObservation> {
    let asked: Vec<_> = clusters
        .iter()
        .map(|one| async move {
            HealthObservation {
                cluster: one.cluster.uuid.clone(),
                result: of_one(one, certificates, limits).await,
            }
        })
        .collect();
    stream::iter(asked).buffer_unordered(AT_ONCE).collect().await
}

async fn of_one(
    one: &ClusterRef,
    certificates: &dyn ClusterCertificates,
    limits: &Limits,
) -> Result<HealthReport, DriverError> {
    let cluster = &one.cluster;
    let Some(address) = cluster.api_address.clone().filter(|address| !address.is_empty()) else {
        return Err(DriverError::Transient(
            "the cluster has no API address yet".into(),
        ));
    };
    let access = match certificates.open(cluster).await? {
        Some(material) => ApiServerAccess {
            address,
            authority: material.ca,
            certificate: material.client,
            key: material.key,
        },
        None => ApiServerAccess::without_tls(address)
            .map_err(|error| DriverError::Permanent(Reason::open(error.to_string())))?,
    };
    let ClusterHealth { status, reasons } = check(&access, limits)
        .await
        .map_err(|error: AccessError| DriverError::Permanent(Reason::open(error.to_string())))?;
    Ok(HealthReport { status, reasons })
}

#[cfg(test)]
mod tests {
    use magnum_common::model::{Cluster, ClusterTemplate};
    use magnum_driver_api::NoCertificates;

    use super::*;

    async fn told(address: Option<&str>) -> DriverError {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.api_address = address.map(str::to_owned);
        let one = ClusterRef {
            cluster,
            node_groups: Vec::new(),
            template: ClusterTemplate::new("t".into()),
            operation: None,
            objects: magnum_driver_api::SharedObjects::default(),
        };
        let mut seen = health(&[one], &NoCertificates, &Limits::default()).await;
        assert_eq!(seen.len(), 1);
        seen.remove(0).result.expect_err("cannot be asked")
    }

    #[tokio::test]
    async fn a_cluster_without_an_address_may_get_one_later() {
        for address in [None, Some("")] {
            assert!(matches!(told(address).await, DriverError::Transient(_)));
        }
    }

    #[tokio::test]
    async fn a_cluster_with_tls_and_without_certificates_cannot_be_asked() {
        let DriverError::Permanent(reason) = told(Some("https://127.0.0.1:6443")).await else {
            panic!("permanent");
        };
        assert!(reason.told().contains("has no certificates"), "{reason}");
    }
}
