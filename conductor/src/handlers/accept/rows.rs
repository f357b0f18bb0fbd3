//! Turns plans into rows: the journal's, and those of Magnum's tables.

use std::sync::Arc;

use magnum_db::AnyConnection;
use magnum_db::write::{cluster_health, cluster_reservations};
use magnum_telemetry::trace::TraceContext;

use super::Prepared;
use crate::handlers::plan::{Plan, Verdict, Writes};
use crate::operations::finish;
use crate::operations::journal::{JournalError, NewOperation, write};
use crate::operations::state::State;
use crate::operations::stored_reply::StoredReply;
use crate::store;
use crate::workflows::{Args, format};

/// The journal's row for a planned request, with its turn in the queue.
pub(super) fn new_operation(one: &Prepared, plan: &Plan, now: i64, turn: i64) -> NewOperation {
    let kind = one.incoming.command.kind();
    let context = &one.incoming.context;
    let mut needed = format::FIRST;
    let (state, args, reason, answer) = match &plan.verdict {
        Verdict::Queue(work) => {
            let args = Args {
                started: plan.writes.start.as_ref().map(|start| start.started.clone()),
                ..Args::from(work.clone())
            };
            needed = work.workflow().format();
            let answer = kind
                .is_answered_when_accepted()
                .then_some(Ok(serde_json::Value::Null));
            (State::Queued, args.to_bytes().unwrap_or_default(), None, answer)
        }
        // An operation that has ended needs no arguments.
        Verdict::Done(value) => (State::Succeeded, Vec::new(), None, Some(Ok(value.clone()))),
        Verdict::Refuse(fault) => (
            State::Refused,
            Vec::new(),
            Some(fault.message.clone()),
            Some(Err(fault.clone())),
        ),
        Verdict::Merge(reason) => (
            State::Cancelled,
            Vec::new(),
            Some(reason.clone()),
            Some(Ok(serde_json::Value::Null)),
        ),
    };
    let answer = answer
        .filter(|_| one.reply.is_some())
        .and_then(|answer| StoredReply::new(&answer).ok())
        .map(StoredReply::into_bytes);
    let open = state.is_open();
    NewOperation {
        uuid: one.id.to_string(),
        message_id: one.incoming.message.as_ref().map(ToString::to_string),
        kind: kind.as_str().to_owned(),
        cluster_uuid: clipped(one.incoming.command.cluster().as_str(), 36),
        project_id: context.project_id().map(|text| clipped(text, 255)),
        user_id: context.user_id().map(|text| clipped(text, 255)),
        request_id: context.request_id().map(|text| clipped(text, 64)),
        traceparent: one.incoming.trace.as_ref().map(TraceContext::parent),
        tracestate: one
            .incoming
            .trace
            .as_ref()
            .and_then(TraceContext::state)
            .map(str::to_owned),
        state: state.as_str().to_owned(),
        step: Some(kind.first_step().as_str().to_owned()),
        stop_requested: false,
        args,
        context: open.then(|| one.sealed.clone()),
        driver: plan.writes.driver.as_ref().map(|driver| driver.name.clone()),
        driver_version: plan.writes.driver.as_ref().map(|driver| driver.version.clone()),
        reply: one.reply.clone(),
        reply_pending: answer.is_some(),
        answer,
        attempts: 0,
        failures: 0,
        lease_epoch: 0,
        turn,
        reason,
        created_ms: now,
        updated_ms: now,
        ended_ms: (!open).then_some(now),
        format: needed,
    }
}

/// Cuts a value to the length of its column: a refused request may have any text as its uuid. NUL is removed, since
/// PostgreSQL stores it nowhere.
fn clipped(text: &str, characters: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(characters).collect()
}

/// Applies the writes of many plans: new rows of all of them in one statement per table, changes one by one.
pub(super) fn apply(
    conn: &mut AnyConnection,
    plans: Vec<(&Arc<Prepared>, Writes)>,
    me: &str,
) -> Result<(), JournalError> {
    let mut clusters = Vec::new();
    let mut node_groups = Vec::new();
    for (one, writes) in plans {
        let cluster = one.incoming.command.cluster();
        for open in &writes.cancel {
            finish::supersede(conn, open.row, open.state, me, &one.id)?;
        }
        for open in &writes.stop {
            let reason = format!("operation {} deletes the cluster", one.id);
            write::request_stop(conn, open.row, Some(me), &reason)?;
        }
        if let Some(open) = &writes.make_due {
            write::make_due(conn, open.row, Some(me))?;
        }
        if let Some(health) = &writes.health {
            cluster_health::set(conn, cluster, health.status, &health.reasons)?;
        }
        if let Some(group) = &writes.group {
            store::node_groups::save(conn, &group.0, &group.1)?;
        }
        // A new group has its status in its own row.
        if let Some(start) = &writes.start
            && !store::start::apply(conn, cluster, start)?
        {
            return Err(JournalError::Stale);
        }
        clusters.extend(writes.cluster.map(|cluster| *cluster));
        node_groups.extend(writes.node_groups);
    }
    store::clusters::insert(conn, &clusters)?;
    store::node_groups::insert(conn, &node_groups)?;
    Ok(())
}

/// Ends the reservations of clusters that are created or refused now: from here on quotas count their rows.
pub(super) fn end_reservations<'a>(
    conn: &mut AnyConnection,
    messages: impl IntoIterator<Item = &'a Prepared>,
) -> Result<(), JournalError> {
    let clusters: Vec<String> = messages
        .into_iter()
        .filter(|one| one.incoming.command.creates_cluster())
        .map(|one| clipped(one.incoming.command.cluster().as_str(), 36))
        .collect();
    Ok(cluster_reservations::remove(conn, &clusters)?)
}
