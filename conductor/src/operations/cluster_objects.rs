//! The rows of its cluster for an operation's driver call: written under the lease.

use std::sync::Arc;

use magnum_common::model::ClusterStatus;
use magnum_db::{AnyConnection, lock};
use magnum_driver_api::SharedObjects;
use tokio_util::sync::CancellationToken;

use super::OperationKind;
use super::journal::JournalError;
use super::lease::{self, Lease};
use super::services::OperationServices;
use crate::objects_rpc::cluster_objects::{Denied, OwnObjects, WriteRight};
use crate::store::clusters;

/// An operation writes while it holds its lease, and no delete has gone ahead.
struct OperationRight {
    lease: Arc<Lease>,
    kind: OperationKind,
}

impl WriteRight for OperationRight {
    fn hold(&self, conn: &mut AnyConnection) -> Result<(), Denied> {
        match lease::fence(conn, &self.lease) {
            Ok(_) => {}
            Err(JournalError::Db(error)) => return Err(Denied::Db(error)),
            Err(error) => return Err(Denied::Revoked(error.to_string())),
        }
        let cluster = self.lease.cluster();
        let status = if lock::cluster(conn, cluster)? {
            clusters::find(conn, cluster)?.and_then(|cluster| cluster.status)
        } else {
            return Err(Denied::Revoked("the cluster's row is gone".to_owned()));
        };
        if status == Some(ClusterStatus::DeleteInProgress) && self.kind != OperationKind::ClusterDelete {
            return Err(Denied::Revoked("the cluster is being deleted".to_owned()));
        }
        Ok(())
    }
}

/// The objects for a call of an operation under this lease, which `over` ends.
pub(super) fn of_operation(
    services: &OperationServices,
    lease: &Arc<Lease>,
    kind: OperationKind,
    over: &CancellationToken,
) -> SharedObjects {
    let right = OperationRight {
        lease: Arc::clone(lease),
        kind,
    };
    SharedObjects::new(OwnObjects::new(
        services.objects(),
        lease.cluster().clone(),
        Arc::new(right),
        over.clone(),
    ))
}
