//! Writes the report of a changed cluster: its rows, the end of its operation; and makes its notification.

use std::borrow::Cow;

use magnum_common::context::RequestContext;
use magnum_common::ids::OperationId;
use magnum_common::model::{Cluster, ClusterStatus};
use magnum_db::AnyConnection;

use super::failed_groups;
use super::verdict::status_after;
use crate::operations::notice::{ClusterSnapshot, Notice, NoticeDetails, NoticeOutcome};
use crate::operations::{JournalError, OperationKind, finish};
use crate::store::{clusters, node_groups};
use magnum_driver_api::DriverReport;

/// Writes a report, if the cluster still has the status from before the poll. `None`: it has another one by now.
///
/// # Errors
/// The database failed, or the operation's row cannot be read.
pub(super) fn record(
    conn: &mut AnyConnection,
    cluster: &Cluster,
    report: &DriverReport,
) -> Result<Option<ClusterStatus>, JournalError> {
    // Only clusters in a known status are claimed.
    let Some(before) = cluster.status else {
        return Ok(None);
    };
    let waits = failed_groups::awaited(conn, &cluster.uuid, report)?;
    let report = &waits.map_or_else(|| Cow::Borrowed(report), Cow::Owned);
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

/// The notification of a cluster that left its status in progress: that of its operation, if one was observed.
pub(super) fn notice_of(
    status: ClusterStatus,
    operation: Option<OperationId>,
    mut snapshot: ClusterSnapshot,
) -> Notice {
    if let Some(operation) = operation {
        return Notice::Ended {
            operation,
            snapshot: Some(Box::new(snapshot)),
        };
    }
    snapshot.cluster.status = Some(status);
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
        cluster: snapshot.cluster.uuid.clone(),
        snapshot: Some(snapshot),
        context: RequestContext::admin(),
        refusal: None,
    }))
}
