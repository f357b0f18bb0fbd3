//! The beginning of a step: its intent is written, and what its effect needs is read, in one transaction.
//!
//! Not every step begins. Instead the operation may end (a delete or an operator stops it, its cluster is gone), fail
//! (no time is left, too many conductors died with it), or be refused (its turn has come, and the rows do not allow it
//! any more). The first step of an operation that had to wait for its turn also starts it: the rows show it from then
//! on, and the journal has the way back.

use std::time::Duration;

use magnum_common::error::{ErrorClass, Exception, Fault};
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use magnum_db::{AnyConnection, DbError};
use magnum_driver_api::Reason;

use super::finish;
use super::journal::{JournalError, Operation, Unreadable, fenced, read};
use super::lease::{Fenced, Lease};
use super::retry::{self, Failure, FailureClass};
use super::services::OperationTiming;
use super::state::State;
use crate::store;
use crate::workflows::start::{Start, start};
use crate::workflows::{Args, DriverRef, OperationKind, Step, rules};

/// The rows of the cluster, and how much time is left.
#[derive(Debug, Clone)]
pub struct Material {
    /// The cluster. Of a rotation with the new certificates, which its row gets when the driver has taken them.
    pub cluster: Cluster,
    /// Its node groups.
    pub node_groups: Vec<NodeGroup>,
    /// Its template.
    pub template: ClusterTemplate,
    /// The template it is to go to.
    pub upgrade_to: Option<ClusterTemplate>,
    /// The operation's arguments, if it has started only now.
    pub started: Option<Args>,
    /// The driver that built it.
    pub pinned: Option<DriverRef>,
    /// Until the deadline; `None` without one.
    pub time_left: Option<Duration>,
    /// Panics so far.
    pub panics: u32,
}

/// Whether a step can begin.
#[derive(Debug)]
pub enum Begin {
    /// The intent is written.
    Go(Box<Material>),
    /// The operation ended here instead.
    Ended(State),
    /// It cannot begin, and that is a failure.
    Fail(Failure),
    /// It must not, by the rows as they are now.
    Refuse(Fault),
}

/// Writes the intent of `step` and reads what it needs. The transaction is the caller's.
///
/// # Errors
/// The lease is lost, the database fails, or the rows have changed since they were read ([`JournalError::Stale`]).
pub fn begin(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
    step: Step,
    timing: &OperationTiming,
) -> Result<Begin, JournalError> {
    match read_material(conn, lease, operation, step, timing) {
        Ok(material) => Ok(Begin::Go(Box::new(material))),
        Err(NotBegun::Instead(begin)) => Ok(*begin),
        Err(NotBegun::Journal(error)) => Err(error),
    }
}

/// Why there is no material.
enum NotBegun {
    /// What happens instead: never [`Begin::Go`].
    Instead(Box<Begin>),
    Journal(JournalError),
}

impl From<Begin> for NotBegun {
    fn from(begin: Begin) -> Self {
        Self::Instead(Box::new(begin))
    }
}

impl From<JournalError> for NotBegun {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<DbError> for NotBegun {
    fn from(error: DbError) -> Self {
        Self::Journal(error.into())
    }
}

fn read_material(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
    step: Step,
    timing: &OperationTiming,
) -> Result<Material, NotBegun> {
    let fenced = fenced::intent(conn, lease, step)?;
    if fenced.stop_requested {
        return Err(Begin::Ended(finish::stopped(conn, lease, operation)?).into());
    }
    let time_left = time_left(conn, lease, fenced, operation, timing)?;
    let panics = panics(conn, lease, operation, &timing.limits)?;
    let Some(cluster) = store::clusters::find(conn, &operation.cluster)? else {
        return Err(Begin::Ended(finish::cluster_gone(conn, lease, operation)?).into());
    };
    let node_groups = store::node_groups::of(conn, &operation.cluster)?;
    let (mut cluster, node_groups, started) = if operation.args.started.is_some() {
        (cluster, node_groups, None)
    } else if let Some(args) = started_before(conn, operation)? {
        (cluster, node_groups, Some(args))
    } else {
        let args = start_now(conn, lease, operation, &cluster, &node_groups)?;
        let cluster = store::clusters::find(conn, &operation.cluster)?.ok_or(JournalError::Stale)?;
        let node_groups = store::node_groups::of(conn, &operation.cluster)?;
        (cluster, node_groups, Some(args))
    };
    if let Some(new) = &operation.args.certificates {
        new.clone().apply(&mut cluster);
    }
    Ok(Material {
        template: template(conn, operation, &cluster)?,
        upgrade_to: upgrade_to(conn, operation)?,
        pinned: store::cluster_driver::find(conn, &operation.cluster)?,
        cluster,
        node_groups,
        started,
        time_left,
        panics,
    })
}

/// Until the deadline, which the first step of an operation sets.
fn time_left(
    conn: &mut AnyConnection,
    lease: &Lease,
    fenced: Fenced,
    operation: &Operation,
    timing: &OperationTiming,
) -> Result<Option<Duration>, NotBegun> {
    let left_ms = fenced::start_deadline(conn, lease, fenced, timing.time_limit(&operation.args))?;
    if left_ms.is_some_and(|left| left <= 0) {
        let failure = Failure {
            class: FailureClass::TimedOut,
            reason: Reason::open(timing.timed_out(&operation.args)),
        };
        return Err(Begin::Fail(failure).into());
    }
    Ok(left_ms.map(|left| Duration::from_millis(left.unsigned_abs())))
}

/// Panics so far, unless attempts ended too often without a word: then the driver is not called again.
fn panics(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
    limits: &retry::Limits,
) -> Result<u32, NotBegun> {
    // A panic ends the lease, so under the first one there was none yet.
    let panics = if lease.is_first() {
        0
    } else {
        read::panics(conn, operation.id.as_str())?
    };
    if retry::lost_too_often(operation.lost_claims, limits) {
        return Err(permanent(format!(
            "Conductors ended {} times while they worked on this; the driver may be the cause.",
            operation.lost_claims
        ))
        .into());
    }
    Ok(panics)
}

/// The arguments, if the operation has started and this worker has not learnt of it: the commit was carried out, its answer got
/// lost, and the beginning is repeated. The rows show the operation then, and do not allow another start.
fn started_before(conn: &mut AnyConnection, operation: &Operation) -> Result<Option<Args>, JournalError> {
    let args = read::args(conn, &operation.id)?;
    Ok(Some(args).filter(|args| args.started.is_some()))
}

/// The operation's turn has come: the rows show it from now on, if they allow it. Returns its arguments with the way
/// back.
fn start_now(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
    cluster: &Cluster,
    node_groups: &[NodeGroup],
) -> Result<Args, NotBegun> {
    let planned = rules::allowed(operation.kind, cluster.status)
        .and_then(|()| start(&operation.args.work, cluster, node_groups));
    match planned {
        Ok(start) => Ok(record_start(conn, lease, operation, &start)?),
        Err(fault) => {
            let group_gone = fault.exception == Exception::NodeGroupNotFound;
            if group_gone && operation.args.work.removed_group().is_some() {
                return Err(Begin::Ended(finish::group_gone(conn, lease, operation)?).into());
            }
            Err(Begin::Refuse(fault).into())
        }
    }
}

fn record_start(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
    start: &Start,
) -> Result<Args, JournalError> {
    if !store::start::apply(conn, &operation.cluster, start)? {
        return Err(JournalError::Stale);
    }
    let args = Args {
        started: Some(start.started.clone()),
        ..operation.args.clone()
    };
    let bytes = args.to_bytes().map_err(|error| Unreadable {
        operation: operation.id.to_string(),
        column: "args",
        detail: error.to_string(),
    })?;
    fenced::set_args(conn, lease, &bytes)?;
    Ok(args)
}

/// The cluster's template. A delete goes on whatever became of it.
fn template(
    conn: &mut AnyConnection,
    operation: &Operation,
    cluster: &Cluster,
) -> Result<ClusterTemplate, NotBegun> {
    let uuid = &cluster.cluster_template_id;
    match store::clusters::template(conn, uuid)? {
        Some(template) => Ok(template),
        None if operation.kind == OperationKind::ClusterDelete => Ok(ClusterTemplate::new(uuid.clone())),
        None => Err(permanent(Fault::cluster_template_not_found(uuid.as_str()).message).into()),
    }
}

/// The template that the cluster is to go to, if the operation is about one.
fn upgrade_to(conn: &mut AnyConnection, operation: &Operation) -> Result<Option<ClusterTemplate>, NotBegun> {
    let Some(uuid) = operation.args.work.workflow().new_template() else {
        return Ok(None);
    };
    match store::clusters::template(conn, uuid)? {
        Some(template) => Ok(Some(template)),
        None => Err(Begin::Refuse(Fault::cluster_template_not_found(uuid.as_str())).into()),
    }
}

fn permanent(reason: String) -> Begin {
    Begin::Fail(Failure {
        class: FailureClass::Driver(ErrorClass::Permanent),
        reason: Reason::open(reason),
    })
}
