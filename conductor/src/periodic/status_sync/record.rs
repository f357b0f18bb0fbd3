//! What a changed cluster's report becomes: rows, the end of the operation that waits, a notification.

use magnum_common::context::RequestContext;
use magnum_common::ids::OperationId;
use magnum_common::model::{Cluster, ClusterStatus};
use magnum_db::AnyConnection;

use super::verdict::status_after;
use crate::operations::notice::{ClusterSnapshot, Notice, NoticeDetails, NoticeOutcome};
use crate::operations::{JournalError, OperationKind, finish};
use crate::store::{clusters, node_groups};
use magnum_driver_api::DriverReport;

/// Writes a report over the status that was looked at. `None`: the cluster has another status by now.
pub(super) fn record(
    conn: &mut AnyConnection,
    cluster: &Cluster,
    report: &DriverReport,
) -> Result<Option<ClusterStatus>, JournalError> {
    // Only clusters in a known status are claimed.
    let Some(before) = cluster.status else {
        return Ok(None);
    };
    let after = status_after(before, report);
    let reason = report
        .cluster
        .status_reason
        .as_deref()
        .or_else(|| cluster.status_reason.as_deref().filter(|_| after == before));
    if !clusters::set_status(conn, &cluster.uuid, Some(before), after, reason)? {
        return Ok(None);
    }
    clusters::apply(conn, &cluster.uuid, &report.cluster)?;
    for group in &report.node_groups {
        node_groups::apply(conn, &cluster.uuid, group, true)?;
    }
    if let Some(stack) = &report.cluster.stack_id {
        node_groups::adopt_stack(conn, &cluster.uuid, stack)?;
    }
    finish::observed(conn, &cluster.uuid, after, reason)?;
    Ok(Some(after))
}

/// What is told of a cluster that reached its end: by its operation, if one of ours waited for it.
pub(super) fn notice_of(
    status: ClusterStatus,
    operation: Option<OperationId>,
    mut seen: ClusterSnapshot,
) -> Notice {
    if let Some(operation) = operation {
        return Notice::Ended {
            operation,
            seen: Some(Box::new(seen)),
        };
    }
    seen.cluster.status = Some(status);
    Notice::Complete(Box::new(NoticeDetails {
        kind: match status {
            ClusterStatus::CreateComplete | ClusterStatus::CreateFailed => OperationKind::ClusterCreate,
            ClusterStatus::DeleteComplete | ClusterStatus::DeleteFailed => OperationKind::ClusterDelete,
            _ => OperationKind::ClusterUpdate,
        },
        outcome: if status.is_failed() {
            NoticeOutcome::Failure
        } else {
            NoticeOutcome::Success
        },
        cluster: seen.cluster.uuid.clone(),
        seen: Some(seen),
        context: RequestContext::admin(),
        refusal: None,
    }))
}
