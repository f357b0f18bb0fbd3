//! The objects RPC: methods of Magnum's versioned objects, carried out for processes that have no database of their
//! own (Magnum's API started as `magnum-api`, Python driver plug-ins).
//!
//! | module | topic |
//! |---|---|
//! | [`call`] | the five methods on the wire and their arguments |
//! | [`methods`], `class` | which class has which method; the tables are in the files of the classes |
//! | [`arguments`] | positions and names, as Python binds them |
//! | `clusters`, `templates`, `node_groups`, `key_pairs`, `quotas`, `federations`, `services`, `stats` | the classes |
//! | `instance` | create, save, refresh, destroy, alike for most classes |
//! | `identity`, `fields` | the kind of identifier; the fields by which an object is found |
//! | `lookup`, `listing` | one row, lists of rows |
//! | `cluster_objects` | the rows of one cluster, for a driver's call |
//! | `scope` | which of all that is answered over RPC: `[conductor] objects_rpc` |
//!
//! Guarantees: a method that changes something is carried out once for each message, however often the message is
//! delivered: its reply is stored in the transaction of the change, a refusal likewise, and sent again for a redelivery.
//! During an outage of the database callers wait for up to [`PATIENCE`] and then get a fault. The tenant scope is that
//! of the caller's context, as in Magnum. Private keys are neither logged nor stored with a reply.
//!
//! Not guaranteed: that a call with the fault of an outage has changed nothing, since the connection may have been lost
//! during the commit. A call without a message id is not retried, and carried out as often as it is delivered.
//!
//! Where we differ from Magnum: only the methods of the tables can be called, where Python's `getattr` finds
//! anything; three methods work that Magnum broke (see `docs/differences.md`).

pub mod arguments;
pub mod call;
pub mod class;
pub mod cluster_objects;
mod clusters;
mod failure;
mod federations;
mod fields;
mod identity;
mod instance;
mod key_pairs;
mod listing;
mod lookup;
pub mod methods;
mod node_groups;
mod quotas;
mod scope;
mod services;
mod stats;
mod templates;
mod unsealing;

use std::sync::Arc;
use std::time::Duration;

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::MessageId;
use magnum_common::retry::{Retry, RetryPolicy};
use magnum_config::ObjectsRpcScope;
use magnum_db::{AnyConnection, Database};
use magnum_rpc::RemoteFailure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;

use self::call::Call;
pub use self::call::Method;
use self::failure::Failure;
use self::scope::Scope;
use crate::certificates::manager::Sealing;
use crate::store::object_answers;

/// How long callers wait during an outage of the database. A Python caller gives up after
/// `rpc_response_timeout`, 60 s by default; the answer should come before.
pub const PATIENCE: Duration = Duration::from_secs(25);

/// The longest message id that the record of answers holds; oslo's have 32 characters.
const LONGEST_ID: usize = 64;

/// Carries out methods of objects. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ObjectsRpc {
    db: Database,
    /// Opens sealed private keys; without it they are given out as they are.
    sealing: Option<Sealing>,
    scope: Scope,
    patience: Duration,
}

/// A stored reply.
#[derive(Serialize, Deserialize)]
enum Kept {
    /// The result.
    Result(Value),
    /// The exception, as serialised in a reply.
    Failure(String),
}

impl ObjectsRpc {
    /// On this database.
    pub fn new(db: Database) -> Self {
        Self {
            db,
            sealing: None,
            scope: Scope::default(),
            patience: PATIENCE,
        }
    }

    /// Opens sealed private keys for callers, and seals those that they write.
    #[must_use]
    pub(crate) fn with_sealing(self, sealing: Sealing) -> Self {
        Self {
            sealing: Some(sealing),
            ..self
        }
    }

    /// Answers only what `[conductor] objects_rpc` allows; all, without it.
    #[must_use]
    pub fn with_scope(self, scope: ObjectsRpcScope) -> Self {
        Self {
            scope: Scope::new(scope),
            ..self
        }
    }

    /// Limits the wait of callers during an outage of the database.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The reply to a call, or the exception that its caller gets.
    ///
    /// # Errors
    /// Magnum's exceptions, Python's for wrong arguments, and `MagnumException` during an outage of the database.
    pub async fn answer(
        &self,
        method: Method,
        args: Map<String, Value>,
        context: RequestContext,
        message: Option<MessageId>,
    ) -> Result<Value, Fault> {
        self.scope.check_method(method)?;
        let call = match Call::decode(method, args)? {
            Call::Answered(value) => return Ok(value),
            call => Arc::new(call.with_sealing(self.sealing.as_ref())),
        };
        self.scope.check(&call)?;
        let message = message.filter(|message| message.as_str().len() <= LONGEST_ID);
        // A change that may have been committed is retried only if its stored reply would be found.
        let may_repeat = !call.changes() || message.is_some();
        let policy = RetryPolicy {
            initial: Duration::from_millis(50),
            max_interval: Duration::from_secs(2),
            multiplier: 2.0,
            jitter: 0.25,
        };
        let since = Instant::now();
        let attempt = || self.attempt(&call, &context, message.as_ref());
        let is_retryable = |failure: &Failure, _: Retry| {
            let retryable = may_repeat && failure.is_transient() && since.elapsed() < self.patience;
            if retryable {
                tracing::debug!(error = %failure, method = call.name(), "an object's method is tried again");
            }
            retryable
        };
        match policy.retry_while(attempt, is_retryable).await {
            Ok(answer) => self.opened(&call, answer?),
            Err(failure) => Err(failure.into()),
        }
    }

    fn opened(&self, call: &Call, mut answer: Value) -> Result<Value, Fault> {
        if let Some(sealing) = &self.sealing {
            unsealing::open(&mut answer, call, sealing)?;
        }
        Ok(answer)
    }

    /// One attempt. The inner result is the reply; the outer error may be retried.
    async fn attempt(
        &self,
        call: &Arc<Call>,
        context: &RequestContext,
        message: Option<&MessageId>,
    ) -> Result<Result<Value, Fault>, Failure> {
        let (call, context) = (Arc::clone(call), context.clone());
        if !call.changes() {
            let answered = self.db.run(move |conn| Ok(call.run(conn, &context))).await?;
            return answered.map(Ok);
        }
        let message = message.cloned();
        self.db
            .transaction(move |conn| run_once(conn, &call, &context, message.as_ref()))
            .await
    }
}

/// Carries out a call and stores its reply, or finds the stored one. In a transaction.
fn run_once(
    conn: &mut AnyConnection,
    call: &Call,
    context: &RequestContext,
    message: Option<&MessageId>,
) -> Result<Result<Value, Fault>, Failure> {
    if let Some(message) = message
        && let Some(kept) = object_answers::find(conn, message)?
    {
        tracing::info!(method = call.name(), "a message is answered again, as before");
        return Ok(read(&kept));
    }
    let answer = match call.run(conn, context) {
        Ok(value) => Ok(value),
        Err(Failure::Refused(fault)) => Err(fault),
        Err(other) => return Err(other),
    };
    if let Some(message) = message {
        let kept = match &answer {
            Ok(value) => Kept::Result(call.storable(value)),
            Err(fault) => Kept::Failure(RemoteFailure::from(fault).to_json()),
        };
        // Values and strings always serialise.
        let kept = serde_json::to_vec(&kept).unwrap_or_default();
        if !object_answers::record(conn, message, &kept)? {
            return Err(Failure::Retry);
        }
    }
    Ok(answer)
}

/// An answer that was kept.
fn read(kept: &[u8]) -> Result<Value, Fault> {
    match serde_json::from_slice(kept) {
        Ok(Kept::Result(value)) => Ok(value),
        Ok(Kept::Failure(text)) => Err(RemoteFailure::from_json(&text)
            .ok()
            .and_then(|failure| failure.to_fault())
            .unwrap_or_else(unreadable)),
        Err(_) => Err(unreadable()),
    }
}

fn unreadable() -> Fault {
    Fault::new(
        Exception::MagnumException,
        "The request was carried out before, and its answer cannot be read any more.",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kept_answer_is_given_again_as_it_was() {
        let kept = serde_json::to_vec(&Kept::Result(json!([{"id": 1}, null]))).unwrap();
        assert_eq!(read(&kept), Ok(json!([{"id": 1}, null])));
        let fault = failure::fault(
            Exception::ClusterTemplateReferenced,
            "ClusterTemplate t is referenced by one or multiple clusters.".into(),
            &[("clustertemplate", "t")],
        );
        let kept = Kept::Failure(RemoteFailure::from(&fault).to_json());
        let again = read(&serde_json::to_vec(&kept).unwrap()).unwrap_err();
        assert_eq!(
            (again.exception, &again.message),
            (fault.exception, &fault.message)
        );
        assert_eq!(read(b"?").unwrap_err().exception, Exception::MagnumException);
    }
}
