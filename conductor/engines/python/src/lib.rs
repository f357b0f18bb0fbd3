//! The engine `python`: a driver is a Python package with an entry point in the group `magnum.drivers`, unchanged.
//!
//! A folder names the interpreter of the environment that the package is installed in. One process of that environment,
//! the zygote, imports all of its drivers; each call is a process forked from it, with a guard that ends it
//! (`plugin-host/`). Objects that a driver reads and writes go through the conductor, under the lease of the call.
//!
//! * A call that has returned, was cancelled, dropped, or whose conductor has died or hangs leaves no process, unless one
//!   has left its process group.
//! * Memory of one call is not seen by another one. Looks share a process, up to `observe_batch` of them.
//! * What a driver saves is in the rows at once, except for the cluster's status and an upgrade's template: these are
//!   the end of its operation ([`view`]).
//! * A look that fails, or takes too long, leaves its cluster as it is.
//! * Not guaranteed: that a repeated call adopts what an earlier one has made. That is the package's.
//!
//! Where Magnum differs: its conductor runs drivers in its own process, where a call cannot be stopped.

mod connection;
mod environment;
mod exchange;
mod host_files;
mod inspect;
mod looks;
pub mod messages;
mod options;
mod request;
mod runtime;
pub mod view;
mod zygote;

pub use inspect::{Described, Inspected, inspect};

use std::sync::Arc;

use async_trait::async_trait;
use magnum_common::context::RequestContext;
use magnum_common::error::Exception;
use magnum_common::model::ClusterStatus;
use magnum_config::Declared;
use magnum_driver_api::{
    ClusterRef, ClusterTrust, ClusterTrusts, Driver, DriverCall, DriverError, DriverReport, EngineHost,
    HealthObservation, ObjectCall, ObjectError, ObjectTarget, Observation, Progress, Reason, SharedObjects,
    Task,
};
use magnum_drivers::{DriverInfo, EngineSpec, Problem, PythonSpec};
use magnum_engine_process::{Secrets, StderrLog};
use serde_json::{Map, Value, json};

use self::environment::{Environment, Environments, Worker};
use self::exchange::{Ending, Exchange, error_of};
use self::messages::Done;
use self::options::PythonSection;
use self::request::Method;
use self::view::View;

/// A driver that is a Python package.
pub struct PythonDriver {
    info: DriverInfo,
    spec: PythonSpec,
    environment: Arc<Environment>,
    trusts: Arc<dyn ClusterTrusts>,
    who: String,
}

impl PythonDriver {
    /// The driver of a folder whose manifest says `engine = "python"`. Its package is not imported yet.
    ///
    /// # Errors
    /// The manifest is one for another engine, its interpreter cannot be executed, or `[python]` of `magnum.conf` has
    /// values that cannot be used.
    pub fn new(host: EngineHost) -> Result<Self, Vec<Problem>> {
        let manifest = host.folder.manifest;
        let EngineSpec::Python(spec) = manifest.engine else {
            let other = manifest.engine.name();
            return Err(vec![Problem::of_folder(format!(
                "the engine python cannot run a driver of the engine {other}"
            ))]);
        };
        zygote::check_interpreter(&spec.interpreter).map_err(|why| vec![Problem::of_folder(why)])?;
        let environments = host.services.shared.get_or_default::<Environments>();
        Ok(Self {
            who: format!("driver {} ({})", manifest.info, spec.entry_point),
            info: manifest.info,
            environment: environments.of(&spec, &host.services)?,
            trusts: Arc::clone(&host.services.trusts),
            spec,
        })
    }

    async fn call(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        let prepared =
            async { Ok::<_, DriverError>((self.trust(call).await?, self.environment.worker().await?)) };
        let (trust, mut worker) = tokio::select! {
            prepared = prepared => prepared?,
            () = call.cancel.cancelled() => return Err(DriverError::Cancelled),
        };
        let manifest = worker.zygote.about.objects.clone();
        let method = Method::of(call, &manifest)?;
        let mut view = View::of_task(call.cluster, &call.task);
        if self.spec.trusts {
            view = view.with_trust(trust.as_ref());
        }
        let mut cluster = request::object(call.cluster, &[], &manifest)?;
        view.show_in(&mut cluster);
        let mut log = StderrLog::new(secrets(Some(call.context), trust.as_ref()));
        call.progress.report(Progress {
            text: method.name.to_owned(),
            percent: None,
        });
        let message = method.message(
            call.attempt,
            &self.spec.entry_point,
            request::context(call.context),
            cluster,
        );
        let made = Exchange {
            connection: &mut worker.connection,
            objects: &call.objects,
            view: &mut view,
            log: &mut log,
            progress: call.progress,
            cancel: &call.cancel,
            limit: call
                .time_left
                .map_or(self.spec.timeout, |left| left.min(self.spec.timeout)),
            driver: &self.who,
        }
        .make(&message)
        .await;
        end(worker, &mut log).await;
        match made? {
            Ending::Returned(done) => {
                self.save(call, &mut view, done).await?;
                Ok(report(&call.task, &view))
            }
            Ending::Raised(mut failed) => {
                failed.message = log.secrets().mask(&failed.message);
                // The next attempt finds what this one has made by the cluster's stack_id.
                let mut unsaved = failed.cluster.take().unwrap_or_default();
                unsaved.retain(|name, _| name == "stack_id");
                let written = view.take_unsaved(unsaved);
                save_fields(&call.objects, cluster_identity(call), written).await?;
                Err(error_of(&failed, &self.who))
            }
        }
    }

    /// The cluster's trust, for a driver whose clusters have one. A new cluster's is made first, as Magnum's conductor does.
    async fn trust(&self, call: &DriverCall<'_>) -> Result<Option<ClusterTrust>, DriverError> {
        if !self.spec.trusts {
            return Ok(None);
        }
        if matches!(call.task, Task::Create) {
            return self.trusts.ensure(call.cluster, call.context).await.map(Some);
        }
        let uuid = &call.cluster.uuid;
        Ok(self.trusts.of(std::slice::from_ref(uuid)).await?.remove(uuid))
    }

    /// Writes what the driver has set and not saved, as Magnum's conductor does.
    async fn save(&self, call: &DriverCall<'_>, view: &mut View, done: Done) -> Result<(), DriverError> {
        let mut written = view.take_unsaved(done.cluster.unwrap_or_default());
        // Part of the report, and written with the result of the call: a stack_id that is in the row before says that the
        // driver has begun with it.
        written.remove("stack_id");
        save_fields(&call.objects, cluster_identity(call), written).await?;
        let group = call.task.node_group().and_then(|uuid| {
            let mut groups = call.node_groups.iter();
            groups.find(|group| group.uuid == *uuid)
        });
        match (group, done.node_group) {
            (Some(group), Some(unsaved)) if !unsaved.is_empty() => {
                let identity = Identity {
                    class: "NodeGroup",
                    version: "1.2",
                    fields: json!({"uuid": group.uuid, "cluster_id": group.cluster_id}),
                };
                save_fields(&call.objects, identity, unsaved).await
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl Driver for PythonDriver {
    fn info(&self) -> &DriverInfo {
        &self.info
    }

    async fn carry_out(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        self.call(call).await
    }

    fn observe_batch(&self) -> Option<usize> {
        Some(self.spec.observe_batch)
    }

    async fn observe(&self, clusters: &[ClusterRef]) -> Result<Vec<Observation>, DriverError> {
        let looks = self.look(clusters, request::STATUS).await?;
        Ok(looks
            .into_iter()
            .map(|look| Observation {
                cluster: look.cluster,
                result: look.result.map(|(view, _)| looks::status_report(&view)),
            })
            .collect())
    }

    async fn health(&self, clusters: &[ClusterRef]) -> Result<Vec<HealthObservation>, DriverError> {
        if !self.info.capabilities.health {
            return Err(DriverError::NotSupported(Reason::open(format!(
                "driver {} cannot tell the health of its clusters",
                self.info
            ))));
        }
        let looks = self.look(clusters, request::HEALTH).await?;
        Ok(looks
            .into_iter()
            .map(|look| HealthObservation {
                cluster: look.cluster,
                result: look
                    .result
                    .and_then(|(_, value)| looks::health_report(&self.who, value)),
            })
            .collect())
    }
}

/// Ends a worker, and logs what it wrote last.
async fn end(worker: Worker<'_>, log: &mut StderrLog) {
    for line in worker.connection.end().await {
        let (level, text) = magnum_engine_process::Level::of_line(&line);
        log.record(level, text);
    }
}

/// What must not be in a log.
fn secrets<'a>(
    context: Option<&RequestContext>,
    trusts: impl IntoIterator<Item = &'a ClusterTrust>,
) -> Secrets {
    let token = context.and_then(|context| Some(context.get("auth_token")?.as_str()?.to_owned()));
    let passwords = trusts
        .into_iter()
        .map(|trust| Some(trust.trustee_password.expose().to_owned()));
    Secrets::of(std::iter::once(token).chain(passwords))
}

/// What a call brought that has returned: the status that the driver has set, else that the work goes on in the cloud. A
/// new credential is there when the call has returned.
fn report(task: &Task<'_>, view: &View) -> DriverReport {
    let status = view.status().or(match task {
        Task::Create => Some(ClusterStatus::CreateInProgress),
        Task::Delete => Some(ClusterStatus::DeleteInProgress),
        Task::RotateCredential => None,
        _ => Some(ClusterStatus::UpdateInProgress),
    });
    let mut report = DriverReport::default();
    report.cluster.status = status;
    report.cluster.status_reason = view.status_reason();
    report.cluster.stack_id = view.stack_id().map(str::to_owned);
    report
}

/// Which row is to be written.
struct Identity {
    class: &'static str,
    version: &'static str,
    fields: Value,
}

fn cluster_identity(call: &DriverCall<'_>) -> Identity {
    Identity {
        class: "Cluster",
        version: "1.24",
        fields: json!({"uuid": call.cluster.uuid}),
    }
}

/// Writes fields of a row. One that is gone needs none.
async fn save_fields(
    objects: &SharedObjects,
    identity: Identity,
    fields: Map<String, Value>,
) -> Result<(), DriverError> {
    if fields.is_empty() {
        return Ok(());
    }
    let changes: Vec<&String> = fields.keys().collect();
    let mut instance = json!({
        "magnum_object.name": identity.class,
        "magnum_object.namespace": "magnum",
        "magnum_object.version": identity.version,
        "magnum_object.changes": changes,
        "magnum_object.data": identity.fields,
    });
    if let Some(data) = instance["magnum_object.data"].as_object_mut() {
        data.extend(fields);
    }
    let saved = objects.call(ObjectCall {
        method: "save".to_owned(),
        target: ObjectTarget::Instance(instance),
        args: Vec::new(),
        kwargs: Map::new(),
        context: RequestContext::admin(),
    });
    match saved.await {
        Ok(_) => Ok(()),
        Err(ObjectError::Raised(fault)) if fault.exception == Exception::NodeGroupNotFound => Ok(()),
        Err(ObjectError::Raised(fault)) => Err(DriverError::Permanent(Reason::open(format!(
            "what the driver has set cannot be saved: {fault}"
        )))),
        Err(ObjectError::Revoked(_)) => Err(DriverError::Cancelled),
    }
}

/// The sections of `magnum.conf` that this engine reads.
pub fn sections() -> Vec<Declared> {
    vec![Declared::of::<PythonSection>()]
}
