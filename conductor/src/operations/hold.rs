//! Holding a cluster for one call of its driver's own API that changes something.
//!
//! The journal's unique running key is what keeps two owners off a cluster, of whatever release they are; so such a call
//! has an entry there, made and claimed in one transaction. What waits for the cluster goes on when the entry ends.
//!
//! Guarantees: nothing else is open at the cluster when the hold begins, and nothing of ours works on it until it ends;
//! a message is held for once, however often it is delivered. Not guaranteed: the reply. The entry has neither arguments
//! nor context nor answer, and is never repeated: one that its conductor has left behind is ended, with a reason, by the
//! conductor that claims it (by an older one as an operation that it cannot read).

use std::sync::Arc;
use std::time::Duration;

use magnum_common::context::RequestContext;
use magnum_common::ids::{ClusterUuid, ConductorId, MessageId, OperationId};
use magnum_common::retry::{Retry, RetryPolicy};
use magnum_db::{self as db, AnyConnection, Database, DbError};
use magnum_driver_api::Reason;
use magnum_drivers::api_exchange::METHOD;
use magnum_telemetry::field;
use magnum_telemetry::trace::{self, TraceContext};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::journal::{self, EventKind, JournalError, NewOperation, candidates, fenced, read, write};
use super::keeper::{KeptLease, LeaseKeeper};
use super::lease::{self, Lease};
use super::services::Signals;
use super::state::State;
use crate::workflows::format;

/// The kind of such an entry: the method's name. No workflow has it.
pub const KIND: &str = METHOD;

/// Its one step.
pub const STEP: &str = "call_driver_api";

/// The reason of an entry that its conductor has left behind.
pub const ABANDONED: &str = "The conductor ended, or lost the cluster, while it called the driver's own API. Whether the \
                             call had an effect is not known; it is not repeated.";

/// What a cluster is wanted for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The request, to be known again.
    pub message: MessageId,
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// Who asks.
    pub context: RequestContext,
    /// What for, for the journal's readers: driver, method and path.
    pub what: String,
}

/// Why a cluster is not held.
#[derive(Debug, thiserror::Error)]
pub enum NotHeld {
    /// Something else is open at the cluster.
    #[error("another operation is open at the cluster")]
    Busy,
    /// The message was held for before.
    #[error("the message is known")]
    Known,
    /// The journal.
    #[error(transparent)]
    Journal(JournalError),
}

impl From<JournalError> for NotHeld {
    fn from(error: JournalError) -> Self {
        // Somebody claimed in this very moment.
        if lease::is_collision(&error) {
            return Self::Busy;
        }
        Self::Journal(error)
    }
}

impl From<DbError> for NotHeld {
    fn from(error: DbError) -> Self {
        JournalError::from(error).into()
    }
}

/// Takes clusters.
#[derive(Clone)]
pub struct Holder {
    /// The journal's database.
    pub db: Database,
    /// Renews the lease. It knows whose it is and its term.
    pub keeper: LeaseKeeper,
    /// Told when a cluster is free again.
    pub signals: Arc<Signals>,
}

/// A cluster that is held. Dropped without [`Held::end`], it is free when the lease is over.
#[derive(Debug)]
pub struct Held {
    db: Database,
    lease: Arc<Lease>,
    kept: KeptLease,
    signals: Arc<Signals>,
}

impl Holder {
    /// Takes the cluster, and reads what the call needs in the same transaction.
    ///
    /// # Errors
    /// Something else has it or waits for it, the message is known, or the database fails.
    pub async fn take<T, F>(&self, wanted: Wanted, look: F) -> Result<(Held, T), NotHeld>
    where
        T: Send + 'static,
        F: Fn(&mut AnyConnection) -> Result<T, DbError> + Send + 'static,
    {
        let (me, term) = (self.keeper.me().clone(), self.keeper.term());
        let trace = trace::current();
        let sent = Instant::now();
        let (lease, seen) = self
            .db
            .transaction(move |conn| {
                let lease = take(conn, &wanted, trace.as_ref(), &me, term, sent)?;
                Ok::<_, NotHeld>((lease, look(conn)?))
            })
            .await?;
        let lease = Arc::new(lease);
        let held = Held {
            db: self.db.clone(),
            kept: self.keeper.keep(Arc::clone(&lease)),
            lease,
            signals: Arc::clone(&self.signals),
        };
        Ok((held, seen))
    }
}

fn take(
    conn: &mut AnyConnection,
    wanted: &Wanted,
    trace: Option<&TraceContext>,
    me: &ConductorId,
    term: Duration,
    sent: Instant,
) -> Result<Lease, NotHeld> {
    if !read::known(conn, &[wanted.message.as_str()])?.is_empty() {
        return Err(NotHeld::Known);
    }
    let row = entry(wanted, trace, db::now_ms(conn)?);
    let uuid = row.uuid.clone();
    write::record(conn, &[row], me.as_str())?;
    let candidate = candidates::candidate(conn, &uuid)?;
    let claimed = lease::claim(conn, &candidate, me, term, sent)?;
    let (lease, _) = claimed.ok_or(JournalError::Stale)?;
    // Only now: what was accepted before this claim is seen, and what comes later waits for its end.
    let open = read::open(conn, &[wanted.cluster.as_str()])?;
    if open.iter().any(|other| other.uuid != uuid) {
        return Err(NotHeld::Busy);
    }
    let mut intent = lease.event(EventKind::Intent);
    intent.step = Some(STEP);
    intent.detail = Some(&wanted.what);
    journal::append(conn, &intent)?;
    Ok(lease)
}

/// Without a driver: whoever finds it left behind can end it.
fn entry(wanted: &Wanted, trace: Option<&TraceContext>, now: i64) -> NewOperation {
    let context = &wanted.context;
    NewOperation {
        uuid: OperationId::random().to_string(),
        message_id: Some(wanted.message.to_string()),
        kind: KIND.to_owned(),
        cluster_uuid: wanted.cluster.to_string(),
        project_id: context.project_id().map(|text| clipped(text, 255)),
        user_id: context.user_id().map(|text| clipped(text, 255)),
        request_id: context.request_id().map(|text| clipped(text, 64)),
        traceparent: trace.map(TraceContext::parent),
        tracestate: trace.and_then(TraceContext::state).map(str::to_owned),
        state: State::Queued.as_str().to_owned(),
        step: Some(STEP.to_owned()),
        stop_requested: false,
        args: Vec::new(),
        context: None,
        driver: None,
        driver_version: None,
        reply: None,
        answer: None,
        reply_pending: false,
        attempts: 0,
        failures: 0,
        lease_epoch: 0,
        turn: 0,
        reason: None,
        created_ms: now,
        updated_ms: now,
        ended_ms: None,
        format: format::FIRST,
    }
}

fn clipped(text: &str, characters: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(characters).collect()
}

impl Held {
    /// The entry in the journal.
    pub fn operation(&self) -> &OperationId {
        self.lease.operation()
    }

    /// Cancelled when the cluster may get another owner soon: everything has to stop.
    pub fn over(&self) -> &CancellationToken {
        self.kept.over()
    }

    /// Gives the cluster back, with how the call ended. While the database is away this is tried again for as long as
    /// the lease holds; what is not written then is written by whoever claims the entry.
    pub async fn end(self, state: State, reason: &Reason) {
        let policy = RetryPolicy {
            initial: Duration::from_millis(50),
            max_interval: Duration::from_secs(2),
            multiplier: 2.0,
            jitter: 0.25,
        };
        let attempt = || {
            let (lease, reason) = (Arc::clone(&self.lease), reason.clone());
            self.db.transaction(move |conn| {
                lease::fence(conn, &lease)?;
                fenced::end(conn, &lease, state, Some(&reason), None)
            })
        };
        let is_retryable = |error: &JournalError, _: Retry| error.is_transient();
        let over = self.kept.over().cancelled();
        if let Err(error) = policy.retry_until(over, attempt, is_retryable).await {
            let operation = self.lease.operation();
            tracing::warn!({ field::OPERATION } = %operation, %error, "the end of a driver call is not written");
        }
        self.signals.work.notify_one();
    }
}
