//! The journal, as it is shown to users and operators: operations, and what happened to them.
//!
//! Only what may be shown is read: neither arguments nor contexts nor answers. Conductors, who own the journal, have
//! their own reads.

mod search;
mod stuck;

use diesel::prelude::*;

pub use self::search::{
    KINDS, Matching, OPEN_STATES, OperationFilter, OperationRecord, STATES, find, history, list, matching,
    newest_id, number_of,
};
pub use self::stuck::{ahead_of, ended, open_counts, stuck};

use crate::schema::{conductor_operation, conductor_operation_event};
use crate::{AnyConnection, DbError};
use magnum_common::ids::{ClusterUuid, MessageId};

use super::{SortDir, Tenancy};

/// An operation. Times are milliseconds since 1970 by the database's clock.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = conductor_operation)]
#[expect(missing_docs, reason = "the columns are explained in docs/DURABILITY.md")]
pub struct Operation {
    pub id: i64,
    pub uuid: String,
    pub message_id: Option<String>,
    pub kind: String,
    pub cluster_uuid: String,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    pub request_id: Option<String>,
    pub state: String,
    pub step: Option<String>,
    pub stop_requested: bool,
    pub driver: Option<String>,
    pub driver_version: Option<String>,
    pub reply_pending: bool,
    pub attempts: i32,
    pub failures: i32,
    pub next_attempt_ms: Option<i64>,
    pub owner: Option<String>,
    pub lease_epoch: i64,
    pub lease_expires_ms: Option<i64>,
    pub deadline_ms: Option<i64>,
    pub progress_text: Option<String>,
    pub reason: Option<String>,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub ended_ms: Option<i64>,
}

/// One thing that happened to an operation.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = conductor_operation_event)]
#[expect(missing_docs, reason = "the names say it")]
pub struct OperationEvent {
    pub id: i64,
    pub operation_uuid: String,
    pub at_ms: i64,
    pub attempt: i32,
    pub epoch: i64,
    pub kind: String,
    pub step: Option<String>,
    pub conductor: Option<String>,
    pub detail: Option<String>,
}

/// Whether a conductor has recorded this message: not (`None`), refused with a reason, or accepted (`Some(None)`).
///
/// # Errors
/// When the database fails.
pub fn refusal_of(conn: &mut AnyConnection, message: &MessageId) -> Result<Option<Option<String>>, DbError> {
    use conductor_operation::dsl as op;
    let found: Option<(String, Option<String>)> = op::conductor_operation
        .filter(op::message_id.eq(message.as_str().to_owned()))
        .select((op::state, op::reason))
        .first(conn)
        .optional()?;
    Ok(found.map(|(state, reason)| (state == REFUSED).then(|| reason.unwrap_or_default())))
}

/// Whether a conductor of ours is at work on an operation of this cluster.
///
/// # Errors
/// When the database fails.
pub fn is_at_work(conn: &mut AnyConnection, cluster: &ClusterUuid) -> Result<bool, DbError> {
    use conductor_operation::dsl as op;
    let at_work: Option<i64> = op::conductor_operation
        .filter(op::running_key.eq(cluster.as_str().to_owned()))
        .select(op::id)
        .first(conn)
        .optional()?;
    Ok(at_work.is_some())
}

/// The state of an operation that no conductor was allowed to begin.
const REFUSED: &str = "refused";

/// Which part of the operations of a cluster, in the order in which they were accepted.
#[derive(Debug, Clone, Copy)]
pub struct OperationPage {
    /// Maximum number of operations.
    pub limit: u32,
    /// The number of the operation after which the page starts.
    pub after: Option<i64>,
    /// First ones first, or last ones.
    pub direction: SortDir,
}

/// A page of the operations of a cluster, of those whose project or user has asked for them.
///
/// # Errors
/// When the database fails.
pub fn of_cluster(
    conn: &mut AnyConnection,
    cluster: &ClusterUuid,
    asked_by: &Tenancy,
    page: &OperationPage,
) -> Result<Vec<Operation>, DbError> {
    use conductor_operation::dsl as op;
    let mut query = op::conductor_operation
        .filter(op::cluster_uuid.eq(cluster.as_str().to_owned()))
        .select(Operation::as_select())
        .limit(i64::from(page.limit))
        .into_boxed();
    query = match asked_by {
        Tenancy::All => query,
        Tenancy::Project(project) => query.filter(op::project_id.eq(project.clone())),
        Tenancy::User(user) => query.filter(op::user_id.eq(user.clone())),
        Tenancy::Nobody => query.filter(op::id.lt(0)),
    };
    query = match (page.direction, page.after) {
        (SortDir::Asc, None) => query.order(op::id.asc()),
        (SortDir::Asc, Some(after)) => query.filter(op::id.gt(after)).order(op::id.asc()),
        (SortDir::Desc, None) => query.order(op::id.desc()),
        (SortDir::Desc, Some(after)) => query.filter(op::id.lt(after)).order(op::id.desc()),
    };
    Ok(query.load(conn)?)
}

/// The number of an operation of a cluster.
///
/// # Errors
/// When the database fails.
pub fn number(conn: &mut AnyConnection, cluster: &ClusterUuid, uuid: &str) -> Result<Option<i64>, DbError> {
    use conductor_operation::dsl as op;
    Ok(op::conductor_operation
        .filter(op::uuid.eq(uuid))
        .filter(op::cluster_uuid.eq(cluster.as_str()))
        .select(op::id)
        .first(conn)
        .optional()?)
}

/// The operation that has made a cluster, whether the cluster still exists or not.
///
/// # Errors
/// When the database fails.
pub fn creation(conn: &mut AnyConnection, cluster: &ClusterUuid) -> Result<Option<Operation>, DbError> {
    use conductor_operation::dsl as op;
    Ok(op::conductor_operation
        .filter(op::cluster_uuid.eq(cluster.as_str()))
        .filter(op::kind.eq("cluster_create"))
        .filter(op::state.ne("refused"))
        .order(op::id)
        .select(Operation::as_select())
        .first(conn)
        .optional()?)
}

/// What happened to these operations, in order; of very much, the latest `most`.
///
/// # Errors
/// When the database fails.
pub fn events(
    conn: &mut AnyConnection,
    operations: &[&str],
    most: u32,
) -> Result<Vec<OperationEvent>, DbError> {
    use conductor_operation_event::dsl as e;
    let mut found: Vec<OperationEvent> = e::conductor_operation_event
        .filter(e::operation_uuid.eq_any(operations))
        .order(e::id.desc())
        .limit(i64::from(most))
        .select(OperationEvent::as_select())
        .load(conn)?;
    found.reverse();
    Ok(found)
}

/// The operations, of all clusters, that have not ended, and the last ones that failed: each at most `most`, the
/// latest first.
///
/// # Errors
/// When the database fails.
pub fn open_and_failed(
    conn: &mut AnyConnection,
    most: u32,
) -> Result<(Vec<Operation>, Vec<Operation>), DbError> {
    use conductor_operation::dsl as op;
    let mut in_states = |states: &[&str]| -> Result<Vec<Operation>, DbError> {
        Ok(op::conductor_operation
            .filter(op::state.eq_any(states))
            .order(op::id.desc())
            .limit(i64::from(most))
            .select(Operation::as_select())
            .load(conn)?)
    };
    Ok((in_states(OPEN_STATES)?, in_states(&["failed"])?))
}
