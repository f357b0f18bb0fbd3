//! `credential_rotate`: a new credential for what runs in the cluster. The cluster's status stays as it is.

use magnum_common::error::Fault;
use magnum_common::ids::ClusterUuid;

use super::plan::{Plan, View};
use crate::workflows::{OperationKind, Work, rules};

/// Plans a rotation.
pub fn plan(cluster: &ClusterUuid, view: &View) -> Plan {
    let Some(row) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(cluster.as_str()));
    };
    match rules::allowed(OperationKind::CredentialRotate, row.status) {
        Ok(()) => Plan::queue(Work::CredentialRotate {}, row, view),
        Err(fault) => Plan::refuse(fault),
    }
}

#[cfg(test)]
mod tests {
    use magnum_common::model::{Cluster, ClusterStatus};

    use super::super::plan::Verdict;
    use super::*;

    #[test]
    fn the_status_is_checked_and_not_changed() {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.status = Some(ClusterStatus::UpdateFailed);
        let mut view = View {
            cluster: Some(cluster.clone()),
            ..View::default()
        };
        let rotates = plan(&"c".into(), &view);
        assert_eq!(rotates.verdict, Verdict::Queue(Work::CredentialRotate {}));
        assert_eq!(rotates.writes.start.unwrap().status, None);
        cluster.status = Some(ClusterStatus::CreateInProgress);
        view.cluster = Some(cluster);
        assert!(matches!(plan(&"c".into(), &view).verdict, Verdict::Refuse(_)));
    }
}
