//! What an end, or a driver's report, writes to the rows. No leases here: the callers' transactions have the fence.

use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::{Cluster, ClusterStatus, Outcome};
use magnum_db::AnyConnection;
use magnum_driver_api::DriverReport;

use crate::operations::journal::{JournalError, Operation, read, write};
use crate::store;
use crate::store::certificate_removals::MadeBy;
use crate::workflows::outcome::Consequences;
use crate::workflows::{OperationKind, Step};
use magnum_x509::authority::authority_name;

/// What the driver has accepted is true from now on, whether it is done yet or not.
pub(super) fn driver_took_it(conn: &mut AnyConnection, operation: &Operation) -> Result<(), JournalError> {
    if let Some(template) = operation.args.work.workflow().new_template() {
        store::clusters::set_template(conn, &operation.cluster, template)?;
    }
    if let Some(new) = &operation.args.certificates {
        let before = store::clusters::find(conn, &operation.cluster)?;
        store::clusters::set_certificates(conn, &operation.cluster, new)?;
        let old: Vec<String> = before.iter().flat_map(certificate_refs).collect();
        store::certificate_removals::remove(conn, &operation.cluster, &old)?;
    }
    Ok(())
}

fn certificate_refs(cluster: &Cluster) -> Vec<String> {
    let refs = [
        &cluster.ca_cert_ref,
        &cluster.magnum_cert_ref,
        &cluster.etcd_ca_cert_ref,
        &cluster.front_proxy_ca_cert_ref,
    ];
    refs.into_iter().flatten().cloned().collect()
}

/// An operation ends: what it has made for a cluster that does not refer to it is to be removed. Those of a new
/// cluster are in its row once they are complete, those of a rotation once the driver has taken them.
pub(super) fn leave_no_certificates(
    conn: &mut AnyConnection,
    operation: &OperationId,
    kind: OperationKind,
    step: Step,
    cluster: &ClusterUuid,
) -> Result<(), JournalError> {
    let made = match step {
        Step::ChooseDriver | Step::ChooseNodes => false,
        Step::GenerateCertificates => true,
        Step::CallDriver(_) => {
            kind != OperationKind::ClusterCreate && kind.steps().contains(&Step::GenerateCertificates)
        }
    };
    if made {
        let row = store::clusters::find(conn, cluster)?;
        let name = row.and_then(|row| row.name);
        let made = MadeBy {
            operation: operation.clone(),
            name: authority_name(name.as_deref(), cluster.as_str()).to_owned(),
        };
        store::certificate_removals::remove_made_by(conn, cluster, &made)?;
    }
    Ok(())
}

/// The end of a cluster's action: status, node groups, and for a deletion the removal of rows. Where the status is left
/// alone, what the driver has to say stands beside it: that an old credential could not be deleted, say.
pub(super) fn complete(
    conn: &mut AnyConnection,
    operation: &Operation,
    report: &DriverReport,
) -> Result<(), JournalError> {
    let (kind, cluster) = (operation.kind, &operation.cluster);
    if !kind.moves_status() {
        if let Some(reason) = report.cluster.status_reason.as_deref()
            && let Some(status) = store::clusters::find(conn, cluster)?.and_then(|row| row.status)
        {
            let reason = Some(write::clip(reason));
            store::clusters::set_status(conn, cluster, Some(status), status, reason)?;
        }
        return Ok(());
    }
    let status = kind.status(Outcome::Complete);
    if status == ClusterStatus::DeleteComplete {
        return Ok(store::clusters::remove(conn, cluster)?);
    }
    if let Some(node_group) = operation.args.work.removed_group() {
        store::node_groups::remove(conn, cluster, node_group)?;
    }
    let expected = kind.status(Outcome::InProgress);
    if store::clusters::set_status(conn, cluster, Some(expected), status, None)? {
        end_groups(conn, cluster, status, None)?;
    }
    Ok(())
}

/// Ends the groups that are in progress for the cluster, but not those of operations that have yet to start.
pub(super) fn end_groups(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    status: ClusterStatus,
    reason: Option<&str>,
) -> Result<(), JournalError> {
    let waiting = read::waiting_groups(conn, cluster.as_str())?;
    Ok(store::node_groups::finish(
        conn, cluster, status, reason, &waiting,
    )?)
}

/// Writes what follows from an operation that did not do what it was to do.
pub(super) fn consequences(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    what: &Consequences,
) -> Result<(), JournalError> {
    let reason = what.reason.as_deref().map(write::clip);
    let is_ours = match what.status {
        Some((from, to)) => {
            let is_ours = store::clusters::set_status(conn, cluster, Some(from), to, reason)?;
            if is_ours && what.groups_too {
                end_groups(conn, cluster, to, reason)?;
            }
            is_ours
        }
        None => true,
    };
    if is_ours && let Some((group, status)) = &what.group {
        let reason = reason.filter(|_| what.groups_too);
        store::node_groups::set_status(conn, group, *status, reason)?;
    }
    if let Some(resized) = &what.restore {
        store::node_groups::set_count(conn, &resized.node_group, resized.to, resized.from)?;
    }
    Ok(())
}

/// What the driver told about cluster and node groups. The cluster's status is not written here; the groups'
/// statuses only when `statuses`, since a delete that went ahead has set its own.
pub(super) fn write_report(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    report: &DriverReport,
    statuses: bool,
) -> Result<(), JournalError> {
    store::clusters::apply(conn, cluster, &report.cluster)?;
    for group in &report.node_groups {
        store::node_groups::apply(conn, cluster, group, statuses)?;
    }
    if let Some(stack) = &report.cluster.stack_id {
        store::node_groups::adopt_stack(conn, cluster, stack)?;
    }
    Ok(())
}
