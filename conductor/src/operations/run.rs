//! Walks one claimed operation through its steps.
//!
//! ```text
//! border: shutdown? ─▶ release
//! intent (fenced): stop requested? ─▶ cancelled    out of time? ─▶ failed    cluster gone? ─▶ ended
//! effect: choose a driver, or ask it for something; ends early when the lease is over, the time is up, the process stops, or
//!         a delete or an operator wants the operation to stop
//! result (fenced): next step, or the end
//! ```
//!
//! A write that fails because the database is away is repeated while the lease holds. After that nothing is
//! written: whoever claims next repeats the step.

mod effect;
mod not_here;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use magnum_common::error::{ErrorClass, Exception, Fault};
use magnum_common::retry::{Retry, RetryPolicy};
use magnum_db::{AnyConnection, DbError};
use magnum_driver_api::{DriverReport, Reason};
use magnum_telemetry::field;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::field::Empty;
use tracing::{Instrument as _, Span};

use super::crash_point::{self, CrashPoint};
use super::finish;
use super::hold;
use super::journal::fenced::TryAgain;
use super::journal::{JournalError, Operation, OperationRow, UNKNOWN_PATIENCE, Unreadable, fenced};
use super::keeper::KeptLease;
use super::lease::{self, Lease};
use super::lost_claim;
use super::material::{self, Begin, Material};
use super::notice::{ClusterSnapshot, Notice};
use super::retry::{self, Decision, Failure, FailureClass, History};
use super::services::OperationServices;
use super::state::State;
use super::{unanswered, unread};
use crate::metric_definitions as metric;
use crate::workflows::CertificateRefs;
use crate::workflows::{DriverRef, OperationKind, Step, choose_nodes};
use effect::Effect;

/// The two ways in which the process asks its operations to stop.
#[derive(Debug, Clone, Default)]
pub struct Stops {
    /// At the next step boundary.
    pub at_step_boundary: CancellationToken,
    /// At once.
    pub now: CancellationToken,
}

/// Runs a claimed operation until it ends, waits for something, or is no longer ours.
pub async fn operation(services: OperationServices, stops: Stops, lease: Lease, row: OperationRow) {
    let operation = row.span();
    let attempt = tracing::info_span!(parent: &operation, "attempt", { field::ATTEMPT } = lease.attempt());
    attempted(services, stops, lease, row).instrument(attempt).await;
}

async fn attempted(services: OperationServices, stops: Stops, lease: Lease, row: OperationRow) {
    let _at_work = services.at_work.begin(&lease, &row);
    let lease = Arc::new(lease);
    let is_call = row.reply.is_some();
    let is_hold = row.kind == hold::KIND;
    let step = row.step.clone();
    let snapshot = Arc::new(Mutex::new(None));
    let kept = Arc::new(services.keeper.keep(Arc::clone(&lease)));
    let outcome = match Operation::try_from(row) {
        Ok(operation) => {
            if let Some(caller) = &operation.reply
                && let Some(timeout) = caller.monitor()
            {
                services.monitors.watch(&operation.id, &caller.address(), timeout);
            }
            let run = Run {
                operation: Arc::new(operation),
                lease: Arc::clone(&lease),
                kept: Arc::clone(&kept),
                services: services.clone(),
                stops,
                snapshot: Arc::clone(&snapshot),
            };
            run.walk().await
        }
        Err(_) if is_hold => end_hold(&services, &lease).await,
        Err(unreadable) => unread::leave(&services, &lease, step, &unreadable).await,
    };
    let was_slow = kept.was_slow();
    drop(kept);
    let outcome = match outcome {
        Err(JournalError::LeaseLost) => unanswered::left_as(&services, &lease).await,
        other => other,
    };
    match outcome {
        Ok(state) => {
            tracing::info!({ field::OPERATION_STATE } = %state, "operation moved on");
            metrics::counter!(metric::OPERATIONS_SETTLED, "state" => state.as_str()).increment(1);
            if state == State::Observing {
                services.signals.observing.notify_one();
            } else {
                services.signals.work.notify_one();
            }
            if is_call {
                services.answers.send(lease.operation());
            }
            if !state.is_open() {
                services.notices.send(Notice::Ended {
                    operation: lease.operation().clone(),
                    snapshot: snapshot.lock().unwrap_or_else(PoisonError::into_inner).take(),
                });
            }
        }
        Err(JournalError::LeaseLost) => {
            tracing::warn!("the lease is lost; leaving the operation to whoever has it");
            if was_slow {
                tokio::spawn(lost_claim::take_back(services.db.clone(), lease).in_current_span());
            }
        }
        Err(error) => tracing::error!(
            %error,
            "the operation's outcome could not be written; the step will be repeated when the lease ends"
        ),
    }
}

/// A call of a driver's own API that its conductor has left behind is not repeated.
async fn end_hold(services: &OperationServices, lease: &Arc<Lease>) -> Result<State, JournalError> {
    let lease = Arc::clone(lease);
    services
        .db
        .transaction(move |conn| {
            lease::fence(conn, &lease)?;
            fenced::end(conn, &lease, State::Failed, Some(&hold::ABANDONED.into()), None)?;
            Ok(State::Failed)
        })
        .await
}

struct Run {
    services: OperationServices,
    stops: Stops,
    operation: Arc<Operation>,
    lease: Arc<Lease>,
    kept: Arc<KeptLease>,
    /// The cluster as it was when the last step began, for whoever is told of the end.
    snapshot: Arc<Mutex<Option<Box<ClusterSnapshot>>>>,
}

impl Run {
    async fn walk(mut self) -> Result<State, JournalError> {
        loop {
            let span = tracing::info_span!(
                "step",
                { field::STEP } = self.operation.step.as_str(),
                { field::SPAN_STATUS } = Empty
            );
            if let Some(state) = self.step().instrument(span).await? {
                return Ok(state);
            }
        }
    }

    /// The step that is next, from crash point to crash point. `None`: another one follows.
    async fn step(&mut self) -> Result<Option<State>, JournalError> {
        let step = self.operation.step;
        let kind = self.operation.kind.as_str();
        crash_point::reach(kind, step.as_str(), CrashPoint::BeforeIntent).await;
        if self.stops.at_step_boundary.is_cancelled() {
            return self.release().await.map(Some);
        }
        let material = match self.begin(step).await? {
            Begin::Ended(state) => return Ok(Some(state)),
            Begin::Fail(failure) => return self.failed(failure, 0).await.map(Some),
            Begin::Refuse(fault) => return self.refused(fault).await.map(Some),
            Begin::Go(material) => material,
        };
        if let Some(args) = &material.started {
            self.operation = Arc::new(Operation {
                args: args.clone(),
                ..Operation::clone(&self.operation)
            });
        }
        self.remember(&material);
        crash_point::reach(kind, step.as_str(), CrashPoint::AfterIntent).await;
        // The answer may have been late: a driver that is called now could meet that of whoever has taken over.
        if self.kept.is_over() {
            return Err(JournalError::LeaseLost);
        }
        let effect = self.effect(step, &material).await;
        crash_point::reach(kind, step.as_str(), CrashPoint::AfterEffect).await;
        let state = match effect {
            Effect::Chosen(driver) => self.chosen(step, driver).await?,
            Effect::Certified(refs) => self.certified(step, refs).await?,
            Effect::Named(nodes) => self.named(step, &nodes).await?,
            Effect::Returned(report) => Some(self.returned(*report, material.panics).await?),
            Effect::Failed(failure) => Some(self.failed(failure, material.panics).await?),
            Effect::Refused(fault) => Some(self.refused(fault).await?),
            Effect::NotHere(what) => Some(self.not_here(what).await?),
            Effect::Interrupted => Some(self.interrupted().await?),
        };
        crash_point::reach(kind, step.as_str(), CrashPoint::AfterResult).await;
        Ok(state)
    }

    fn remember(&self, material: &Material) {
        if self.services.notices.is_on() {
            let snapshot = ClusterSnapshot {
                cluster: material.cluster.clone(),
                node_groups: material.node_groups.clone(),
            };
            // Replaced as a whole, never half.
            *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(snapshot));
        }
    }

    /// A fenced transaction, repeated while the database is away and the lease holds.
    async fn write<T, F>(&self, work: F) -> Result<T, JournalError>
    where
        T: Send + 'static,
        F: Fn(&mut AnyConnection, &Lease, &Operation) -> Result<T, JournalError> + Send + Sync + 'static,
    {
        let work = Arc::new(work);
        let policy = RetryPolicy {
            initial: Duration::from_millis(50),
            max_interval: Duration::from_secs(2),
            multiplier: 2.0,
            jitter: 0.25,
        };
        let attempt = || {
            let (work, lease, operation) = (
                Arc::clone(&work),
                Arc::clone(&self.lease),
                Arc::clone(&self.operation),
            );
            self.services
                .db
                .transaction(move |conn| work(conn, &lease, &operation))
        };
        let since = Instant::now();
        let is_retryable = |error: &JournalError, _: Retry| {
            let is_given_up = error.is_unknown() && since.elapsed() >= UNKNOWN_PATIENCE;
            let retryable = error.is_transient() && !is_given_up;
            if retryable {
                tracing::debug!(%error, "write failed; trying again");
            }
            retryable
        };
        policy
            .retry_until(self.kept.over().cancelled(), attempt, is_retryable)
            .await
    }

    async fn begin(&self, step: Step) -> Result<Begin, JournalError> {
        let timing = Arc::clone(&self.services.timing);
        self.write(move |conn, lease, operation| material::begin(conn, lease, operation, step, &timing))
            .await
    }

    async fn chosen(&mut self, step: Step, driver: DriverRef) -> Result<Option<State>, JournalError> {
        let next = self.after(step, Some(&driver))?;
        let chosen = driver.clone();
        self.write(move |conn, lease, operation| {
            lease::fence(conn, lease)?;
            crate::store::cluster_driver::pin(conn, &operation.cluster, &chosen)?;
            fenced::set_driver(conn, lease, &chosen)?;
            let detail = format!("driver {} {}", chosen.name, chosen.version);
            fenced::result(conn, lease, step, next, Some(&detail))
        })
        .await?;
        let mut operation = Operation::clone(&self.operation);
        operation.driver = Some(driver);
        operation.step = next;
        self.operation = Arc::new(operation);
        Ok(None)
    }

    /// New certificates are stored: a new cluster's are in its row from now on, others wait for the driver.
    async fn certified(&mut self, step: Step, refs: CertificateRefs) -> Result<Option<State>, JournalError> {
        let next = self.after(step, self.operation.driver.as_ref())?;
        let mut args = self.operation.args.clone();
        let is_new = self.operation.kind == OperationKind::ClusterCreate;
        if !is_new {
            args.certificates = Some(refs.clone());
        }
        let bytes = args
            .to_bytes()
            .map_err(|error| self.unreadable("args", error.to_string()))?;
        self.write(move |conn, lease, operation| {
            lease::fence(conn, lease)?;
            if is_new {
                crate::store::clusters::set_certificates(conn, &operation.cluster, &refs)?;
            } else {
                fenced::set_args(conn, lease, &bytes)?;
            }
            fenced::result(conn, lease, step, next, None)
        })
        .await?;
        let mut operation = Operation::clone(&self.operation);
        operation.args = args;
        operation.step = next;
        self.operation = Arc::new(operation);
        Ok(None)
    }

    /// The nodes that go are part of what is asked for from now on, in every attempt.
    async fn named(&mut self, step: Step, nodes: &[String]) -> Result<Option<State>, JournalError> {
        let next = self.after(step, self.operation.driver.as_ref())?;
        let args = choose_nodes::with_nodes(&self.operation.args, nodes);
        let bytes = args
            .to_bytes()
            .map_err(|error| self.unreadable("args", error.to_string()))?;
        let detail = choose_nodes::in_words(nodes);
        self.write(move |conn, lease, _| {
            lease::fence(conn, lease)?;
            fenced::set_args(conn, lease, &bytes)?;
            fenced::result(conn, lease, step, next, Some(&detail))
        })
        .await?;
        let mut operation = Operation::clone(&self.operation);
        operation.args = args;
        operation.step = next;
        self.operation = Arc::new(operation);
        Ok(None)
    }

    /// The step that follows. A choice of nodes is left out where there is nothing to choose.
    fn after(&self, step: Step, driver: Option<&DriverRef>) -> Result<Step, JournalError> {
        let kind = self.operation.kind;
        let mut next = kind.step_after(Some(step));
        if next == Some(Step::ChooseNodes) && !self.chooses_nodes(driver) {
            next = kind.step_after(next);
        }
        // Every workflow ends with a driver call; a journal that says otherwise is damaged.
        next.ok_or_else(|| self.unreadable("step", format!("{step} is the last step of {kind}")))
    }

    /// Whether the driver is to choose the nodes that go. One that is not loaded here is asked by whoever has it.
    fn chooses_nodes(&self, driver: Option<&DriverRef>) -> bool {
        let loaded = driver.and_then(|driver| self.services.drivers.get(driver));
        loaded.is_none_or(|driver| driver.info().capabilities.scale)
            && choose_nodes::shrinking(&self.operation.args).is_some()
    }

    fn unreadable(&self, column: &'static str, detail: String) -> JournalError {
        JournalError::Unreadable(Unreadable {
            operation: self.operation.id.to_string(),
            column,
            detail,
        })
    }

    async fn returned(&self, report: DriverReport, panics: u32) -> Result<State, JournalError> {
        let written = self
            .write(move |conn, lease, operation| finish::driver_returned(conn, lease, operation, &report))
            .await;
        match written {
            // Repeating the call would bring the same report, so the operation ends here.
            Err(JournalError::Db(error @ DbError::Query(_))) => {
                let what = match error.refused_value() {
                    Some(Some(column)) => format!("the column {column} does not take it"),
                    _ => "the database does not take it".to_owned(),
                };
                tracing::error!(%error, "what the driver reported cannot be recorded");
                let told = format!("What the driver reported cannot be recorded: {what}.");
                let whole = format!("{told} {error}");
                self.failed(permanent(Reason::internal(told, whole)), panics)
                    .await
            }
            other => other,
        }
    }

    async fn failed(&self, failure: Failure, panics_before: u32) -> Result<State, JournalError> {
        let panicked = failure.class == FailureClass::Panic;
        let history = History {
            failures: self.operation.failures + 1,
            panics: panics_before + u32::from(panicked),
        };
        let decision = retry::decide(&failure, history, &self.services.timing.limits);
        Span::current().record(field::SPAN_STATUS, "ERROR");
        tracing::warn!(
            { field::FAILURES } = history.failures,
            class = failure.class.as_str(),
            reason = failure.reason.whole(),
            ?decision,
            "a step failed"
        );
        let exception = match failure.class {
            FailureClass::Driver(ErrorClass::NotSupported) => Exception::NotSupported,
            _ => Exception::MagnumException,
        };
        self.write(move |conn, lease, operation| match &decision {
            Decision::RetryAfter(delay) => {
                if lease::fence(conn, lease)?.stop_requested {
                    return finish::stopped(conn, lease, operation);
                }
                let why = if panicked {
                    TryAgain::Panicked
                } else {
                    TryAgain::Failed
                };
                let reason = failure.reason.whole();
                fenced::retry_later(conn, lease, Some(operation.step.as_str()), *delay, why, reason)?;
                Ok(State::Retrying)
            }
            Decision::GiveUp(reason) => {
                lease::fence(conn, lease)?;
                fenced::count_failure(conn, lease)?;
                let fault = Fault::new(exception, reason.told());
                finish::failed(conn, lease, operation, &fault, reason.whole())
            }
        })
        .await
    }

    /// Ends the operation with what its caller is told.
    async fn refused(&self, fault: Fault) -> Result<State, JournalError> {
        tracing::warn!(reason = %fault, "the operation cannot be done");
        self.write(move |conn, lease, operation| {
            finish::failed(conn, lease, operation, &fault, &fault.message)
        })
        .await
    }

    /// The effect was cut off. With a lease that still holds, the operation ends if that is what was asked for; else (the
    /// process stops) the lease is given back.
    async fn interrupted(&self) -> Result<State, JournalError> {
        if self.kept.is_over() {
            return Err(JournalError::LeaseLost);
        }
        if self.kept.stop_asked().is_cancelled() {
            tracing::info!("the driver was stopped: a delete goes ahead, or an operator wants it");
            return self.write(finish::stopped).await;
        }
        self.release().await
    }

    async fn release(&self) -> Result<State, JournalError> {
        let lease = Arc::clone(&self.lease);
        self.services
            .db
            .transaction(move |conn| lease::release(conn, &lease))
            .await?;
        Ok(State::Running)
    }
}

fn permanent(reason: Reason) -> Failure {
    Failure {
        class: FailureClass::Driver(ErrorClass::Permanent),
        reason,
    }
}
