//! Accepting: reads, plans, writes, in one transaction for many messages.
//!
//! A transaction takes a *wave*: messages of which no two concern the same cluster or are the same message, so
//! that all plans can be made from one reading. If a wave fails for any reason but an outage (one of its messages
//! raced with another conductor, or the database does not take a value), its messages are accepted one by one,
//! so a bad one harms only itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use magnum_common::context::RequestContext;
use magnum_common::db::{self, AnyConnection, Database, DbError};
use magnum_common::error::Fault;
use magnum_common::ids::{ConductorId, MessageId, OperationId};
use magnum_common::model::{Cluster, NodeGroup};
use magnum_common::rpc::ReplyAddress;
use magnum_common::seal::JournalKey;

use super::command::Command;
use super::plan::{OpenOperation, Plan, Verdict, View, Writes};
use super::{cluster_create, cluster_delete, cluster_update};
use crate::operations::answer::Recorded;
use crate::operations::journal::{JournalError, NewOperation, read, write};
use crate::operations::state::State;
use crate::operations::{OperationKind, settle};
use crate::store;
use crate::workflows::{Args, DriverRef, DriverSource, choose_driver, step_after};

/// Tries of one message that keeps colliding with others, before it counts as an outage.
const COLLISIONS: u32 = 8;

/// The longest message id that the journal holds; oslo's have 32 characters.
const MESSAGE_ID: usize = 64;

/// A request on its way into the journal.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// What is asked.
    pub command: Command,
    /// The message's id; without one, a redelivery cannot be recognised.
    pub message: Option<MessageId>,
    /// Who asks.
    pub context: RequestContext,
    /// Where a call is answered.
    pub reply: Option<ReplyAddress>,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// In the journal, in this state.
    Recorded {
        /// Its id.
        operation: OperationId,
        /// Queued, or ended already.
        state: State,
        /// A call's answer is ready to be sent.
        answered: bool,
    },
    /// It was accepted before.
    Known {
        /// Its id.
        operation: OperationId,
        /// A call's answer is ready to be sent again.
        answered: bool,
    },
}

/// Accepts requests.
#[derive(Clone)]
pub struct Acceptor {
    db: Database,
    drivers: Arc<dyn DriverSource>,
    key: Arc<JournalKey>,
    me: ConductorId,
}

/// A request with everything prepared that needs no database.
struct Prepared {
    incoming: Incoming,
    id: OperationId,
    sealed: Vec<u8>,
    reply: Option<Vec<u8>>,
}

/// Cuts a batch into waves, in order.
pub fn waves(batch: Vec<Incoming>) -> Vec<Vec<Incoming>> {
    let mut waves: Vec<Vec<Incoming>> = Vec::new();
    let (mut clusters, mut messages) = (HashSet::new(), HashSet::new());
    for incoming in batch {
        let same_cluster = !clusters.insert(incoming.command.cluster().clone());
        let same_message = incoming
            .message
            .clone()
            .is_some_and(|message| !messages.insert(message));
        if same_cluster || same_message || waves.is_empty() {
            clusters = HashSet::from([incoming.command.cluster().clone()]);
            messages = incoming.message.iter().cloned().collect();
            waves.push(Vec::new());
        }
        if let Some(wave) = waves.last_mut() {
            wave.push(incoming);
        }
    }
    waves
}

impl Acceptor {
    /// Accepts into `db` on behalf of `me`.
    pub fn new(db: Database, drivers: Arc<dyn DriverSource>, key: Arc<JournalKey>, me: ConductorId) -> Self {
        Self { db, drivers, key, me }
    }

    /// Accepts one wave: an entry for each request, in order. An error is an outage: nothing of the wave may be
    /// acknowledged, and all of it can be tried again; what was committed before the outage is then known.
    pub async fn accept(&self, wave: Vec<Incoming>) -> Result<Vec<Accepted>, JournalError> {
        let mut prepared = Vec::with_capacity(wave.len());
        for incoming in wave {
            prepared.push(Arc::new(self.prepare(incoming)?));
        }
        match self.transaction(prepared.clone()).await {
            Ok(accepted) => return Ok(accepted),
            Err(error) if is_outage(&error) => return Err(error),
            Err(error) if prepared.len() > 1 => {
                tracing::debug!(%error, messages = prepared.len(), "accepting one by one");
            }
            Err(error) => tracing::debug!(%error, "accepting again"),
        }
        let mut accepted = Vec::with_capacity(prepared.len());
        for one in prepared {
            accepted.push(self.accept_one(one).await?);
        }
        Ok(accepted)
    }

    async fn accept_one(&self, one: Arc<Prepared>) -> Result<Accepted, JournalError> {
        let mut collisions = 0;
        loop {
            match self.transaction(vec![Arc::clone(&one)]).await {
                Ok(mut accepted) => {
                    return accepted.pop().ok_or(JournalError::Stale);
                }
                Err(error) if is_outage(&error) => return Err(error),
                Err(error) if is_collision(&error) && collisions < COLLISIONS => {
                    collisions += 1;
                }
                Err(error) if is_collision(&error) => {
                    return Err(DbError::Conflict(error.to_string()).into());
                }
                Err(error) => {
                    tracing::error!(
                        magnum.cluster.uuid = %one.incoming.command.cluster(), kind = %one.incoming.command.kind(),
                        %error, "the database does not take a request"
                    );
                    return self.refuse(one).await;
                }
            }
        }
    }

    /// Records a request that the database does not take as refused. When not even that can be written, the
    /// fault is not the request's: that is an outage, and nothing is acknowledged.
    async fn refuse(&self, one: Arc<Prepared>) -> Result<Accepted, JournalError> {
        let me = self.me.clone();
        self.db
            .transaction::<_, JournalError, _>(move |conn| {
                let plan = Plan::refuse(Fault::invalid_parameter(
                    "The database does not take one of the request's values.",
                ));
                let row = new_operation(&one, &plan, db::now_ms(conn)?);
                let answered = row.reply_pending;
                write::record(conn, &[row], me.as_str())?;
                Ok(Accepted::Recorded {
                    operation: one.id.clone(),
                    state: State::Refused,
                    answered,
                })
            })
            .await
            .map_err(|error| DbError::Unavailable(format!("no request can be recorded: {error}")).into())
    }

    fn prepare(&self, mut incoming: Incoming) -> Result<Prepared, JournalError> {
        // An id that the column cannot hold cannot be compared either.
        incoming.message = incoming
            .message
            .filter(|id| id.as_str().len() <= MESSAGE_ID && !id.as_str().contains('\0'));
        let context = serde_json::to_vec(incoming.context.as_map()).unwrap_or_default();
        let sealed = self
            .key
            .seal(&context)
            .map_err(|error| DbError::Unavailable(format!("the context cannot be sealed: {error}")))?;
        Ok(Prepared {
            id: OperationId::random(),
            sealed,
            // An address is two strings and a word; encoding cannot fail, and a call that could not be
            // answered is still better carried out than lost.
            reply: incoming
                .reply
                .as_ref()
                .and_then(|reply| rmp_serde::to_vec_named(reply).ok()),
            incoming,
        })
    }

    async fn transaction(&self, wave: Vec<Arc<Prepared>>) -> Result<Vec<Accepted>, JournalError> {
        let (drivers, me) = (Arc::clone(&self.drivers), self.me.clone());
        self.db
            .transaction(move |conn| accept_wave(conn, &wave, drivers.as_ref(), me.as_str()))
            .await
    }
}

fn is_outage(error: &JournalError) -> bool {
    !is_collision(error) && error.is_transient()
}

fn is_collision(error: &JournalError) -> bool {
    matches!(
        error,
        JournalError::Stale | JournalError::Db(DbError::UniqueViolation { .. })
    )
}

/// The transaction.
fn accept_wave(
    conn: &mut AnyConnection,
    wave: &[Arc<Prepared>],
    drivers: &dyn DriverSource,
    me: &str,
) -> Result<Vec<Accepted>, JournalError> {
    let messages: Vec<&str> = wave
        .iter()
        .filter_map(|one| one.incoming.message.as_ref().map(MessageId::as_str))
        .collect();
    let known = read::known(conn, &messages)?;
    let is_known = |one: &Prepared| {
        one.incoming
            .message
            .as_ref()
            .and_then(|message| known.get(message.as_str()))
            .cloned()
    };
    let fresh: Vec<&Prepared> = wave
        .iter()
        .map(Arc::as_ref)
        .filter(|one| is_known(one).is_none())
        .collect();
    let snapshot = Snapshot::read(conn, &fresh)?;
    let now = db::now_ms(conn)?;

    let mut accepted = Vec::with_capacity(wave.len());
    let mut rows = Vec::with_capacity(fresh.len());
    let mut writes = Vec::with_capacity(fresh.len());
    for one in wave {
        if let Some(before) = is_known(one) {
            if before.answered && one.reply.is_some() {
                write::answer_again(conn, &before.operation)?;
            }
            accepted.push(Accepted::Known {
                operation: before.operation.into(),
                answered: before.answered && one.reply.is_some(),
            });
            continue;
        }
        let mut plan = snapshot.plan(&one.incoming, drivers);
        let row = new_operation(one, &plan, now);
        accepted.push(Accepted::Recorded {
            operation: one.id.clone(),
            state: row.state.parse().unwrap_or(State::Queued),
            answered: row.reply_pending,
        });
        rows.push(row);
        writes.push((one, std::mem::take(&mut plan.writes)));
    }
    write::record(conn, &rows, me)?;
    apply(conn, writes, me)?;
    Ok(accepted)
}

/// Everything the plans of a wave look at, in few queries.
struct Snapshot {
    clusters: HashMap<String, Cluster>,
    node_groups: HashMap<String, Vec<NodeGroup>>,
    templates: HashMap<String, magnum_common::model::ClusterTemplate>,
    pinned: HashMap<String, DriverRef>,
    open: HashMap<String, Vec<OpenOperation>>,
}

impl Snapshot {
    fn read(conn: &mut AnyConnection, fresh: &[&Prepared]) -> Result<Self, JournalError> {
        let of = |wanted: &dyn Fn(&Command) -> bool| -> Vec<&str> {
            fresh
                .iter()
                .map(|one| &one.incoming.command)
                .filter(|command| wanted(command))
                .map(|command| command.cluster().as_str())
                .collect()
        };
        let is_new = |command: &Command| matches!(command, Command::ClusterCreate(_));
        let all = of(&|_| true);
        let existing = of(&|command| !is_new(command));
        let updated = of(&|command| matches!(command, Command::ClusterUpdate(_)));
        let clusters = if all.is_empty() {
            HashMap::new()
        } else {
            store::clusters::find_many(conn, &all)?
        };
        let wanted_templates: HashSet<&str> = fresh
            .iter()
            .filter_map(|one| match &one.incoming.command {
                Command::ClusterCreate(create) => Some(create.cluster.cluster_template_id.as_str()),
                _ => None,
            })
            .chain(
                clusters
                    .values()
                    .map(|cluster| cluster.cluster_template_id.as_str()),
            )
            .collect();
        let wanted_templates: Vec<&str> = wanted_templates.into_iter().collect();
        let templates = if wanted_templates.is_empty() {
            HashMap::new()
        } else {
            store::clusters::templates(conn, &wanted_templates)?
        };
        let node_groups = if updated.is_empty() {
            HashMap::new()
        } else {
            store::node_groups::of_many(conn, &updated)?
        };
        let mut open: HashMap<String, Vec<OpenOperation>> = HashMap::new();
        let mut pinned = HashMap::new();
        if !existing.is_empty() {
            pinned = store::cluster_driver::find_many(conn, &existing)?;
            for row in read::open(conn, &existing)? {
                open.entry(row.cluster).or_default().push(OpenOperation {
                    row: row.row,
                    id: row.uuid.into(),
                    kind: row.kind.parse().ok(),
                    state: row.state.parse().unwrap_or(State::Queued),
                });
            }
        }
        Ok(Self {
            clusters,
            node_groups,
            templates,
            pinned,
            open,
        })
    }

    fn view(&self, incoming: &Incoming) -> View {
        let uuid = incoming.command.cluster().as_str();
        let cluster = self.clusters.get(uuid).cloned();
        let template = match &incoming.command {
            Command::ClusterCreate(create) => Some(&create.cluster.cluster_template_id),
            _ => cluster.as_ref().map(|cluster| &cluster.cluster_template_id),
        };
        View {
            template: template
                .and_then(|uuid| self.templates.get(uuid.as_str()))
                .cloned(),
            node_groups: self.node_groups.get(uuid).cloned().unwrap_or_default(),
            open: self.open.get(uuid).cloned().unwrap_or_default(),
            cluster: cluster.filter(|cluster| match incoming.command {
                Command::ClusterDelete(_) => may_see(&incoming.context, cluster),
                Command::ClusterCreate(_) | Command::ClusterUpdate(_) => true,
            }),
        }
    }

    fn plan(&self, incoming: &Incoming, drivers: &dyn DriverSource) -> Plan {
        let view = self.view(incoming);
        let mut plan = match &incoming.command {
            Command::ClusterCreate(create) => {
                cluster_create::plan(create, incoming.context.project_id(), &view)
            }
            Command::ClusterUpdate(update) => cluster_update::plan(update, &view),
            Command::ClusterDelete(uuid) => cluster_delete::plan(uuid, &view),
        };
        if matches!(plan.verdict, Verdict::Queue(_)) {
            let pinned = self.pinned.get(incoming.command.cluster().as_str());
            // A driver that cannot be found is the workflow's failure to report, with a status a user can see.
            plan.writes.driver = choose_driver::foresee(drivers, view.template.as_ref(), pinned);
        }
        plan
    }
}

/// Magnum's tenant filter: everything for an admin who asked for all tenants, else the project's own.
fn may_see(context: &RequestContext, cluster: &Cluster) -> bool {
    if context.is_admin() && context.all_tenants() {
        return true;
    }
    match context.project_id() {
        Some(project) => cluster.project_id.as_deref() == Some(project),
        None => context.user_id().is_some() && cluster.user_id.as_deref() == context.user_id(),
    }
}

/// The journal's row for a planned request.
fn new_operation(one: &Prepared, plan: &Plan, now: i64) -> NewOperation {
    let kind = one.incoming.command.kind();
    let context = &one.incoming.context;
    let (state, args, reason, answer) = match &plan.verdict {
        Verdict::Queue(args) => (State::Queued, args.clone(), None, None),
        Verdict::Done(value) => (State::Succeeded, empty_args(kind), None, Some(Ok(value.clone()))),
        Verdict::Refuse(fault) => (
            State::Refused,
            empty_args(kind),
            Some(fault.message.clone()),
            Some(Err(fault.clone())),
        ),
        Verdict::Merge(reason) => (
            State::Cancelled,
            empty_args(kind),
            Some(reason.clone()),
            Some(Ok(serde_json::Value::Null)),
        ),
    };
    let answer = answer
        .filter(|_| one.reply.is_some())
        .and_then(|answer| Recorded::new(&answer).ok())
        .map(Recorded::into_bytes);
    let open = state.is_open();
    NewOperation {
        uuid: one.id.to_string(),
        message_id: one.incoming.message.as_ref().map(ToString::to_string),
        kind: kind.as_str().to_owned(),
        cluster_uuid: clipped(one.incoming.command.cluster().as_str(), 36),
        project_id: context.project_id().map(|text| clipped(text, 255)),
        user_id: context.user_id().map(|text| clipped(text, 255)),
        request_id: context.request_id().map(|text| clipped(text, 64)),
        state: state.as_str().to_owned(),
        step: step_after(kind, None).map(|step| step.as_str().to_owned()),
        stop_requested: false,
        args: args.to_bytes().unwrap_or_default(),
        context: open.then(|| one.sealed.clone()),
        driver: plan.writes.driver.as_ref().map(|driver| driver.name.clone()),
        driver_version: plan.writes.driver.as_ref().map(|driver| driver.version.clone()),
        reply: one.reply.clone(),
        reply_pending: answer.is_some(),
        answer,
        attempts: 0,
        failures: 0,
        lease_epoch: 0,
        reason,
        created_ms: now,
        updated_ms: now,
        ended_ms: (!open).then_some(now),
    }
}

/// A refused request may carry anything as its uuid; the journal keeps what fits, without the NUL that PostgreSQL
/// takes nowhere.
fn clipped(text: &str, characters: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(characters).collect()
}

fn empty_args(kind: OperationKind) -> Args {
    match kind {
        OperationKind::ClusterCreate => Args::ClusterCreate { create_timeout: None },
        OperationKind::ClusterUpdate => Args::ClusterUpdate {
            resized: None,
            rollback: false,
        },
        OperationKind::ClusterDelete => Args::ClusterDelete {},
    }
}

/// Applies the writes of many plans: new rows of all of them in one statement per table, changes one by one.
fn apply(
    conn: &mut AnyConnection,
    plans: Vec<(&Arc<Prepared>, Writes)>,
    me: &str,
) -> Result<(), JournalError> {
    let mut clusters = Vec::new();
    let mut node_groups = Vec::new();
    for (one, writes) in plans {
        let cluster = one.incoming.command.cluster();
        for open in &writes.cancel {
            settle::supersede(conn, open.row, open.state, me, &one.id)?;
        }
        for open in &writes.stop {
            let reason = format!("operation {} deletes the cluster", one.id);
            write::request_stop(conn, open.row, Some(me), &reason)?;
        }
        if let Some(open) = &writes.hasten {
            write::hasten(conn, open.row, Some(me))?;
        }
        if let Some(change) = writes.status {
            if !store::clusters::set_status(conn, cluster, change.from, change.to, None)? {
                return Err(JournalError::Stale);
            }
            if change.node_groups {
                store::node_groups::set_all_status(conn, cluster, change.to)?;
            }
        }
        if let Some((health, reasons)) = &writes.health {
            store::clusters::set_health(conn, cluster, *health, reasons)?;
        }
        if let Some((group, from, to)) = &writes.count
            && !store::node_groups::set_count(conn, group, *from, *to)?
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
