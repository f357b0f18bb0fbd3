//! What a step works with: read in the transaction that writes its intent.

use std::time::Duration;

use crate::seal::JournalKey;
use magnum_common::context::{Caller, RequestContext};
use magnum_common::error::{ErrorClass, Exception, Fault};
use magnum_common::ids::RequestId;
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use magnum_db::AnyConnection;

use super::engine::Timing;
use super::journal::{JournalError, Operation, Unreadable, fenced, read};
use super::lease::Lease;
use super::retry::{self, Failure, FailureClass, History};
use super::settle;
use super::state::State;
use crate::store;
use crate::workflows::start::{Start, start};
use crate::workflows::{Args, DriverRef, OperationKind, Step, rules};

/// The rows of the cluster, and how much time is left.
#[derive(Debug, Clone)]
pub struct Material {
    /// The cluster.
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
    /// Until the deadline.
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

/// Writes the intent of `step` and reads what it needs.
pub fn begin(
    conn: &mut AnyConnection,
    lease: &Lease,
    operation: &Operation,
    step: Step,
    timing: &Timing,
) -> Result<Begin, JournalError> {
    if fenced::intent(conn, lease, step)?.stop_requested {
        return settle::stopped(conn, lease, operation).map(Begin::Ended);
    }
    let left = fenced::start_deadline(conn, lease, timing.time_limit(&operation.args))?;
    if left.is_some_and(|left| left <= 0) {
        return Ok(Begin::Fail(Failure {
            class: FailureClass::TimedOut,
            reason: timing.timed_out(&operation.args),
        }));
    }
    let panics = read::panics(conn, operation.id.as_str())?;
    let history = History {
        attempts: operation.attempts,
        failures: operation.failures,
        panics,
    };
    if retry::lost_too_often(history, &timing.limits) {
        return Ok(Begin::Fail(permanent(format!(
            "Conductors ended {} times while they worked on this; the driver may be the cause.",
            operation.attempts
        ))));
    }
    let Some(mut cluster) = store::clusters::find(conn, &operation.cluster)? else {
        return settle::cluster_gone(conn, lease, operation).map(Begin::Ended);
    };
    let mut node_groups = store::node_groups::of(conn, &operation.cluster)?;
    let mut started = None;
    if operation.args.started.is_none() {
        let start = rules::allowed(operation.kind, cluster.status)
            .and_then(|()| start(&operation.args.work, &cluster, &node_groups));
        match start {
            Ok(start) => {
                started = Some(record_start(conn, lease, operation, &start)?);
                cluster = store::clusters::find(conn, &operation.cluster)?.ok_or(JournalError::Stale)?;
                node_groups = store::node_groups::of(conn, &operation.cluster)?;
            }
            Err(fault)
                if fault.exception == Exception::NodeGroupNotFound
                    && operation.kind == OperationKind::NodegroupDelete =>
            {
                return settle::group_gone(conn, lease, operation).map(Begin::Ended);
            }
            Err(fault) => return Ok(Begin::Refuse(fault)),
        }
    }
    let template = match store::clusters::template(conn, &cluster.cluster_template_id)? {
        Some(template) => template,
        // A delete must be possible whatever became of the template.
        None if operation.kind == OperationKind::ClusterDelete => {
            ClusterTemplate::new(cluster.cluster_template_id.clone())
        }
        None => {
            let fault = Fault::cluster_template_not_found(cluster.cluster_template_id.as_str());
            return Ok(Begin::Fail(permanent(fault.message)));
        }
    };
    let upgrade_to = match operation.args.work.workflow().new_template() {
        Some(template) => match store::clusters::template(conn, template)? {
            Some(template) => Some(template),
            None => {
                return Ok(Begin::Refuse(Fault::cluster_template_not_found(
                    template.as_str(),
                )));
            }
        },
        None => None,
    };
    if let Some(new) = &operation.args.certificates {
        // What the driver is to bring to the cluster; the row follows when it has taken them.
        new.clone().apply(&mut cluster);
    }
    Ok(Begin::Go(Box::new(Material {
        node_groups,
        upgrade_to,
        started,
        pinned: store::cluster_driver::find(conn, &operation.cluster)?,
        time_left: left.map(|left| Duration::from_millis(left.unsigned_abs())),
        cluster,
        template,
        panics,
    })))
}

/// The operation's turn has come: the rows show it, and the journal has the way back.
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

fn permanent(reason: String) -> Failure {
    Failure {
        class: FailureClass::Driver(ErrorClass::Permanent),
        reason,
    }
}

/// The context an operation was accepted with. One that an operator retries has lost its token when it ended;
/// it gets what the journal still knows of the caller.
pub fn context(key: &JournalKey, operation: &Operation) -> Result<RequestContext, String> {
    let Some(sealed) = &operation.context else {
        let caller = Caller {
            user_id: operation.user_id.clone(),
            project_id: operation.project_id.clone(),
            ..Caller::default()
        };
        let request = operation.request_id.clone().unwrap_or_else(RequestId::random);
        return Ok(RequestContext::for_caller(&caller, &request));
    };
    key.open(sealed)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or_else(|| {
            "The request's context cannot be opened: all conductors need the same [conductor] journal_key_file, \
             and it has to keep the old keys."
                .to_owned()
        })
}
