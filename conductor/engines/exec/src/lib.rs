//! The `exec` engine: a driver is any program.
//!
//! Each call is one process: a JSON request on its standard input, JSON lines on its standard output, standard
//! error to the log. Docs/drivers.md describes the protocol for authors.
//!
//! * At most one process tree per call, and none after the call has returned, was cancelled or dropped, or after
//!   this process died: see [`magnum_engine_process::guard`].
//! * The environment is `PATH`, what the manifest lists, six `MAGNUM_…` variables at most, and the trace as
//!   `TRACEPARENT` and `TRACESTATE`; tokens travel in the request only, and are masked of everything that the
//!   program says.
//! * A program whose manifest asks for them gets the cluster's CA and a client certificate as private files that are
//!   gone after the call: see `ca_files.rs`.
//! * A program whose manifest names a user runs as that user: see `account.rs`.
//! * Output is bounded; garbage ends the call as a permanent error that quotes it.
//! * Not guaranteed: that a program did what it says.

mod account;
mod api;
mod api_servers;
mod ca_files;
mod monitor;
mod options;
mod outcome;
mod protocol;
mod scale;
mod transcript;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use magnum_common::context::RequestContext;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Cluster;
use magnum_config::Declared;
use magnum_driver_api::{
    ApiCall, ApiReply, CaMaterial, ClusterCertificates, ClusterRef, Driver, DriverCall, DriverError,
    DriverReport, EngineHost, GuardProgram, HealthObservation, HealthReport, NoProgress, Observation,
    ProgressSink, RandomSource, Reason, Shrinking, Task, UtilisationObservation,
};
use magnum_drivers::{DriverInfo, EngineSpec, ExecSpec, HealthSource, Problem};
use magnum_engine_process::{End, GuardTiming, Run, Secrets};
use magnum_telemetry::field;
use magnum_telemetry::trace::{self, TraceContext};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::account::Account;
use self::ca_files::CaFiles;
use self::options::ExecSection;
use self::outcome::Ended;
use self::protocol::FromResult;
use self::transcript::Transcript;

/// A driver that is a program.
pub struct ExecDriver {
    info: DriverInfo,
    spec: ExecSpec,
    settings: Map<String, Value>,
    directory: PathBuf,
    program: PathBuf,
    account: Option<Account>,
    guard: GuardProgram,
    timing: GuardTiming,
    certificates: Arc<dyn ClusterCertificates>,
    runtime_directory: PathBuf,
    random: RandomSource,
    who: String,
}

/// What a program said of each cluster that it looked at.
type ByCluster<T> = Vec<(ClusterUuid, Result<T, DriverError>)>;

/// A run of the program for one cluster.
struct OneCall<'a> {
    environment: Vec<(String, OsString)>,
    request: Value,
    limit: Duration,
    cancel: &'a CancellationToken,
    progress: &'a dyn ProgressSink,
    /// Whose token is masked in everything that the program writes.
    context: &'a RequestContext,
}

const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl ExecDriver {
    /// The driver of a folder whose manifest says `engine = "exec"`.
    ///
    /// # Errors
    /// The manifest is one for another engine, or `[exec]` of `magnum.conf` has values that cannot be used.
    pub fn new(host: EngineHost) -> Result<Self, Vec<Problem>> {
        let manifest = host.folder.manifest;
        let EngineSpec::Exec(spec) = manifest.engine else {
            let other = manifest.engine.name();
            return Err(vec![Problem::of_folder(format!(
                "the engine exec cannot run a driver of the engine {other}"
            ))]);
        };
        if spec.health == HealthSource::Kubernetes {
            api_servers::check_build()?;
        }
        let named = spec.run_as.as_deref();
        let account = named.map(|name| Account::of(name, &host.folder.dir)).transpose();
        let account = account.map_err(|problem| vec![problem])?;
        let services = host.services;
        let options = services.options.section::<ExecSection>()?;
        ca_files::sweep(&options.runtime_directory);
        Ok(Self {
            who: format!("driver {} ({})", manifest.info, spec.program),
            info: manifest.info,
            settings: manifest.settings,
            program: host.folder.dir.join(&spec.program),
            directory: host.folder.dir,
            account,
            spec,
            guard: services.guard,
            timing: GuardTiming::for_lease(services.lease),
            certificates: services.certificates,
            runtime_directory: options.runtime_directory,
            random: services.random,
        })
    }

    /// One call for one cluster; `word` is its name in the request.
    async fn call<T: FromResult>(
        &self,
        about: &DriverCall<'_>,
        word: &str,
        request: Value,
    ) -> Result<T, DriverError> {
        let limit = about
            .time_left
            .map_or(self.spec.timeout, |left| left.min(self.spec.timeout));
        let operation = about.operation.as_str();
        // Dropped after the program has ended, however that comes about.
        let ca_files = self.ca_files(about).await?;
        let mut environment = self.environment([
            ("MAGNUM_CALL", word),
            ("MAGNUM_OPERATION_ID", operation),
            ("MAGNUM_CLUSTER_UUID", about.cluster.uuid.as_str()),
        ]);
        if let Some(files) = &ca_files {
            environment.push(("MAGNUM_CA_DIR".to_owned(), files.directory().into()));
        }
        let call = OneCall {
            environment,
            request,
            limit,
            cancel: &about.cancel,
            progress: about.progress,
            context: about.context,
        };
        self.one(call).await
    }

    /// Runs the program for one cluster, and returns the one result that it may have.
    async fn one<T: FromResult>(&self, call: OneCall<'_>) -> Result<T, DriverError> {
        let mut transcript = Transcript::new(call.progress, Secrets::of([token(call.context)]));
        let run = self.run(call.environment, call.request, call.limit, call.cancel);
        self.finish(run, &mut transcript).await?;
        match (transcript.outcome.take(), transcript.seen.is_empty()) {
            (Some(outcome), true) => outcome,
            (_, false) => Err(DriverError::Permanent(Reason::open(format!(
                "{} broke the protocol: only an answer to observe, health or monitor names its cluster",
                self.who
            )))),
            (None, true) => Err(self.without_result(&transcript)),
        }
    }

    /// The cluster's CA material as files, where the manifest asks for them and the cluster has any. A delete goes
    /// without what cannot be read: it must be possible whatever became of the certificates.
    async fn ca_files(&self, about: &DriverCall<'_>) -> Result<Option<CaFiles>, DriverError> {
        let material = match self.ca_material(about.cluster, &about.cancel).await {
            Ok(Some(material)) => material,
            Ok(None) => return Ok(None),
            Err(error @ DriverError::Cancelled) => return Err(error),
            Err(error) if matches!(about.task, Task::Delete) => {
                let (driver, operation) = (self.info.name.as_str(), about.operation.as_str());
                tracing::warn!(
                    { field::DRIVER } = driver,
                    { field::OPERATION } = operation,
                    error = error.reason().whole(),
                    "the cluster is deleted without its CA files"
                );
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.write_ca_files(material).await.map(Some)
    }

    /// The cluster's CA material; none where the manifest does not ask for it, or the cluster has none.
    async fn ca_material(
        &self,
        cluster: &Cluster,
        cancel: &CancellationToken,
    ) -> Result<Option<CaMaterial>, DriverError> {
        if !self.spec.ca_files {
            return Ok(None);
        }
        tokio::select! {
            opened = self.certificates.open(cluster) => opened,
            () = cancel.cancelled() => Err(DriverError::Cancelled),
        }
    }

    async fn write_ca_files(&self, material: CaMaterial) -> Result<CaFiles, DriverError> {
        let (root, name) = (self.runtime_directory.clone(), self.random.uuid());
        let shown = root.display().to_string();
        let reader = self.account.as_ref().map(|account| account.uid);
        let write = move || CaFiles::write(&root, name, &material, reader);
        let written = tokio::task::spawn_blocking(write).await;
        let reason = match written {
            Ok(Ok(files)) => return Ok(files),
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        // Space, mounts and permissions are this machine's.
        Err(DriverError::NotHere(Reason::internal(
            "The conductor cannot write the cluster's CA files for its driver",
            format!("cannot write CA files below [exec] runtime_directory {shown}: {reason}"),
        )))
    }

    /// Runs the program; an end that is an error of its own is returned, unless the program named its error.
    async fn finish<T: FromResult>(
        &self,
        run: Run<'_>,
        transcript: &mut Transcript<'_, T>,
    ) -> Result<(), DriverError> {
        let limit = run.limit;
        let end = run.listen(transcript).await.map_err(|error| {
            DriverError::NotHere(Reason::internal(
                format!("The conductor cannot start {}", self.who),
                format!("cannot start a guard for {}: {error}", self.who),
            ))
        })?;
        let is_success = end == End::Exited(0);
        let checked = Ended {
            end: &end,
            who: &self.who,
            last_stderr_line: transcript.stderr.last_line(),
            limit,
            is_gone: !is_success && matches!(tokio::fs::try_exists(&self.program).await, Ok(false)),
        }
        .check();
        match (checked, &transcript.outcome) {
            (Err(DriverError::Cancelled), _) => Err(DriverError::Cancelled),
            (Err(_), Some(Err(said))) => Err(said.clone()),
            (checked, _) => checked,
        }
    }

    /// Asks about many clusters in one call that changes nothing.
    async fn look<T: FromResult>(
        &self,
        call: &str,
        clusters: &[ClusterRef],
    ) -> Result<ByCluster<T>, DriverError> {
        let mut transcript = Transcript::new(&NoProgress, Secrets::default());
        let environment = self.environment([("MAGNUM_CALL", call)]);
        let request = protocol::look_request(call, clusters, &self.settings);
        // Nobody asks a look to stop half-way; dropping the future does.
        let never = CancellationToken::new();
        let run = self.run(environment, request, self.spec.observe_timeout, &never);
        self.finish(run, &mut transcript).await?;
        match transcript.outcome.take() {
            Some(Err(error)) => Err(error),
            Some(Ok(_)) => Err(DriverError::Permanent(Reason::open(format!(
                "{} broke the protocol: an answer to {call} names its cluster",
                self.who
            )))),
            None if transcript.seen.is_empty() && !clusters.is_empty() => {
                Err(self.without_result(&transcript))
            }
            None => Ok(transcript.seen),
        }
    }

    /// The health in an answer, which holds nothing else.
    fn health_of(&self, mut report: DriverReport) -> Result<HealthReport, DriverError> {
        let (status, reasons) = (
            report.cluster.health_status.take(),
            report.cluster.health_status_reason.take(),
        );
        match status {
            Some(status) if report == DriverReport::default() => Ok(HealthReport {
                status,
                reasons: reasons.unwrap_or_default(),
            }),
            _ => Err(DriverError::Permanent(Reason::open(format!(
                "{} broke the protocol: an answer to health holds health_status, perhaps health_status_reason, and \
                 nothing else",
                self.who
            )))),
        }
    }

    fn without_result<T>(&self, transcript: &Transcript<'_, T>) -> DriverError {
        Ended {
            end: &End::Exited(0),
            who: &self.who,
            last_stderr_line: transcript.stderr.last_line(),
            limit: self.spec.timeout,
            is_gone: false,
        }
        .silent()
    }

    fn run<'a>(
        &'a self,
        environment: Vec<(String, OsString)>,
        request: Value,
        limit: Duration,
        cancel: &'a CancellationToken,
    ) -> Run<'a> {
        Run {
            guard: &self.guard,
            timing: self.timing,
            program: &self.program,
            arguments: &[],
            directory: &self.directory,
            user: self.account.as_ref().map(|account| account.name.as_str()),
            environment,
            request,
            limit,
            cancel,
        }
    }

    fn environment<'a>(
        &self,
        about: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Vec<(String, OsString)> {
        let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
        let mut environment = vec![
            ("PATH".to_owned(), path),
            ("MAGNUM_DRIVER".to_owned(), self.info.name.clone().into()),
            ("MAGNUM_DRIVER_DIR".to_owned(), self.directory.clone().into()),
        ];
        let listed = self.spec.env.iter().filter(|name| *name != "PATH");
        let value = |name: &str| match &self.account {
            Some(account) if name == "HOME" => Some(account.home.clone().into_os_string()),
            _ => std::env::var_os(name),
        };
        environment.extend(listed.filter_map(|name| Some((name.clone(), value(name)?))));
        environment.extend(
            about
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into())),
        );
        let trace = trace::current();
        let trace = trace.iter().flat_map(TraceContext::headers);
        environment.extend(trace.map(|(name, value)| (name.to_ascii_uppercase(), value.into())));
        environment
    }
}

fn token(context: &RequestContext) -> Option<String> {
    let token = context.get("auth_token")?;
    token.as_str().map(str::to_owned)
}

#[async_trait]
impl Driver for ExecDriver {
    fn info(&self) -> &DriverInfo {
        &self.info
    }

    async fn carry_out(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        let request = protocol::request(call, &self.settings);
        self.call(call, call.task.as_str(), request).await
    }

    async fn nodes_to_remove(
        &self,
        call: &DriverCall<'_>,
        shrinking: Shrinking<'_>,
    ) -> Result<Vec<String>, DriverError> {
        if !self.info.capabilities.scale {
            return Err(DriverError::NotSupported(Reason::open(format!(
                "driver {} cannot choose the nodes that go",
                self.info
            ))));
        }
        let request = scale::request(call, shrinking, &self.settings);
        self.call(call, scale::SCALE, request).await
    }

    fn observe_batch(&self) -> Option<usize> {
        self.spec.observe_batch
    }

    async fn observe(&self, clusters: &[ClusterRef]) -> Result<Vec<Observation>, DriverError> {
        let seen = self.look(protocol::OBSERVE, clusters).await?.into_iter();
        Ok(seen
            .map(|(cluster, result)| Observation { cluster, result })
            .collect())
    }

    async fn health(&self, clusters: &[ClusterRef]) -> Result<Vec<HealthObservation>, DriverError> {
        if !self.info.capabilities.health {
            return Err(DriverError::NotSupported(Reason::open(format!(
                "driver {} cannot tell the health of its clusters",
                self.info
            ))));
        }
        if self.spec.health == HealthSource::Kubernetes {
            return api_servers::health(clusters, self.certificates.as_ref()).await;
        }
        let seen = self.look(protocol::HEALTH, clusters).await?.into_iter();
        Ok(seen
            .map(|(cluster, result)| HealthObservation {
                cluster,
                result: result.and_then(|report| self.health_of(report)),
            })
            .collect())
    }

    async fn api(&self, call: &ApiCall<'_>) -> Result<ApiReply, DriverError> {
        self.reply(call).await
    }

    async fn utilisation(&self, clusters: &[ClusterRef]) -> Result<Vec<UtilisationObservation>, DriverError> {
        if !self.info.capabilities.monitor {
            return Err(DriverError::NotSupported(Reason::open(format!(
                "driver {} cannot tell what its clusters use",
                self.info
            ))));
        }
        let seen = self.look(monitor::MONITOR, clusters).await?.into_iter();
        Ok(seen
            .map(|(cluster, result)| UtilisationObservation { cluster, result })
            .collect())
    }
}

/// The sections of `magnum.conf` that this engine reads.
pub fn sections() -> Vec<Declared> {
    vec![Declared::of::<ExecSection>()]
}

#[cfg(test)]
mod tests;
