//! What a step does: choose a driver, or ask it for something. Ends early when the lease is over, the time is up, the process
//! stops, or a delete or an operator wants the operation to stop.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use magnum_common::context::RequestContext;
use magnum_common::error::{ErrorClass, Fault};
use magnum_common::panic;
use magnum_driver_api::{Driver, DriverCall, DriverError, DriverReport, Reason, Shrinking, limits};
use magnum_telemetry::field;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::not_here::NotHere;
use super::{Run, permanent};
use crate::metric_definitions as metric;
use crate::operations::cluster_objects;
use crate::operations::material::Material;
use crate::operations::progress::Reporter;
use crate::operations::request_context;
use crate::operations::retry::{Failure, FailureClass};
use crate::store::announcements;
use crate::workflows::CertificateRefs;
use crate::workflows::choose_driver::Wanted;
use crate::workflows::{self, DriverRef, Step, choose_nodes};

/// How long a driver that was told to stop may take to do so before its future is dropped.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// How long an effect may go on that is asked to stop, counted from its beginning. Most calls end by themselves within it, and
/// what they made is then known to the delete that follows.
const LEFT_ALONE: Duration = Duration::from_secs(5);

/// What a step brought.
pub(super) enum Effect {
    Chosen(DriverRef),
    Certified(CertificateRefs),
    /// The nodes that go.
    Named(Vec<String>),
    Returned(Box<DriverReport>),
    Failed(Failure),
    /// The driver cannot do it, by what it says of itself; it was not called.
    Refused(Fault),
    /// This conductor cannot do it, and another one may.
    NotHere(NotHere),
    /// Stopped from outside; nothing is known about the cluster.
    Interrupted,
}

impl Effect {
    /// The word in metrics.
    const fn outcome(&self) -> &'static str {
        match self {
            Self::Chosen(_) | Self::Certified(_) | Self::Named(_) | Self::Returned(_) => "done",
            Self::Failed(failure) => failure.class.as_str(),
            Self::Refused(_) => "refused",
            Self::NotHere(_) => "not_here",
            Self::Interrupted => "interrupted",
        }
    }
}

impl Run {
    pub(super) async fn effect(&self, step: Step, material: &Material) -> Effect {
        match step {
            Step::ChooseDriver => self.choose_driver(material).await,
            Step::GenerateCertificates => self.generate_certificates(material).await,
            Step::ChooseNodes => match choose_nodes::shrinking(&self.operation.args) {
                Some(shrinking) => self.call_driver(material, Some(shrinking)).await,
                None => Effect::Named(Vec::new()),
            },
            Step::CallDriver(_) => self.call_driver(material, None).await,
        }
    }

    async fn choose_driver(&self, material: &Material) -> Effect {
        let choose = || {
            workflows::choose_driver::choose(
                self.services.drivers.as_ref(),
                &material.template,
                Wanted::by(self.operation.kind),
                material.pinned.as_ref(),
                self.operation.driver.as_ref(),
            )
        };
        if let Ok(driver) = choose() {
            return self.able(driver, material);
        }
        // A conductor that has it may have come this moment.
        let alive = self.services.timing.driver_alive;
        let announced = self
            .services
            .db
            .run(move |conn| announcements::loaded(conn, alive));
        match announced.await {
            Ok(announced) => self.services.drivers.set_announced(announced),
            Err(error) => {
                return Effect::NotHere(NotHere::Means(Reason::internal(
                    "The drivers of other conductors cannot be read",
                    error.to_string(),
                )));
            }
        }
        match choose() {
            Ok(driver) => self.able(driver, material),
            Err(fault) => Effect::Failed(permanent(Reason::open(fault.message))),
        }
    }

    /// Whether the driver, if it is loaded here, can do what is asked at all.
    fn able(&self, driver: DriverRef, material: &Material) -> Effect {
        let loaded = self.services.drivers.get(&driver);
        let able = loaded.map_or(Ok(()), |loaded| {
            let request = self.operation.args.work.workflow();
            request.supported(&material.node_groups, loaded.info())
        });
        match able {
            Ok(()) => Effect::Chosen(driver),
            Err(fault) => Effect::Refused(fault),
        }
    }

    /// What an earlier attempt has stored is found again by the operation's id.
    async fn generate_certificates(&self, material: &Material) -> Effect {
        let context = match self.context() {
            Ok(context) => context,
            Err(effect) => return effect,
        };
        let begun = Instant::now();
        let generating = self
            .services
            .certificates
            .generate(&material.cluster, &context, &self.operation.id);
        tokio::select! {
            outcome = generating => match outcome {
                Ok(refs) => Effect::Certified(refs),
                Err(error) => Effect::Failed(Failure {
                    class: FailureClass::Driver(error.class()),
                    reason: error.reason(),
                }),
            },
            () = out_of_time(material) => self.timed_out(),
            () = self.kept.over().cancelled() => Effect::Interrupted,
            () = self.has_to_stop(begun) => Effect::Interrupted,
            () = self.stops.now.cancelled() => Effect::Interrupted,
        }
    }

    /// Until an effect that began at `begun` has to make way.
    async fn has_to_stop(&self, begun: Instant) {
        self.kept.stop_asked().cancelled().await;
        sleep_until(begun + LEFT_ALONE).await;
    }

    /// The context of the request; without it nothing can be done yet.
    fn context(&self) -> Result<RequestContext, Effect> {
        request_context::of(&self.operation, &self.services.key).map_err(|reason| {
            Effect::Failed(Failure {
                class: FailureClass::Driver(ErrorClass::Transient),
                reason,
            })
        })
    }

    fn timed_out(&self) -> Effect {
        Effect::Failed(Failure {
            class: FailureClass::TimedOut,
            reason: Reason::open(self.services.timing.timed_out(&self.operation.args)),
        })
    }

    /// Has the driver carry out what the operation is about, or, of a group that is `shrinking`, choose the nodes that
    /// go.
    async fn call_driver(&self, material: &Material, shrinking: Option<Shrinking<'_>>) -> Effect {
        let wanted = material.pinned.as_ref().or(self.operation.driver.as_ref());
        // The first step has chosen one.
        let Some(wanted) = wanted else {
            return Effect::Failed(permanent(Reason::open(
                Fault::driver_not_supported("None").message,
            )));
        };
        let Some(driver) = self.services.drivers.get(wanted) else {
            return Effect::NotHere(NotHere::Version(wanted.clone()));
        };
        if shrinking.is_some() && !driver.info().capabilities.scale {
            return Effect::Named(Vec::new());
        }
        let begun = Instant::now();
        let effect = self.ask(driver.as_ref(), material, shrinking).await;
        metrics::histogram!(
            metric::DRIVER_CALL_SECONDS,
            "driver" => driver.info().name.clone(),
            "kind" => self.operation.kind.as_str(),
            "outcome" => effect.outcome(),
        )
        .record(begun.elapsed());
        effect
    }

    async fn ask(
        &self,
        driver: &dyn Driver,
        material: &Material,
        shrinking: Option<Shrinking<'_>>,
    ) -> Effect {
        let context = match self.context() {
            Ok(context) => context,
            Err(effect) => return effect,
        };
        let span = tracing::info_span!("driver call", { field::DRIVER } = driver.info().name);
        let begun = Instant::now();
        let cancel = CancellationToken::new();
        let reporter = Reporter::new();
        let template = material.upgrade_to.as_ref().unwrap_or(&material.template);
        let call = DriverCall {
            task: self.operation.args.work.workflow().task(template),
            cluster: &material.cluster,
            node_groups: &material.node_groups,
            template: &material.template,
            context: &context,
            operation: &self.operation.id,
            attempt: self.operation.attempts,
            time_left: material.time_left,
            objects: cluster_objects::of_operation(
                &self.services,
                &self.lease,
                self.operation.kind,
                self.kept.over(),
            ),
            progress: &reporter,
            cancel: cancel.clone(),
        };
        let asked = async {
            match shrinking {
                None => driver
                    .carry_out(&call)
                    .await
                    .map(|report| Said::Done(Box::new(report))),
                Some(shrinking) => driver.nodes_to_remove(&call, shrinking).await.map(Said::Nodes),
            }
        };
        let mut working = AssertUnwindSafe(asked).catch_unwind().instrument(span).boxed();
        let timed_out = tokio::select! {
            outcome = &mut working => return effect_of(driver, shrinking, outcome),
            () = reporter.write_to_journal(&self.services.db, &self.lease) => false,
            () = out_of_time(material) => true,
            () = self.kept.over().cancelled() => false,
            () = self.has_to_stop(begun) => false,
            () = self.stops.now.cancelled() => false,
        };
        // Told to stop, given a moment, then dropped: both end the driver's work.
        cancel.cancel();
        let finished = timeout(STOP_GRACE, &mut working).await;
        drop(working);
        match finished {
            // It finished in that very moment: what it did counts.
            Ok(outcome @ Ok(Ok(_))) => effect_of(driver, shrinking, outcome),
            _ if timed_out => self.timed_out(),
            _ => Effect::Interrupted,
        }
    }
}

/// What a driver said.
enum Said {
    Done(Box<DriverReport>),
    Nodes(Vec<String>),
}

fn effect_of(
    driver: &dyn Driver,
    shrinking: Option<Shrinking<'_>>,
    outcome: std::thread::Result<Result<Said, DriverError>>,
) -> Effect {
    let accepted = outcome.map(|result| match (result, shrinking) {
        (Ok(Said::Done(report)), _) => {
            limits::accept(driver.info(), Ok(*report)).map(|report| Effect::Returned(Box::new(report)))
        }
        (Ok(Said::Nodes(names)), Some(shrinking)) => {
            limits::accept_nodes(driver.info(), shrinking, Ok(names)).map(Effect::Named)
        }
        // The resize does without.
        (Ok(Said::Nodes(_)), None) | (Err(DriverError::NotSupported(_)), Some(_)) => {
            Ok(Effect::Named(Vec::new()))
        }
        (Err(error), _) => Err(error),
    });
    match accepted {
        Ok(Ok(effect)) => effect,
        Ok(Err(DriverError::NotHere(reason))) => Effect::NotHere(NotHere::Means(reason)),
        Ok(Err(error)) => Effect::Failed(Failure {
            class: FailureClass::Driver(error.class()),
            reason: error.reason(),
        }),
        Err(panic) => {
            let text = panic::message(panic.as_ref()).unwrap_or("no message");
            tracing::error!(panic = text, "the driver panicked");
            Effect::Failed(Failure {
                class: FailureClass::Panic,
                reason: Reason::internal("The driver panicked", format!("The driver panicked: {text}")),
            })
        }
    }
}

/// Until the operation's deadline; for ever without one.
async fn out_of_time(material: &Material) {
    match material.time_left {
        Some(left) => sleep(left).await,
        None => std::future::pending().await,
    }
}
