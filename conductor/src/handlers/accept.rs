//! Accepting: reads, plans, writes, in one transaction for many messages.
//!
//! A transaction takes a *wave*: messages of which no two concern the same cluster or are the same message, so
//! that all plans can be made from one reading. If a wave fails for any reason but an outage (one of its messages
//! raced with another conductor, or the database does not take a value), its messages are accepted one by one,
//! so a bad one harms only itself. What cannot be accepted for now for a reason of its own (a row of it is locked) is
//! handed back, to be accepted alone later.
//!
//! What is done by the writes of its plan leaves no operation unless somebody waits for its reply: monitors report
//! the health of every cluster once a minute.

mod decide;
mod failure;
mod rows;
mod snapshot;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::seal::{JournalKey, Place};
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::{ConductorId, MessageId, OperationId};
use magnum_db::{self as db, AnyConnection, Database, DbError};
use magnum_rpc::ReplyAddress;
use magnum_telemetry::trace::TraceContext;
use tracing::{Instrument as _, Span};

use super::command::Command;
use super::plan::{Plan, Verdict};
use crate::operations::journal::{JournalError, read, write};
use crate::operations::notice::{Notice, NoticeDetails, NoticeOutcome, NoticeQueue};
use crate::operations::state::State;
use crate::operations::stored_reply::Caller;
use crate::operations::turns::{Flow, NO_TURN, Turns};
use crate::workflows::{DriverSource, OperationKind, Work};
pub use decide::MOST_OPEN;
use failure::{is_collision, is_its_own, is_locked, is_outage, not_taken};
use rows::{apply, end_reservations, new_operation};
use snapshot::Snapshot;

/// Attempts to accept one message that races with other transactions, before it is left for later.
const COLLISIONS: u32 = 8;

/// The longest message id that the journal holds; oslo's have 32 characters.
const MESSAGE_ID: usize = 64;

/// A request on its way into the journal.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The requested command.
    pub command: Command,
    /// The message's id; without one, a redelivery cannot be recognised.
    pub message: Option<MessageId>,
    /// The context of the caller.
    pub context: RequestContext,
    /// The reply address of a call; `None` for a cast.
    pub reply: Option<ReplyAddress>,
    /// The caller's `call_monitor_timeout`: it gives up when it gets no heartbeat for this long. `None` when it expects
    /// none.
    pub monitor: Option<Duration>,
    /// The trace that its operation belongs to.
    pub trace: Option<TraceContext>,
    /// The tracing span of the message.
    pub span: Span,
}

/// The outcome of accepting one request.
#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// In the journal, in this state.
    Recorded {
        /// Its id.
        operation: OperationId,
        /// Queued, or ended already.
        state: State,
        /// The reply to a call is ready to be sent.
        answered: bool,
    },
    /// Deduplicated: the message was accepted before.
    Known {
        /// Its id.
        operation: OperationId,
        /// The reply to a call is ready to be sent again.
        answered: bool,
    },
    /// Done, and nobody waits for a reply: there is no operation. Done again when the message is redelivered.
    Done,
}

/// Accepts requests.
#[derive(Clone)]
pub struct Acceptor {
    db: Database,
    drivers: Arc<dyn DriverSource>,
    key: Arc<JournalKey>,
    me: ConductorId,
    notices: NoticeQueue,
    turns: Arc<Turns>,
}

/// A request with all values that are made without the database.
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
    /// Accepts into `db` on behalf of `me`; `notices` takes the notifications of accepted and refused requests.
    pub fn new(
        db: Database,
        drivers: Arc<dyn DriverSource>,
        key: Arc<JournalKey>,
        me: ConductorId,
        notices: NoticeQueue,
    ) -> Self {
        Self {
            db,
            drivers,
            key,
            me,
            notices,
            turns: Arc::default(),
        }
    }

    /// Accepts one wave, which has been tried for so long already. Returns an entry for each request, in order; `None`: this
    /// one cannot be accepted now, and others can. It is to be tried with [`Self::accept_alone`], which takes its time.
    ///
    /// A failure that nobody knows is the database's at first; a request that has met nothing else for
    /// [`journal::UNKNOWN_PATIENCE`](crate::operations::journal::UNKNOWN_PATIENCE) is refused.
    ///
    /// # Errors
    /// The database is not available, or the key cannot seal a context. No message of the wave may be acknowledged, and
    /// the whole wave can be retried: requests that were committed before the outage are then [`Accepted::Known`].
    pub async fn accept(
        &self,
        wave: Vec<Incoming>,
        tried_for: Duration,
    ) -> Result<Vec<Option<Accepted>>, JournalError> {
        let mut prepared = Vec::with_capacity(wave.len());
        for incoming in wave {
            prepared.push(Arc::new(self.prepare(incoming)?));
        }
        match self.transaction(prepared.clone()).await {
            Ok(accepted) => return Ok(accepted.into_iter().map(Some).collect()),
            // Which of them it was is found out beside the intake: each attempt waits for the lock.
            Err(error) if is_locked(&error) => return Ok(vec![None; prepared.len()]),
            // What nobody knows may be about one of them.
            Err(error) if is_outage(&error, tried_for) && !error.is_unknown() => return Err(error),
            Err(error) => {
                tracing::debug!(%error, messages = prepared.len(), "accepting one by one");
            }
        }
        let mut accepted = Vec::with_capacity(prepared.len());
        for one in prepared {
            let span = one.incoming.span.clone();
            accepted.push(match self.accept_one(one, tried_for).instrument(span).await {
                Ok(accepted) => Some(accepted),
                Err(error) if is_its_own(&error) => None,
                Err(error) => return Err(error),
            });
        }
        Ok(accepted)
    }

    /// Accepts one request, which has been tried for so long already.
    ///
    /// # Errors
    /// It cannot be accepted now. The message may not be acknowledged.
    pub async fn accept_alone(
        &self,
        incoming: Incoming,
        tried_for: Duration,
    ) -> Result<Accepted, JournalError> {
        let prepared = Arc::new(self.prepare(incoming)?);
        self.accept_one(prepared, tried_for).await
    }

    async fn accept_one(&self, one: Arc<Prepared>, tried_for: Duration) -> Result<Accepted, JournalError> {
        let mut collisions = 0;
        loop {
            match self.transaction(vec![Arc::clone(&one)]).await {
                Ok(mut accepted) => {
                    return accepted.pop().ok_or(JournalError::Stale);
                }
                Err(error) if is_outage(&error, tried_for) => return Err(error),
                Err(error) if is_collision(&error) && collisions < COLLISIONS => {
                    collisions += 1;
                }
                // Not a race: the value is taken, in a way that the plan could not see (MariaDB compares texts
                // without case and accents).
                Err(JournalError::Db(DbError::UniqueViolation { .. })) => {
                    let fault = Fault::new(
                        Exception::Conflict,
                        "A uuid or name of the request is taken by something else already.",
                    );
                    return self.refuse(one, fault).await;
                }
                Err(error) if is_collision(&error) => return Err(error),
                Err(error) => {
                    tracing::error!(%error, "the database does not take a request");
                    return self.refuse(one, not_taken(&error)).await;
                }
            }
        }
    }

    /// Records a request with values that the database does not store as refused. When the refusal cannot be written
    /// either, it is an outage: the message is not acknowledged.
    async fn refuse(&self, one: Arc<Prepared>, fault: Fault) -> Result<Accepted, JournalError> {
        let me = self.me.clone();
        let (refused, refusal) = (Arc::clone(&one), fault.clone());
        let accepted = self
            .db
            .brief_transaction::<_, JournalError, _>(move |conn| {
                let plan = Plan::refuse(fault.clone());
                let row = new_operation(&one, &plan, db::now_ms(conn)?, NO_TURN);
                let answered = row.reply_pending;
                write::record(conn, &[row], me.as_str())?;
                end_reservations(conn, [&*one])?;
                Ok(Accepted::Recorded {
                    operation: one.id.clone(),
                    state: State::Refused,
                    answered,
                })
            })
            .await
            .map_err(|error| match error {
                locked if is_locked(&locked) => locked,
                error => DbError::Unavailable(format!("no request can be recorded: {error}")).into(),
            })?;
        self.notices.send(Notice::Complete(Box::new(NoticeDetails {
            kind: refused.incoming.command.kind(),
            outcome: NoticeOutcome::Failure,
            cluster: refused.incoming.command.cluster().clone(),
            snapshot: None,
            context: refused.incoming.context.clone(),
            refusal: Some(refusal),
        })));
        Ok(accepted)
    }

    fn prepare(&self, mut incoming: Incoming) -> Result<Prepared, JournalError> {
        // An id that does not fit the column cannot deduplicate either.
        incoming.message = incoming
            .message
            .filter(|id| id.as_str().len() <= MESSAGE_ID && !id.as_str().contains('\0'));
        let context = serde_json::to_vec(&incoming.context).unwrap_or_default();
        let id = OperationId::random();
        let sealed = self
            .key
            .seal(Place::Context(id.as_str()), &context)
            .map_err(|error| DbError::Unavailable(format!("the context cannot be sealed: {error}")))?;
        Ok(Prepared {
            id,
            sealed,
            // An address is two strings and a word; encoding cannot fail, and a call that could not be
            // answered is still better carried out than lost.
            reply: incoming
                .reply
                .as_ref()
                .and_then(|reply| rmp_serde::to_vec_named(&Caller::new(reply, incoming.monitor)).ok()),
            incoming,
        })
    }

    async fn transaction(&self, wave: Vec<Arc<Prepared>>) -> Result<Vec<Accepted>, JournalError> {
        let (me, notify) = (self.me.clone(), self.notices.is_on());
        let (drivers, turns) = (Arc::clone(&self.drivers), Arc::clone(&self.turns));
        let decided = self
            .db
            .brief_transaction(move |conn| {
                accept_wave(conn, &wave, drivers.as_ref(), &turns, me.as_str(), notify)
            })
            .await?;
        let (accepted, notices): (Vec<Accepted>, Vec<Option<NoticeDetails>>) = decided.into_iter().unzip();
        for details in notices.into_iter().flatten() {
            self.notices.send(Notice::Complete(Box::new(details)));
        }
        Ok(accepted)
    }
}

/// Accepts a wave in one transaction.
fn accept_wave(
    conn: &mut AnyConnection,
    wave: &[Arc<Prepared>],
    drivers: &dyn DriverSource,
    turns: &Turns,
    me: &str,
    notify: bool,
) -> Result<Vec<(Accepted, Option<NoticeDetails>)>, JournalError> {
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
    let snapshot = Snapshot::read(conn, &fresh, notify)?;
    let now = db::now_ms(conn)?;
    let present_turn = read::present_turn(conn)?;

    let mut accepted = Vec::with_capacity(wave.len());
    let mut rows = Vec::with_capacity(fresh.len());
    let mut writes = Vec::with_capacity(fresh.len());
    for one in wave {
        if let Some(before) = is_known(one) {
            if before.answered && one.reply.is_some() {
                write::answer_again(conn, &before.operation)?;
            }
            let known = Accepted::Known {
                operation: before.operation.into(),
                answered: before.answered && one.reply.is_some(),
            };
            accepted.push((known, None));
            continue;
        }
        let mut plan = decide::plan(&snapshot, &one.incoming, drivers);
        if matches!(plan.verdict, Verdict::Done(_)) && one.reply.is_none() {
            accepted.push((Accepted::Done, None));
            writes.push((one, plan.writes));
            continue;
        }
        let turn = match &plan.verdict {
            Verdict::Queue(work) => turns.next(flow(one, work), present_turn),
            Verdict::Done(_) | Verdict::Refuse(_) | Verdict::Merge(_) => NO_TURN,
        };
        let row = new_operation(one, &plan, now, turn);
        let recorded = Accepted::Recorded {
            operation: one.id.clone(),
            state: row.state.parse().unwrap_or(State::Queued),
            answered: row.reply_pending,
        };
        let notice = if notify {
            decide::notice(&snapshot, &one.incoming, &plan)
        } else {
            None
        };
        accepted.push((recorded, notice));
        rows.push(row);
        writes.push((one, std::mem::take(&mut plan.writes)));
    }
    write::record(conn, &rows, me)?;
    apply(conn, writes, me)?;
    end_reservations(conn, fresh)?;
    Ok(accepted)
}

fn flow(one: &Prepared, work: &Work) -> Flow {
    Flow {
        project: one.incoming.context.project_id().map(str::to_owned),
        is_delete: work.kind() == OperationKind::ClusterDelete,
    }
}
