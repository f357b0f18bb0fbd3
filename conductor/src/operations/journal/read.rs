//! Journal reads.

use std::collections::HashMap;

use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use magnum_common::ids::{ConductorId, Epoch, NodeGroupUuid, OperationId};
use magnum_db::read::operations::{self, OperationFilter};
use magnum_db::{self as db, AnyConnection, DbError, KeepPrepared as _, padded, schema};

use super::JournalError;
use super::rows::{EventKind, EventRow, OperationRow, Unreadable};
use crate::operations::state::State;
use crate::operations::turns;
use crate::store::upgrade_facts::OpenContext;
use crate::workflows::{Args, OperationKind, Step};

use schema::conductor_operation::dsl as op;

/// The row with this number; it must exist.
///
/// # Errors
/// The database failed.
pub fn by_row(conn: &mut AnyConnection, row: i64) -> Result<OperationRow, JournalError> {
    Ok(op::conductor_operation
        .filter(op::id.eq(row))
        .select(OperationRow::as_select())
        .first(conn)?)
}

/// The operation with this id.
///
/// # Errors
/// The database failed.
pub fn find(conn: &mut AnyConnection, uuid: &str) -> Result<Option<OperationRow>, JournalError> {
    Ok(op::conductor_operation
        .filter(op::uuid.eq(uuid))
        .select(OperationRow::as_select())
        .first(conn)
        .optional()?)
}

/// The operation's arguments as they are now.
///
/// # Errors
/// The database failed, or nobody can read them.
pub fn args(conn: &mut AnyConnection, operation: &OperationId) -> Result<Args, JournalError> {
    let bytes: Vec<u8> = op::conductor_operation
        .filter(op::uuid.eq(operation.as_str()))
        .select(op::args)
        .first(conn)?;
    Ok(Args::from_bytes(&bytes).map_err(|error| Unreadable {
        operation: operation.to_string(),
        column: "args",
        detail: error.to_string(),
    })?)
}

/// What is known of messages that were accepted before: their operation, and whether it has an answer.
///
/// # Errors
/// The database failed.
pub fn known(
    conn: &mut AnyConnection,
    messages: &[&str],
) -> Result<HashMap<String, KnownMessage>, JournalError> {
    let rows: Vec<(Option<String>, String, bool)> = op::conductor_operation
        .filter(op::message_id.eq_any(padded(messages)))
        .select((op::message_id, op::uuid, op::answer.is_not_null()))
        .keep_prepared()
        .load(conn)?;
    Ok(rows
        .into_iter()
        .filter_map(|(message, operation, answered)| {
            message.map(|message| (message, KnownMessage { operation, answered }))
        })
        .collect())
}

/// A message that was accepted before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownMessage {
    /// The operation it became.
    pub operation: String,
    /// Whether the operation has an answer.
    pub answered: bool,
}

/// Whether the operation has not ended; one that an operator retries is open again.
///
/// # Errors
/// The database.
pub fn is_open(conn: &mut AnyConnection, operation: &OperationId) -> Result<bool, DbError> {
    let state: Option<String> = op::conductor_operation
        .filter(op::uuid.eq(operation.as_str()))
        .select(op::state)
        .first(conn)
        .optional()?;
    Ok(state.is_some_and(|state| state.parse().is_ok_and(State::is_open)))
}

/// Operations that have not ended, with their sealed contexts.
///
/// # Errors
/// The database.
pub fn open_contexts(conn: &mut AnyConnection) -> Result<Vec<OpenContext>, DbError> {
    Ok(op::conductor_operation
        .filter(op::state.eq_any(State::OPEN.iter().map(|state| state.as_str())))
        .select((op::uuid, op::cluster_uuid, op::context, op::created_ms))
        .load(conn)?)
}

/// Whether an operation is open and its caller has no answer.
///
/// # Errors
/// The database failed.
pub fn is_unanswered(conn: &mut AnyConnection, uuid: &str) -> Result<bool, JournalError> {
    let found: i64 = op::conductor_operation
        .filter(op::uuid.eq(uuid))
        .filter(op::state.eq_any(State::OPEN.iter().map(|state| state.as_str())))
        .filter(op::answer.is_null())
        .count()
        .get_result(conn)?;
    Ok(found > 0)
}

/// Operations that have not ended, of these clusters, in order.
///
/// # Errors
/// The database failed.
pub fn open(conn: &mut AnyConnection, clusters: &[&str]) -> Result<Vec<OpenRow>, JournalError> {
    Ok(op::conductor_operation
        .filter(op::cluster_uuid.eq_any(padded(clusters)))
        .filter(op::state.eq_any(State::OPEN.iter().map(|state| state.as_str())))
        .order(op::id)
        .select((op::id, op::uuid, op::cluster_uuid, op::kind, op::state))
        .keep_prepared()
        .load::<(i64, String, String, String, String)>(conn)?
        .into_iter()
        .map(|(row, uuid, cluster, kind, state)| OpenRow {
            row,
            uuid,
            cluster,
            kind,
            state,
        })
        .collect())
}

/// An operation that has not ended.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names are the columns'")]
pub struct OpenRow {
    pub row: i64,
    pub uuid: String,
    pub cluster: String,
    pub kind: String,
    pub state: String,
}

/// Everything that happened to an operation, in order.
///
/// # Errors
/// The database failed.
pub fn events(conn: &mut AnyConnection, uuid: &str) -> Result<Vec<EventRow>, JournalError> {
    use schema::conductor_operation_event::dsl as e;
    Ok(e::conductor_operation_event
        .filter(e::operation_uuid.eq(uuid))
        .order(e::id)
        .select(EventRow::as_select())
        .load(conn)?)
}

/// How often the driver panicked in an operation.
///
/// # Errors
/// The database failed, or a row of the journal cannot be read.
pub fn panics(conn: &mut AnyConnection, uuid: &str) -> Result<u32, JournalError> {
    use schema::conductor_operation_event::dsl as e;
    let count: i64 = e::conductor_operation_event
        .filter(e::operation_uuid.eq(uuid))
        .filter(e::kind.eq(EventKind::Panicked.as_str()))
        .count()
        .get_result(conn)?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Whether the lease with this epoch was given back, or its loss explained.
///
/// # Errors
/// The database failed.
pub fn is_released(conn: &mut AnyConnection, uuid: &str, epoch: i64) -> Result<bool, JournalError> {
    use schema::conductor_operation_event::dsl as e;
    let released = e::conductor_operation_event
        .filter(e::operation_uuid.eq(uuid))
        .filter(e::epoch.eq(epoch))
        .filter(e::kind.eq(EventKind::Released.as_str()));
    Ok(diesel::select(diesel::dsl::exists(released)).get_result(conn)?)
}

/// How the worker that had the operation with this epoch has left it: `None` when it has neither ended it nor left it to the
/// cloud, or when an operator has queued it anew since.
///
/// # Errors
/// The database failed.
pub fn left_as(
    conn: &mut AnyConnection,
    operation: &OperationId,
    owner: &ConductorId,
    epoch: Epoch,
) -> Result<Option<State>, JournalError> {
    use schema::conductor_operation_event::dsl as e;
    let left: Option<String> = e::conductor_operation_event
        .filter(e::operation_uuid.eq(operation.as_str()))
        .filter(e::epoch.eq(epoch.0))
        .filter(e::conductor.eq(owner.as_str()))
        .filter(e::kind.eq_any([EventKind::Ended.as_str(), EventKind::Observing.as_str()]))
        .select(e::kind)
        .first(conn)
        .optional()?;
    let Some(left) = left else {
        return Ok(None);
    };
    if left == EventKind::Observing.as_str() {
        return Ok(Some(State::Observing));
    }
    let state: Option<String> = op::conductor_operation
        .filter(op::uuid.eq(operation.as_str()))
        .select(op::state)
        .first(conn)
        .optional()?;
    let state = state.and_then(|state| state.parse::<State>().ok());
    Ok(state.filter(|state| !state.is_open()))
}

/// The operation of a cluster that waits for the cloud.
///
/// # Errors
/// The database failed.
pub fn observing(conn: &mut AnyConnection, cluster: &str) -> Result<Option<OperationRow>, JournalError> {
    Ok(op::conductor_operation
        .filter(op::running_key.eq(cluster))
        .filter(op::state.eq(State::Observing.as_str()))
        .select(OperationRow::as_select())
        .first(conn)
        .optional()?)
}

/// New node groups of a cluster whose operations have not started: their rows are there, nobody works on them.
///
/// # Errors
/// The database failed.
pub fn waiting_groups(conn: &mut AnyConnection, cluster: &str) -> Result<Vec<NodeGroupUuid>, JournalError> {
    let waiting: Vec<Vec<u8>> = op::conductor_operation
        .filter(op::cluster_uuid.eq(cluster))
        .filter(op::state.eq(State::Queued.as_str()))
        .filter(op::kind.eq(OperationKind::NodegroupCreate.as_str()))
        .select(op::args)
        .load(conn)?;
    Ok(waiting
        .iter()
        .filter_map(|args| Args::from_bytes(args).ok())
        .filter(|args| args.started.is_none())
        .filter_map(|args| args.work.workflow().node_group().cloned())
        .collect())
}

/// These rows, in the order they were accepted in.
///
/// # Errors
/// The database failed.
pub fn by_rows(conn: &mut AnyConnection, rows: &[i64]) -> Result<Vec<OperationRow>, JournalError> {
    Ok(op::conductor_operation
        .filter(op::id.eq_any(rows))
        .order(op::id)
        .select(OperationRow::as_select())
        .load(conn)?)
}

/// Rows of operations that nobody works on and whose deadline has passed at `now`, in milliseconds since 1970.
///
/// Like the two below, it names no order and no limit: a database could take that for a reason to walk the whole journal in
/// its order, which is long, instead of what waits, which is short.
///
/// # Errors
/// The database failed.
pub fn out_of_time(conn: &mut AnyConnection, now: i64) -> Result<Vec<i64>, JournalError> {
    Ok(op::conductor_operation
        .filter(op::state.eq_any([
            State::Queued.as_str(),
            State::Retrying.as_str(),
            State::Observing.as_str(),
        ]))
        .filter(op::deadline_ms.le(now))
        .select(op::id)
        .keep_prepared()
        .load(conn)?)
}

/// Rows of operations whose driver no conductor that is alive has loaded, not in the version that built the cluster nor in one that
/// can take over, and that wait, or were left behind, for `patience_ms`. A conductor is alive when it announced its drivers within
/// `alive_ms`. Before an operation has chosen its driver, any version counts.
///
/// # Errors
/// The database failed.
pub fn without_driver(
    conn: &mut AnyConnection,
    alive_ms: i64,
    patience_ms: i64,
) -> Result<Vec<i64>, JournalError> {
    use schema::conductor_driver::dsl as d;
    let now = db::now_ms(conn)?;
    let announced: Vec<(String, String)> = d::conductor_driver
        .filter(d::announced_ms.ge(now.saturating_sub(alive_ms)))
        .filter(d::error.is_null())
        .select((d::name, d::version))
        .distinct()
        .load(conn)?;
    let names: Vec<&str> = announced.iter().map(|(name, _)| name.as_str()).collect();
    let before = now.saturating_sub(patience_ms);
    let is_left = || {
        let waits = op::state
            .eq_any([State::Queued.as_str(), State::Retrying.as_str()])
            .and(op::updated_ms.le(before));
        let left_behind = op::state.eq(State::Running.as_str()).and(is_left_since(before));
        waits.or(left_behind)
    };
    let mut rows: Vec<i64> = op::conductor_operation
        .filter(is_left())
        .filter(op::driver.is_not_null())
        .filter(op::driver.ne_all(&names))
        .select(op::id)
        .load(conn)?;
    let has_chosen = || op::step.ne(Step::ChooseDriver.as_str());
    let versions: Vec<(Option<String>, Option<String>)> = op::conductor_operation
        .filter(is_left())
        .filter(op::driver.eq_any(&names))
        .filter(op::driver_version.is_not_null())
        .filter(has_chosen())
        .select((op::driver, op::driver_version))
        .distinct()
        .load(conn)?;
    for (name, version) in versions
        .into_iter()
        .filter_map(|(name, version)| name.zip(version))
    {
        let can_operate =
            |one: &(String, String)| one.0 == name && magnum_drivers::can_operate(&version, &one.1);
        if !announced.iter().any(can_operate) {
            let of_version: Vec<i64> = op::conductor_operation
                .filter(is_left())
                .filter(op::driver.eq(&name).and(op::driver_version.eq(&version)))
                .filter(has_chosen())
                .select(op::id)
                .load(conn)?;
            rows.extend(of_version);
        }
    }
    Ok(rows)
}

/// Whether nobody has worked on a running operation since then: its lease has ended by then, or was given back, which leaves no end of
/// it but the time of the change.
#[diesel::dsl::auto_type]
pub(super) fn is_left_since(at_ms: i64) -> _ {
    let has_ended = op::lease_expires_ms.gt(0_i64).and(op::lease_expires_ms.le(at_ms));
    let was_given_back = op::lease_expires_ms
        .is_null()
        .or(op::lease_expires_ms.eq(0_i64))
        .and(op::updated_ms.le(at_ms));
    has_ended.or(was_given_back).assume_not_null()
}

/// Rows with an answer that was not sent, and that have not been touched for `quiet_ms`.
///
/// # Errors
/// The database failed.
pub fn answers_due(conn: &mut AnyConnection, quiet_ms: i64) -> Result<Vec<i64>, JournalError> {
    let now = db::now_ms(conn)?;
    Ok(op::conductor_operation
        // As the index says it.
        .filter(sql::<Bool>("reply_pending = true"))
        .filter(op::updated_ms.le(now.saturating_sub(quiet_ms)))
        .select(op::id)
        .keep_prepared()
        .load(conn)?)
}

/// Where the queue is: see [`turns`].
///
/// # Errors
/// The database failed.
pub fn present_turn(conn: &mut AnyConnection) -> Result<i64, JournalError> {
    let at_work: Vec<i64> = op::conductor_operation
        .filter(op::state.eq(State::Running.as_str()))
        .select(op::turn)
        .load(conn)?;
    let lowest_queued = if at_work.is_empty() {
        op::conductor_operation
            .filter(op::state.eq(State::Queued.as_str()))
            .select(diesel::dsl::min(op::turn))
            .first(conn)?
    } else {
        None
    };
    Ok(turns::present(at_work, lowest_queued))
}

/// What an operator wants to see.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Only these clusters'.
    pub clusters: Option<Vec<String>>,
    /// Only what this project has asked for.
    pub project: Option<String>,
    /// Only of this kind.
    pub kind: Option<OperationKind>,
    /// Only in this state.
    pub state: Option<State>,
    /// Only what was accepted since then, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// At most so many, the newest.
    pub limit: i64,
}

/// Operations, newest first.
///
/// # Errors
/// The database failed.
pub fn list(conn: &mut AnyConnection, wanted: &Wanted) -> Result<Vec<OperationRow>, JournalError> {
    Ok(operations::matching(&OperationFilter {
        clusters: wanted.clusters.clone(),
        project: wanted.project.clone(),
        kind: wanted.kind.map(|kind| kind.as_str().to_owned()),
        states: wanted.state.map(|state| vec![state.as_str().to_owned()]),
        since_ms: wanted.since_ms,
        ..OperationFilter::default()
    })
    .select(OperationRow::as_select())
    .limit(wanted.limit)
    .load(conn)?)
}
