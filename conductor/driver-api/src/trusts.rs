//! Users and trusts of clusters in Keystone, for drivers whose clusters act in the cloud by a trust.

use std::collections::HashMap;

use async_trait::async_trait;
use magnum_common::context::RequestContext;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Cluster;
use magnum_common::secret::Secret;

use crate::DriverError;

/// A user of the cluster's own, the trustee, and the trust by which it acts for the one who had the cluster made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterTrust {
    /// The trust.
    pub trust_id: String,
    /// The user.
    pub trustee_user_id: String,
    /// The user's name, in the domain of `[trust]`.
    pub trustee_username: String,
    /// The user's password: for memory and pipes only.
    pub trustee_password: Secret,
}

/// The trusts of clusters. They are removed by the conductor once their cluster is gone.
#[async_trait]
pub trait ClusterTrusts: Send + Sync {
    /// The cluster's trust. Where it has none it is made first, by the user and with the token of `context`. May be
    /// repeated: what an interrupted attempt has made is used.
    ///
    /// # Errors
    /// Transient where Keystone or the database may do it later; permanent where Keystone refuses, or `[trust]` is not
    /// configured; cancelled where the cluster is gone.
    async fn ensure(&self, cluster: &Cluster, context: &RequestContext) -> Result<ClusterTrust, DriverError>;

    /// The trusts of those clusters that have one whose password can be opened.
    ///
    /// # Errors
    /// Transient where the database may tell later.
    async fn of(&self, clusters: &[ClusterUuid]) -> Result<HashMap<ClusterUuid, ClusterTrust>, DriverError>;
}

/// Where no cluster has a trust, and none gets one.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrusts;

#[async_trait]
impl ClusterTrusts for NoTrusts {
    async fn ensure(
        &self,
        _cluster: &Cluster,
        _context: &RequestContext,
    ) -> Result<ClusterTrust, DriverError> {
        Err(DriverError::NotSupported("clusters get no trusts here".into()))
    }

    async fn of(&self, _clusters: &[ClusterUuid]) -> Result<HashMap<ClusterUuid, ClusterTrust>, DriverError> {
        Ok(HashMap::new())
    }
}
