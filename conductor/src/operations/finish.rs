//! How operations end: what goes into the rows together with the end.
//!
//! Each function here is one transaction's content: journal, cluster and node groups change together or not at
//! all. A cluster's status is only changed from the status this operation had put there, so an end can never
//! undo a deletion or overwrite what something else did meanwhile; what a driver *learned* (stack id, addresses)
//! is kept in any case, because the delete that follows needs it.

mod rows;

use magnum_common::error::{Exception, Fault};
use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::{ClusterStatus, Outcome};
use magnum_db::AnyConnection;
use magnum_driver_api::{DriverReport, Reason};
use magnum_objects as objects;
use serde_json::Value;

use super::journal::read::OpenRow;
use super::journal::{self, JournalError, Operation, OperationRow, fenced, read, write};
use super::lease::{Lease, fence};
use super::state::State;
use super::stored_reply::{Reply, StoredReply};
use crate::store;
use crate::workflows::description::ReplyValue;
use crate::workflows::outcome::{self, Consequences, Standing};
use crate::workflows::{Args, OperationKind};
use rows::{complete, consequences, driver_took_it, end_groups, leave_no_certificates, write_report};

/// Why a superseded operation ended.
pub const SUPERSEDED: &str = "The cluster is being deleted; this operation was stopped for that.";

/// Why an operation ended that an operator discarded while it ran.
pub const STOPPED: &str = "An operator stopped this operation.";

/// Writes what a driver call returned, and moves the operation on.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn driver_returned(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
    report: &DriverReport,
) -> Result<State, JournalError> {
    let stop = fence(conn, lease)?.stop_requested;
    write_report(conn, &operation.cluster, report, !stop)?;
    if stop {
        return stopped(conn, lease, operation);
    }
    let standing = outcome::standing(report);
    if !matches!(standing, Standing::Failed(_)) {
        driver_took_it(conn, operation)?;
    }
    match standing {
        Standing::InProgress => {
            if !operation.kind.moves_status() {
                let (from, to) = (
                    status_before(operation),
                    operation.kind.status(Outcome::InProgress),
                );
                store::clusters::set_status(conn, &operation.cluster, from, to, None)?;
            }
            let answer = cluster_reply(conn, operation)?;
            fenced::observe(conn, lease, operation.step, answer.as_ref())?;
            Ok(State::Observing)
        }
        Standing::Complete => {
            // The answer first: it shows the cluster, and a delete leaves none.
            complete(conn, operation, report)?;
            let answer = cluster_reply(conn, operation)?;
            fenced::end(conn, lease, State::Succeeded, None, answer.as_ref())?;
            Ok(State::Succeeded)
        }
        Standing::Failed(reason) => {
            leave_no_certificates(
                conn,
                &operation.id,
                operation.kind,
                operation.step,
                &operation.cluster,
            )?;
            consequences(
                conn,
                &operation.cluster,
                &outcome::failed(&operation.args, &reason),
            )?;
            let answer = if operation.kind.moves_status() {
                cluster_reply(conn, operation)?
            } else {
                // Nothing but the answer tells the caller.
                recorded(operation, &Err(Fault::new(Exception::MagnumException, &reason)))?
            };
            fenced::end(
                conn,
                lease,
                State::Failed,
                Some(&Reason::open(reason)),
                answer.as_ref(),
            )?;
            Ok(State::Failed)
        }
    }
}

/// Ends an operation that was given up. The fault is what tenants are told, the `whole` is for administrators.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn failed(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
    fault: &Fault,
    whole: &str,
) -> Result<State, JournalError> {
    if fence(conn, lease)?.stop_requested {
        return stopped(conn, lease, operation);
    }
    let reason = &fault.message;
    let unsupported = fault.exception == Exception::NotSupported;
    let what = if unsupported && operation.kind.description().is_put_back_when_unsupported {
        outcome::put_back(&operation.args)
    } else {
        outcome::failed(&operation.args, reason)
    };
    consequences(conn, &operation.cluster, &what)?;
    leave_no_certificates(
        conn,
        &operation.id,
        operation.kind,
        operation.step,
        &operation.cluster,
    )?;
    let answer = recorded(operation, &Err(fault.clone()))?;
    let reason = Reason::internal(reason, whole);
    fenced::end(conn, lease, State::Failed, Some(&reason), answer.as_ref())?;
    Ok(State::Failed)
}

/// Ends an operation that was asked to stop: because a delete goes ahead, which then owns the cluster's status, or because
/// an operator said so, which leaves a failed cluster.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn stopped(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
) -> Result<State, JournalError> {
    fence(conn, lease)?;
    // The delete may have failed since; the cluster's status is still that one's.
    let is_the_deletes = |status| {
        matches!(
            status,
            ClusterStatus::DeleteInProgress | ClusterStatus::DeleteFailed
        )
    };
    let deleting = operation.kind != OperationKind::ClusterDelete
        && store::clusters::find(conn, &operation.cluster)?
            .is_none_or(|cluster| cluster.status.is_some_and(is_the_deletes));
    let reason = if deleting { SUPERSEDED } else { STOPPED };
    leave_no_certificates(
        conn,
        &operation.id,
        operation.kind,
        operation.step,
        &operation.cluster,
    )?;
    if !deleting {
        consequences(
            conn,
            &operation.cluster,
            &outcome::failed(&operation.args, reason),
        )?;
    }
    let answer = recorded(operation, &Err(Fault::new(Exception::Conflict, reason)))?;
    fenced::end(
        conn,
        lease,
        State::Cancelled,
        Some(&reason.into()),
        answer.as_ref(),
    )?;
    Ok(State::Cancelled)
}

/// Ends a deletion of a node group that is not there any more: it has what it wants.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn group_gone(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
) -> Result<State, JournalError> {
    fence(conn, lease)?;
    let answer = recorded(operation, &Ok(Value::Null))?;
    let reason = Reason::from("The node group's row is gone.");
    fenced::end(conn, lease, State::Succeeded, Some(&reason), answer.as_ref())?;
    Ok(State::Succeeded)
}

/// Ends an operation whose cluster is not there any more: a delete has what it wants, others have nothing to do.
///
/// # Errors
/// [`JournalError::LeaseLost`]: another conductor has the operation by now. Else the database failed.
pub fn cluster_gone(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
) -> Result<State, JournalError> {
    fence(conn, lease)?;
    let (state, answer): (State, Reply) = if operation.kind == OperationKind::ClusterDelete {
        store::clusters::remove(conn, &operation.cluster)?;
        (State::Succeeded, Ok(Value::Null))
    } else {
        (
            State::Cancelled,
            Err(Fault::cluster_not_found(operation.cluster.as_str())),
        )
    };
    let answer = recorded(operation, &answer)?;
    fenced::end(
        conn,
        lease,
        state,
        Some(&"The cluster's row is gone.".into()),
        answer.as_ref(),
    )?;
    Ok(state)
}

/// The status sync saw a cluster reach `status`, and has written that (compare-and-set) in this transaction:
/// settles the operation that waited for it, marks node groups that were left in progress, and removes the rows
/// of a deleted cluster. Returns the operation settled. Does nothing while the status is `*_IN_PROGRESS`.
///
/// # Errors
/// The database failed.
pub fn observed(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    status: ClusterStatus,
    reason: Option<&str>,
) -> Result<Option<OperationId>, JournalError> {
    if status.is_in_progress() {
        return Ok(None);
    }
    let waiting = read::observing(conn, cluster.as_str())?;
    let args = waiting.as_ref().and_then(|row| Args::from_bytes(&row.args).ok());
    if status == ClusterStatus::DeleteComplete {
        store::clusters::remove(conn, cluster)?;
    } else {
        end_groups(conn, cluster, status, reason)?;
        if let Some(node_group) = args.as_ref().and_then(|args| args.work.removed_group()) {
            if status.is_failed() {
                store::node_groups::set_status(conn, node_group, ClusterStatus::DeleteFailed, reason)?;
            } else {
                store::node_groups::remove(conn, cluster, node_group)?;
            }
        }
    }
    let Some(row) = waiting else {
        return Ok(None);
    };
    let id = OperationId::new(row.uuid.clone());
    let to = if status.is_failed() {
        State::Failed
    } else {
        State::Succeeded
    };
    if to == State::Failed
        && let Some(resized) = args.as_ref().and_then(Args::resized)
    {
        store::node_groups::set_count(conn, &resized.node_group, resized.to, resized.from)?;
    }
    write::end(conn, row.id, State::Observing, to, reason, None)?;
    Ok(Some(id))
}

/// Ends an operation that nobody works on (its deadline passed, its driver is nowhere, an operator discards it).
/// `Stale` when somebody does, meanwhile.
///
/// # Errors
/// The database failed, or a row of the journal cannot be read.
pub fn give_up(
    conn: &mut AnyConnection,
    operation: &Operation,
    to: State,
    reason: &str,
    by: &str,
) -> Result<(), JournalError> {
    write::end(conn, operation.row, operation.state, to, Some(reason), Some(by))?;
    consequences(
        conn,
        &operation.cluster,
        &outcome::failed(&operation.args, reason),
    )?;
    // What is observed was taken by the driver, and its call was answered then.
    if operation.state != State::Observing {
        leave_no_certificates(
            conn,
            &operation.id,
            operation.kind,
            operation.step,
            &operation.cluster,
        )?;
        let fault = Fault::new(Exception::MagnumException, reason);
        if let Some(answer) = recorded(operation, &Err(fault))? {
            write::store_answer(conn, operation.row, &answer)?;
        }
    }
    Ok(())
}

/// Ends an operation that no conductor can read. What it has done to the rows is not known, but for the status: a cluster that is
/// in progress, and that no other operation has, has failed.
///
/// # Errors
/// [`JournalError::Stale`]: somebody works on it. Else the database failed.
pub fn give_up_unread(
    conn: &mut AnyConnection,
    row: &OperationRow,
    reason: &str,
    by: &str,
) -> Result<(), JournalError> {
    write::end_unread(conn, row, reason, by)?;
    let cluster = ClusterUuid::new(row.cluster_uuid.clone());
    let others = read::open(conn, &[cluster.as_str()])?;
    let has_another =
        |other: &OpenRow| other.row < row.id || other.kind == OperationKind::ClusterDelete.as_str();
    let status = store::clusters::find(conn, &cluster)?.and_then(|found| found.status);
    if let Some(status) = status.filter(|status| status.is_in_progress())
        && let Some(action) = status.action()
        && !others.iter().any(has_another)
    {
        let what = Consequences {
            status: Some((status, ClusterStatus::of(action, Outcome::Failed))),
            reason: Some(reason.to_owned()),
            groups_too: true,
            ..Consequences::default()
        };
        consequences(conn, &cluster, &what)?;
    }
    // One that has an answer was answered when it was accepted, or when the driver had taken it.
    if row.answer.is_none() {
        let fault = Fault::new(Exception::MagnumException, reason);
        if let Ok(answer) = StoredReply::new(&Err(fault)) {
            write::store_answer_of_call(conn, row.id, &answer)?;
        }
    }
    Ok(())
}

/// Cancels an operation that was not running, because a delete goes ahead.
///
/// # Errors
/// The database failed.
pub fn supersede(
    conn: &mut AnyConnection,
    row: i64,
    from: State,
    by: &str,
    delete: &OperationId,
) -> Result<(), JournalError> {
    let reason = format!("The cluster is being deleted (operation {delete}).");
    write::end(conn, row, from, State::Cancelled, Some(&reason), Some(by))?;
    if from != State::Observing {
        let row = read::by_row(conn, row)?;
        let kind: Option<OperationKind> = row.kind.parse().ok();
        if let (Some(kind), Some(Ok(step))) = (kind, row.step.as_deref().map(str::parse)) {
            let (id, cluster) = (row.uuid.as_str().into(), row.cluster_uuid.as_str().into());
            leave_no_certificates(conn, &id, kind, step, &cluster)?;
        }
        let fault = Fault::new(Exception::Conflict, reason);
        let was_answered = kind.is_some_and(OperationKind::is_answered_when_accepted);
        if !was_answered && let Ok(answer) = StoredReply::new(&Err(fault)) {
            write::store_answer_of_call(conn, row.id, &answer)?;
        }
    }
    Ok(())
}

fn status_before(operation: &Operation) -> Option<ClusterStatus> {
    operation.args.started.as_ref().and_then(|started| started.status)
}

/// The answer of a call that went well: what it was about, as its row is now; null for what is gone, and for a new
/// credential.
fn cluster_reply(
    conn: &mut AnyConnection,
    operation: &Operation,
) -> Result<Option<StoredReply>, JournalError> {
    if operation.reply.is_none() {
        return Ok(None);
    }
    let value = match operation.kind.description().answer {
        ReplyValue::Nothing | ReplyValue::Accepted => Value::Null,
        ReplyValue::NodeGroup => {
            let wanted = operation.args.work.workflow().node_group();
            store::node_groups::of(conn, &operation.cluster)?
                .iter()
                .find(|group| Some(&group.uuid) == wanted)
                .map_or(Value::Null, objects::node_group::encode)
        }
        ReplyValue::Cluster => store::clusters::find(conn, &operation.cluster)?
            .map_or(Value::Null, |cluster| objects::cluster::encode(&cluster)),
    };
    recorded(operation, &Ok(value))
}

fn recorded(operation: &Operation, answer: &Reply) -> Result<Option<StoredReply>, JournalError> {
    if operation.reply.is_none() || operation.kind.is_answered_when_accepted() {
        return Ok(None);
    }
    StoredReply::new(answer)
        .map(Some)
        .map_err(|error| journal::Unreadable {
            operation: operation.id.to_string(),
            column: "answer",
            detail: error.to_string(),
        })
        .map_err(JournalError::from)
}
