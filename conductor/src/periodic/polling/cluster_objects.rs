//! The rows of a cluster that is polled, for its driver's look: written while the claim holds and the cluster has the
//! status that it had when it was claimed.

use std::sync::Arc;

use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::ClusterStatus;
use magnum_db::{AnyConnection, DbError, lock};
use magnum_driver_api::SharedObjects;
use tokio_util::sync::CancellationToken;

use crate::objects_rpc::ObjectsRpc;
use crate::objects_rpc::cluster_objects::{Denied, OwnObjects, WriteRight};
use crate::store::clusters;

/// Whether a conductor still has a claim, by cluster and number; locks its row.
pub(in crate::periodic) type IsHeld =
    fn(&mut AnyConnection, &ConductorId, &ClusterUuid, i64) -> Result<bool, DbError>;

/// A look writes while its claim holds.
pub(super) struct LookRight {
    pub(super) me: ConductorId,
    pub(super) cluster: ClusterUuid,
    pub(super) epoch: i64,
    pub(super) is_held: IsHeld,
    /// The status when the cluster was read. One that is in progress belongs to a look at the status; a look at the
    /// health of such a cluster writes nothing, since whatever goes on there does.
    pub(super) status: Option<ClusterStatus>,
    pub(super) reads_status: bool,
}

impl WriteRight for LookRight {
    fn hold(&self, conn: &mut AnyConnection) -> Result<(), Denied> {
        let revoked = |why: &str| Err(Denied::Revoked(why.to_owned()));
        // The cluster first: all transactions lock in this order.
        if !lock::cluster(conn, &self.cluster)? {
            return revoked("the cluster's row is gone");
        }
        let status = clusters::find(conn, &self.cluster)?.and_then(|cluster| cluster.status);
        if status != self.status {
            return revoked("the cluster has another status by now");
        }
        if status.is_some_and(ClusterStatus::is_in_progress) != self.reads_status {
            return revoked("the cluster is in progress, and this look is not at its status");
        }
        if !(self.is_held)(conn, &self.me, &self.cluster, self.epoch)? {
            return revoked("another conductor looks at the cluster by now");
        }
        Ok(())
    }
}

/// The objects for a look with this right.
pub(super) fn of_look(rpc: &ObjectsRpc, right: LookRight, over: &CancellationToken) -> SharedObjects {
    let cluster = right.cluster.clone();
    SharedObjects::new(OwnObjects::new(
        rpc.clone(),
        cluster,
        Arc::new(right),
        over.clone(),
    ))
}
