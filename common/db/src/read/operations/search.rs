//! Operations that somebody looks for: by cluster, project, kind, state or id, the newest first.
//!
//! Indexes answer for an id, for clusters and for states. Of projects, kinds and requests there is none: there the table
//! is walked from its newest row down, which is why [`OperationFilter::after_id`] is there.

use diesel::prelude::*;
use magnum_drivers::api_exchange::METHOD as DRIVER_CALL;

use super::{Operation, OperationEvent};
use crate::connection::{AnyConnection, MultiBackend};
use crate::error::DbError;
use crate::schema::{conductor_operation, conductor_operation_event};

use conductor_operation::dsl as op;

/// The states in which there is still something to do.
pub const OPEN_STATES: &[&str] = &["queued", "running", "retrying", "observing"];

/// Every state, the open ones first.
pub const STATES: &[&str] = &[
    "queued",
    "running",
    "retrying",
    "observing",
    "succeeded",
    "failed",
    "refused",
    "cancelled",
];

/// Every kind of operation: the RPC methods that are recorded.
pub const KINDS: &[&str] = &[
    "cluster_create",
    "cluster_update",
    "cluster_delete",
    "cluster_resize",
    "cluster_upgrade",
    "nodegroup_create",
    "nodegroup_update",
    "nodegroup_delete",
    "rotate_ca_certificate",
    "credential_rotate",
    "cluster_rebuild",
    "cluster_reboot",
    DRIVER_CALL,
];

/// Which operations are wanted: those for which all of this is so. `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OperationFilter {
    /// Its number in the journal.
    pub id: Option<i64>,
    /// It is about one of these clusters, by uuid.
    pub clusters: Option<Vec<String>>,
    /// This project has asked for it.
    pub project: Option<String>,
    /// This request of a client has led to it.
    pub request: Option<String>,
    /// It is of this kind.
    pub kind: Option<String>,
    /// It is in one of these states.
    pub states: Option<Vec<String>>,
    /// It was accepted then or later, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Its number is lower.
    pub before_id: Option<i64>,
    /// Its number is higher.
    pub after_id: Option<i64>,
}

/// A query of operations whose columns are not chosen yet.
pub type Matching = conductor_operation::BoxedQuery<'static, MultiBackend>;

/// The operations that the filter wants, the newest first.
pub fn matching(filter: &OperationFilter) -> Matching {
    let mut query = op::conductor_operation.order(op::id.desc()).into_boxed();
    macro_rules! keep {
        ($($field:ident => $column:ident.$compare:ident),* $(,)?) => {
            $(if let Some(value) = filter.$field.clone() {
                query = query.filter(op::$column.$compare(value));
            })*
        };
    }
    keep! {
        id => id.eq,
        clusters => cluster_uuid.eq_any,
        project => project_id.eq,
        request => request_id.eq,
        kind => kind.eq,
        states => state.eq_any,
        since_ms => created_ms.ge,
        before_id => id.lt,
        after_id => id.gt,
    }
    query
}

/// At most `most` of the operations that the filter wants, the newest first.
///
/// # Errors
/// When the database fails.
pub fn list(
    conn: &mut AnyConnection,
    filter: &OperationFilter,
    most: u32,
) -> Result<Vec<Operation>, DbError> {
    Ok(matching(filter)
        .select(Operation::as_select())
        .limit(i64::from(most))
        .load(conn)?)
}

/// The number of the newest operation; 0 when there is none.
///
/// # Errors
/// When the database fails.
pub fn newest_id(conn: &mut AnyConnection) -> Result<i64, DbError> {
    let newest: Option<i64> = op::conductor_operation
        .select(op::id)
        .order(op::id.desc())
        .first(conn)
        .optional()?;
    Ok(newest.unwrap_or(0))
}

/// The number of the operation with this id, or of the one that one of these messages became.
///
/// # Errors
/// When the database fails.
pub fn number_of(conn: &mut AnyConnection, uuid: &str, messages: &[&str]) -> Result<Option<i64>, DbError> {
    let by_uuid: Option<i64> = op::conductor_operation
        .filter(op::uuid.eq(uuid))
        .select(op::id)
        .first(conn)
        .optional()?;
    if by_uuid.is_some() {
        return Ok(by_uuid);
    }
    Ok(op::conductor_operation
        .filter(op::message_id.eq_any(messages))
        .select(op::id)
        .first(conn)
        .optional()?)
}

/// An operation as far as people may see it, with what only its own page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRecord {
    /// The operation.
    pub operation: Operation,
    /// The W3C trace context that it belongs to, such as `00-<trace id>-<span id>-01`.
    pub traceparent: Option<String>,
    /// Whether the sender of the message waits for an answer.
    pub is_call: bool,
}

/// The operation with this id.
///
/// # Errors
/// When the database fails.
pub fn find(conn: &mut AnyConnection, uuid: &str) -> Result<Option<OperationRecord>, DbError> {
    let found: Option<(Operation, Option<String>, bool)> = op::conductor_operation
        .filter(op::uuid.eq(uuid))
        .select((Operation::as_select(), op::traceparent, op::reply.is_not_null()))
        .first(conn)
        .optional()?;
    Ok(found.map(|(operation, traceparent, is_call)| OperationRecord {
        operation,
        traceparent,
        is_call,
    }))
}

/// What happened to an operation, in order; of very much, the latest `most`.
///
/// # Errors
/// When the database fails.
pub fn history(conn: &mut AnyConnection, uuid: &str, most: u32) -> Result<Vec<OperationEvent>, DbError> {
    use conductor_operation_event::dsl as event;
    let mut found: Vec<OperationEvent> = event::conductor_operation_event
        .filter(event::operation_uuid.eq(uuid))
        .order(event::id.desc())
        .limit(i64::from(most))
        .select(OperationEvent::as_select())
        .load(conn)?;
    found.reverse();
    Ok(found)
}
