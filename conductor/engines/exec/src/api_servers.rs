//! Health from the clusters' own API servers, where the manifest says `health = "kubernetes"`.

use magnum_driver_api::{ClusterCertificates, ClusterRef, DriverError, HealthObservation};
use magnum_drivers::Problem;

const NOT_BUILT: &str =
    "health = \"kubernetes\" in [exec] needs a conductor that was built with the feature kubernetes";

/// Whether this build can ask API servers.
///
/// # Errors
/// It was built without the feature `kubernetes`.
pub(super) fn check_build() -> Result<(), Vec<Problem>> {
    if cfg!(feature = "kubernetes") {
        return Ok(());
    }
    Err(vec![Problem::of_folder(NOT_BUILT)])
}

/// Asks them all.
///
/// # Errors
/// This build cannot; such a driver is not loaded, see [`check_build`].
pub(super) async fn health(
    clusters: &[ClusterRef],
    certificates: &dyn ClusterCertificates,
) -> Result<Vec<HealthObservation>, DriverError> {
    #[cfg(feature = "kubernetes")]
    return Ok(
        magnum_kubernetes::health(clusters, certificates, &magnum_kubernetes::Limits::default()).await,
    );
    #[cfg(not(feature = "kubernetes"))]
    {
        let _ = (clusters, certificates);
        Err(DriverError::NotSupported(NOT_BUILT.into()))
    }
}
