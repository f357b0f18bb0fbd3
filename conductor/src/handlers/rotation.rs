//! `rotate_ca_certificate` and `credential_rotate`: new certificates for a cluster, and a new credential for what
//! runs in it. The latter leaves the cluster's status as it is.
//!
//! Differs from Magnum: the cluster refers to its new certificates once the driver has taken them. Magnum writes the
//! references before it asks the driver, so one that cannot rotate leaves a cluster with a CA that its API server has
//! never seen.

use magnum_common::error::Fault;
use magnum_common::ids::ClusterUuid;

use super::plan::{Plan, View};
use crate::workflows::kinds::{CredentialRotate, RotateCaCertificate};
use crate::workflows::{Work, rules};

/// Plans a rotation of the credential.
pub fn plan_credential(cluster: &ClusterUuid, view: &View) -> Plan {
    plan(CredentialRotate {}.into(), cluster, view)
}

/// Plans a rotation of the certificates.
pub fn plan_ca(cluster: &ClusterUuid, view: &View) -> Plan {
    plan(RotateCaCertificate {}.into(), cluster, view)
}

fn plan(work: Work, cluster: &ClusterUuid, view: &View) -> Plan {
    let Some(row) = &view.cluster else {
        return Plan::refuse(Fault::cluster_not_found(cluster.as_str()));
    };
    match rules::allowed(work.kind(), row.status) {
        Ok(()) => Plan::queue(work, row, view),
        Err(fault) => Plan::refuse(fault),
    }
}

#[cfg(test)]
mod tests {
    use magnum_common::model::{Cluster, ClusterStatus};

    use super::super::plan::Verdict;
    use super::*;

    #[test]
    fn the_status_is_checked_and_a_credential_does_not_change_it() {
        let mut cluster = Cluster::new("c".into(), "t".into());
        cluster.status = Some(ClusterStatus::UpdateFailed);
        let mut view = View {
            cluster: Some(cluster.clone()),
            ..View::default()
        };
        let rotates = plan_credential(&"c".into(), &view);
        assert_eq!(rotates.verdict, Verdict::queue(CredentialRotate {}));
        assert_eq!(rotates.writes.start.unwrap().status, None);
        cluster.status = Some(ClusterStatus::CreateInProgress);
        view.cluster = Some(cluster);
        for plan in [plan_credential, plan_ca] {
            assert!(matches!(plan(&"c".into(), &view).verdict, Verdict::Refuse(_)));
        }
    }
}
