//! `cluster_driver_call`: a call of a driver's own API, for a user of `magnum-api`. Ours; Magnum has nothing like it.
//!
//! Nothing in the message is trusted but the caller's context and the policy rule that was checked: the cluster is read
//! in the caller's tenant scope, and the operator's option, the route, its method and its rule are checked against this
//! conductor's own.
//!
//! | the route | the call |
//! |---|---|
//! | only reads | runs beside operations of the cluster |
//! | may change something | runs alone on the cluster ([`crate::operations::hold`]); a cluster with an open operation is a conflict |
//!
//! One path is no user's ([`NODES`]): `magnum-api` asks for the names of nodes before it hands on a resize that names some.
//! It needs neither option nor route, only the driver's capability, and reads.
//!
//! Guarantees: a call that may change something is made at most once, however often its message is delivered; it ends
//! within the time that its sender and `[drivers] custom_api_timeout` allow, a few seconds for stopping the driver
//! excepted, and what the driver has started in this process is gone then. Not guaranteed: that a reply arrives.

mod question;
mod refusal;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::{ClusterUuid, MessageId};
use magnum_common::model::{Cluster, ClusterTemplate, NodeGroup};
use magnum_common::panic;
use magnum_config::Settings;
use magnum_db::read::{Tenancy, clusters};
use magnum_db::{AnyConnection, DbError};
use magnum_driver_api::{ApiCall, ApiReply, Driver, DriverError, Reason, limits};
use magnum_drivers::api_exchange::NODES;
use magnum_drivers::{ApiAnswer, ApiMethod, ApiQuestion, ApiRefusal, FoundRoute};
use magnum_telemetry::field;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use self::refusal::{
    Refusal, interrupted, may_change, no_database, no_route, not_found, not_held, timed_out,
};
use crate::metric_definitions as metric;
use crate::operations::hold::{Held, Holder, Wanted};
use crate::operations::{OperationServices, State};
use crate::store;
use crate::workflows::choose_driver::{self, Wanted as DriverWanted};
use crate::workflows::{DriverRef, DriverSource};

/// Most calls at once in this process. Further ones are refused: they would keep other messages waiting.
const MAX_CALLS: usize = 32;

/// How long a cancelled driver may take to stop before its future is dropped.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Longest message id that the journal holds.
const MESSAGE_ID: usize = 64;

/// Makes calls of drivers' own APIs. Clones share their limits.
#[derive(Clone)]
pub struct DriverCalls(Arc<Inner>);

struct Inner {
    holder: Holder,
    drivers: Arc<dyn DriverSource>,
    /// `[drivers] custom_api`
    allowed: Vec<String>,
    /// `[drivers] custom_api_timeout`
    limit: Duration,
    permits: Semaphore,
    /// Cancelled when the process stops; running calls then have `stop_within` to end.
    stop: CancellationToken,
    /// `[conductor] shutdown_timeout`
    stop_within: Duration,
}

/// The rows that a call is made with.
struct CallRows {
    cluster: Cluster,
    node_groups: Vec<NodeGroup>,
    template: Option<ClusterTemplate>,
    pinned: Option<DriverRef>,
}

impl DriverCalls {
    /// Makes calls of the drivers of `services` that the settings allow. After `stop`, calls that run have `[conductor]
    /// shutdown_timeout` to end.
    pub fn new(settings: &Settings, services: &OperationServices, stop: CancellationToken) -> Self {
        Self(Arc::new(Inner {
            holder: Holder {
                db: services.db.clone(),
                keeper: services.keeper.clone(),
                signals: Arc::clone(&services.signals),
            },
            drivers: Arc::clone(&services.drivers),
            allowed: settings.drivers.custom_api.clone(),
            limit: settings.drivers.custom_api_timeout,
            permits: Semaphore::new(MAX_CALLS),
            stop,
            stop_within: services.timing.shutdown,
        }))
    }

    /// The reply to a message.
    ///
    /// # Errors
    /// The arguments are wrong.
    pub async fn answer(
        &self,
        args: Map<String, Value>,
        context: &RequestContext,
        message: Option<MessageId>,
    ) -> Result<Value, Fault> {
        let question = question::read(args)?;
        let answer = match self.call(&question, context, message).await {
            Ok(reply) => ApiAnswer::Replied {
                status: reply.status.code(),
                body: reply.body,
            },
            Err((because, reason)) => ApiAnswer::Refused {
                because,
                reason: reason.told().to_owned(),
            },
        };
        serde_json::to_value(answer)
            .map_err(|error| Fault::new(Exception::MagnumException, error.to_string()))
    }

    async fn call(
        &self,
        question: &ApiQuestion,
        context: &RequestContext,
        message: Option<MessageId>,
    ) -> Result<ApiReply, Refusal> {
        let received = Instant::now();
        let uuid = ClusterUuid::from(question.uuid.as_str());
        let lookup = find_rows(Tenancy::of(context), uuid.clone());
        let found = self
            .0
            .holder
            .db
            .run(lookup)
            .await
            .map_err(|error| no_database(&error))?;
        let found = found.ok_or_else(|| not_found(&uuid))?;
        let driver = self.driver_of(&found, question)?;
        let read_only = only_reads(driver.as_ref(), question)?;
        let name = driver.info().name.clone();
        let outcome = match self.0.permits.try_acquire() {
            Err(_) => Err((
                ApiRefusal::Unavailable,
                Reason::open(format!(
                    "The conductor makes {MAX_CALLS} calls of drivers' own APIs already. Please try again."
                )),
            )),
            Ok(_permit) if read_only => self.reply(driver.as_ref(), question, context, &found, None).await,
            Ok(_permit) => {
                self.change(driver.as_ref(), question, context, &uuid, message)
                    .await
            }
        };
        log_call(&name, &uuid, question, &outcome, received.elapsed());
        outcome
    }

    /// The driver that built the cluster, if users may call it here, or it is not a user who calls.
    fn driver_of(&self, found: &CallRows, question: &ApiQuestion) -> Result<Arc<dyn Driver>, Refusal> {
        let uuid = &found.cluster.cluster_template_id;
        let template = found.template.as_ref().ok_or_else(|| {
            let fault = Fault::cluster_template_not_found(uuid.as_str());
            (ApiRefusal::NotFound, Reason::open(fault.message))
        })?;
        let drivers = self.0.drivers.as_ref();
        let pinned = found.pinned.as_ref();
        let chosen = choose_driver::choose(drivers, template, DriverWanted::Existing, pinned, None);
        let named = chosen.as_ref().map_or_else(
            |_| template.driver.clone().unwrap_or_default(),
            |chosen| chosen.name.clone(),
        );
        if question.path != NODES && !self.0.allowed.contains(&named) {
            return Err(no_route(&found.cluster.uuid));
        }
        let loaded = chosen.ok().and_then(|chosen| drivers.get(&chosen));
        loaded.ok_or_else(|| {
            let reason = format!(
                "The conductor that took the request has no version of the driver {named} that can work on the \
                 cluster; try again, another one may have it."
            );
            (ApiRefusal::Unavailable, Reason::open(reason))
        })
    }

    /// A call that may change something: with the cluster to itself.
    async fn change(
        &self,
        driver: &dyn Driver,
        question: &ApiQuestion,
        context: &RequestContext,
        uuid: &ClusterUuid,
        message: Option<MessageId>,
    ) -> Result<ApiReply, Refusal> {
        let is_id = |id: &MessageId| id.as_str().len() <= MESSAGE_ID && !id.as_str().contains('\0');
        let message = message.filter(is_id).ok_or_else(|| {
            let reason = "The message has no id by which a repetition could be recognised.";
            (ApiRefusal::Failed, reason.into())
        })?;
        let wanted = Wanted {
            message,
            cluster: uuid.clone(),
            context: context.clone(),
            what: format!("driver {}: {} {}", driver.info(), question.method, question.path),
        };
        // Read again, now that nothing else works on the cluster.
        let lookup = find_rows(Tenancy::of(context), uuid.clone());
        let (held, found) = self.0.holder.take(wanted, lookup).await.map_err(not_held)?;
        let outcome = match found {
            None => Err(not_found(uuid)),
            Some(found) => match may_change(found.cluster.status) {
                Err(reason) => Err((ApiRefusal::Conflict, reason)),
                Ok(()) => self.reply(driver, question, context, &found, Some(&held)).await,
            },
        };
        let (state, reason) = end_of(&outcome);
        held.end(state, &reason).await;
        outcome
    }

    /// Asks the driver, and stops it when its time is over, when the cluster is lost, or when the process stops.
    async fn reply(
        &self,
        driver: &dyn Driver,
        question: &ApiQuestion,
        context: &RequestContext,
        found: &CallRows,
        held: Option<&Held>,
    ) -> Result<ApiReply, Refusal> {
        let Some(template) = &found.template else {
            return Err(not_found(&found.cluster.uuid));
        };
        let limit = Duration::from_millis(question.timeout_ms).min(self.0.limit);
        let cancel = CancellationToken::new();
        let call = ApiCall {
            path: &question.path,
            method: question.method,
            query: &question.query,
            body: question.body.as_object(),
            cluster: &found.cluster,
            node_groups: &found.node_groups,
            template,
            context,
            operation: held.map(Held::operation),
            time_left: limit,
            cancel: cancel.clone(),
        };
        let span = tracing::info_span!("driver call", { field::DRIVER } = driver.info().name);
        let mut working = AssertUnwindSafe(driver.api(&call))
            .catch_unwind()
            .instrument(span)
            .boxed();
        let lost = async {
            match held {
                Some(held) => held.over().cancelled().await,
                None => std::future::pending().await,
            }
        };
        let refusal = tokio::select! {
            outcome = &mut working => return reply_of(driver, outcome),
            () = sleep(limit) => timed_out(question, limit),
            () = lost => interrupted("the conductor lost the cluster"),
            () = self.stopped() => interrupted("the conductor stops"),
        };
        // Cancelled, given `STOP_GRACE`, then dropped: both end the driver's work.
        cancel.cancel();
        let finished = timeout(STOP_GRACE, &mut working).await;
        drop(working);
        match finished {
            // It finished at the same moment: its result counts.
            Ok(outcome @ Ok(Ok(_))) => reply_of(driver, outcome),
            _ => Err(refusal),
        }
    }

    async fn stopped(&self) {
        self.0.stop.cancelled().await;
        sleep(self.0.stop_within).await;
    }
}

/// Whether the driver has what is asked for, and that only reads.
fn only_reads(driver: &dyn Driver, question: &ApiQuestion) -> Result<bool, Refusal> {
    if question.path == NODES && question.method == ApiMethod::Get {
        return match driver.info().capabilities.node_names {
            true => Ok(true),
            false => Err((
                ApiRefusal::NotSupported,
                Reason::open(format!("driver {} does not name its nodes", driver.info())),
            )),
        };
    }
    match driver.info().api.find(&question.path, question.method) {
        FoundRoute::Route(route) if route.policy == question.policy => Ok(route.read_only),
        FoundRoute::Route(_) => Err((
            ApiRefusal::Unavailable,
            "The rules of the driver's own API have changed a moment ago. Nothing was done; please try again."
                .into(),
        )),
        FoundRoute::OtherMethods(_) | FoundRoute::None => {
            let reason = format!(
                "The cluster's driver has no {} {} in its own API, as the conductor that took the request knows it.",
                question.method, question.path
            );
            Err((ApiRefusal::NotFound, Reason::open(reason)))
        }
    }
}

/// Reads the cluster with its node groups, template and driver, in the caller's tenant scope.
fn find_rows(
    tenancy: Tenancy,
    uuid: ClusterUuid,
) -> impl Fn(&mut AnyConnection) -> Result<Option<CallRows>, DbError> + Send + 'static {
    move |conn| {
        let Some(cluster) = clusters::find_by_uuid(conn, &tenancy, &uuid)? else {
            return Ok(None);
        };
        Ok(Some(CallRows {
            node_groups: store::node_groups::of(conn, &uuid)?,
            template: store::clusters::template(conn, &cluster.cluster_template_id)?,
            pinned: store::cluster_driver::find(conn, &uuid)?,
            cluster,
        }))
    }
}

fn reply_of(
    driver: &dyn Driver,
    outcome: std::thread::Result<Result<ApiReply, DriverError>>,
) -> Result<ApiReply, Refusal> {
    match outcome.map(|result| limits::accept_api(driver.info(), result)) {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(error)) => {
            let because = match &error {
                DriverError::Transient(_) | DriverError::NotHere(_) | DriverError::Cancelled => {
                    ApiRefusal::Unavailable
                }
                DriverError::Permanent(_) => ApiRefusal::Failed,
                DriverError::NotSupported(_) => ApiRefusal::NotSupported,
            };
            Err((because, error.reason()))
        }
        Err(panic) => {
            tracing::error!(panic = panic::message(panic.as_ref()), "the driver panicked");
            Err((ApiRefusal::Failed, "The driver panicked.".into()))
        }
    }
}

/// The final state and reason in the journal, without the bodies of request and reply.
fn end_of(outcome: &Result<ApiReply, Refusal>) -> (State, Reason) {
    match outcome {
        Ok(reply) => (
            State::Succeeded,
            Reason::open(format!("The driver replied {}.", reply.status.code())),
        ),
        Err((ApiRefusal::Conflict, reason)) => (State::Cancelled, reason.clone()),
        Err((_, reason)) => (State::Failed, reason.clone()),
    }
}

/// Logs and counts a call for which a driver and a route were found. Neither query nor bodies are logged: they are
/// private to the user.
fn log_call(
    driver: &str,
    cluster: &ClusterUuid,
    question: &ApiQuestion,
    outcome: &Result<ApiReply, Refusal>,
    took: Duration,
) {
    let (word, status, reason) = match outcome {
        Ok(reply) => ("replied", Some(reply.status.code()), None),
        Err((because, reason)) => (because.as_str(), None, Some(reason.whole())),
    };
    let labels = [("driver", driver.to_owned()), ("outcome", word.to_owned())];
    metrics::counter!(metric::DRIVER_API_CALLS, &labels).increment(1);
    metrics::histogram!(metric::DRIVER_API_SECONDS, "driver" => driver.to_owned()).record(took.as_secs_f64());
    tracing::info!(
        { field::DRIVER } = driver, { field::CLUSTER } = %cluster, { field::HTTP_METHOD } = %question.method,
        path = question.path, outcome = word, status, reason,
        "a driver's own API was called"
    );
}

#[cfg(test)]
mod tests {
    use magnum_driver_api::ApiStatus;
    use serde_json::json;

    use super::*;

    #[test]
    fn journal_records_the_end_of_a_call_and_nothing_of_its_reply() {
        let reply = ApiReply {
            status: ApiStatus::Ok,
            body: json!({"kubeconfig": "secret"}),
        };
        assert_eq!(
            end_of(&Ok(reply)),
            (State::Succeeded, "The driver replied 200.".into())
        );
        let refused = |because| end_of(&Err((because, "why".into()))).0;
        assert_eq!(refused(ApiRefusal::Conflict), State::Cancelled);
        assert_eq!(refused(ApiRefusal::TimedOut), State::Failed);
    }
}
