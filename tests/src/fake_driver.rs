//! A driver that follows the script of a test, and records its calls.
//!
//! Each call takes the next [`Act`] of the script; with an empty script the work is done at once. A call can be
//! held at a gate, so that a test does its part exactly while the driver works. The driver itself proves that no
//! two calls ever work on one cluster at the same time.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "it runs inside tests only, and panicking is one of the things that a script may ask for"
)]

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use magnum_common::context::RequestContext;
use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::ClusterStatus;
use magnum_driver_api::{
    ClusterRef, Driver, DriverCall, DriverError, DriverReport, HealthObservation, HealthReport,
    NodeGroupChanges, ObjectCall, ObjectError, ObjectTarget, Observation, Shrinking, Task,
    UtilisationObservation, UtilisationReport,
};
use magnum_drivers::{Capabilities, ClusterType, DriverInfo, MasterSizeRule};
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;

/// What a call does.
pub enum Act {
    /// Returns this report.
    Report(Box<DriverReport>),
    /// Fails.
    Fail(DriverError),
    /// Panics.
    Panic,
    /// Signals that it has begun, waits until the gate is opened or the call is cancelled, then does the other act.
    Gate(Arc<Gate>, Box<Act>),
    /// Saves an address of its cluster, then does the other act; ends as cancelled where it has no right to.
    Save(&'static str, Box<Act>),
    /// As a gate, but deaf to cancellation: only dropping the call ends it.
    Deaf(Arc<Gate>, Box<Act>),
}

/// Two signals: the driver is inside, and it may go on.
pub struct Gate {
    entered: Semaphore,
    open: Semaphore,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            entered: Semaphore::new(0),
            open: Semaphore::new(0),
        })
    }

    /// Waits until a call stands at the gate.
    pub async fn entered(&self) {
        self.entered.acquire().await.expect("never closed").forget();
    }

    /// Lets one call through.
    pub fn open(&self) {
        self.open.add_permits(1);
    }
}

/// One call, as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The task's word: `create`, `resize`, …
    pub method: &'static str,
    /// Which cluster.
    pub cluster: ClusterUuid,
    /// For which operation.
    pub operation: OperationId,
    /// Which attempt.
    pub attempt: u32,
    /// The cluster's CA.
    pub ca_cert_ref: Option<String>,
    /// The stack the cluster had.
    pub stack_id: Option<String>,
    /// Nodes wanted in the default worker group.
    pub workers: i32,
    /// Nodes that a resize was given to remove.
    pub removes: Vec<String>,
    /// The user's token, as the context had it.
    pub token: Option<String>,
    /// How it ended: `done`, `failed`, `panicked`, `cancelled`, or `dropped`.
    pub end: &'static str,
}

/// The driver.
pub struct FakeDriver {
    info: DriverInfo,
    script: Mutex<VecDeque<Act>>,
    calls: Mutex<Vec<Call>>,
    inside: Mutex<HashMap<ClusterUuid, usize>>,
    observations: Mutex<HashMap<ClusterUuid, Result<DriverReport, DriverError>>>,
    observed: Mutex<Vec<ClusterRef>>,
    poll_gate: Mutex<Option<Arc<Gate>>>,
    health: Mutex<HashMap<ClusterUuid, Result<HealthReport, DriverError>>>,
    health_polls: Mutex<Vec<ClusterUuid>>,
    choices: Mutex<VecDeque<Result<Vec<String>, DriverError>>>,
    utilisation: Mutex<HashMap<ClusterUuid, Result<UtilisationReport, DriverError>>>,
    utilisation_polls: Mutex<Vec<ClusterUuid>>,
    utilisation_gate: Mutex<Option<Arc<Gate>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeDriver {
    /// A driver for (vm, ubuntu, kubernetes) that can do everything.
    pub fn new(name: &str) -> Arc<Self> {
        let mut all = Capabilities::default();
        for name in Capabilities::NAMES {
            all.set(name, true);
        }
        Self::with_capabilities(name, all)
    }

    /// A driver with these capabilities.
    pub fn with_capabilities(name: &str, capabilities: Capabilities) -> Arc<Self> {
        Arc::new(Self {
            info: DriverInfo {
                name: name.to_owned(),
                version: "1.0.0".parse().expect("semver"),
                cluster_types: vec![ClusterType::new("vm", "ubuntu", "kubernetes")],
                beta: false,
                capabilities,
                master_size: MasterSizeRule::Odd,
                api: Default::default(),
            },
            script: Mutex::default(),
            calls: Mutex::default(),
            inside: Mutex::default(),
            observations: Mutex::default(),
            observed: Mutex::default(),
            poll_gate: Mutex::default(),
            health: Mutex::default(),
            health_polls: Mutex::default(),
            choices: Mutex::default(),
            utilisation: Mutex::default(),
            utilisation_polls: Mutex::default(),
            utilisation_gate: Mutex::default(),
        })
    }

    /// Adds to the script.
    pub fn then(&self, act: Act) -> &Self {
        lock(&self.script).push_back(act);
        self
    }

    /// Sets the result of observations of the cluster; without one they omit it.
    pub fn set_observation(&self, cluster: &ClusterUuid, result: Result<DriverReport, DriverError>) -> &Self {
        lock(&self.observations).insert(cluster.clone(), result);
        self
    }

    /// Sets the result of health polls of the cluster; without one they omit it.
    pub fn set_health(&self, cluster: &ClusterUuid, result: Result<HealthReport, DriverError>) -> &Self {
        lock(&self.health).insert(cluster.clone(), result);
        self
    }

    /// Adds the result of the next call of `nodes_to_remove`; without one it leaves the choice to the resize.
    pub fn push_choice(&self, result: Result<Vec<String>, DriverError>) -> &Self {
        lock(&self.choices).push_back(result);
        self
    }

    /// Sets the result of utilisation polls of the cluster; without one they omit it.
    pub fn set_utilisation(
        &self,
        cluster: &ClusterUuid,
        result: Result<UtilisationReport, DriverError>,
    ) -> &Self {
        lock(&self.utilisation).insert(cluster.clone(), result);
        self
    }

    /// The clusters of all utilisation polls so far.
    pub fn utilisation_polls(&self) -> Vec<ClusterUuid> {
        lock(&self.utilisation_polls).clone()
    }

    /// Holds utilisation polls at this gate from now on.
    pub fn hold_utilisation(&self, gate: &Arc<Gate>) {
        *lock(&self.utilisation_gate) = Some(Arc::clone(gate));
    }

    /// The clusters of all health polls so far.
    pub fn health_polls(&self) -> Vec<ClusterUuid> {
        lock(&self.health_polls).clone()
    }

    /// Holds observations and health polls at this gate from now on.
    pub fn hold_polls(&self, gate: &Arc<Gate>) {
        *lock(&self.poll_gate) = Some(Arc::clone(gate));
    }

    /// The clusters of all observations so far.
    pub fn observed(&self) -> Vec<ClusterRef> {
        lock(&self.observed).clone()
    }

    /// All calls so far, in the order of their begin.
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.calls).clone()
    }

    async fn call(&self, method: &'static str, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        let at = {
            let mut calls = lock(&self.calls);
            calls.push(Call {
                method,
                cluster: call.cluster.uuid.clone(),
                operation: call.operation.clone(),
                attempt: call.attempt,
                ca_cert_ref: call.cluster.ca_cert_ref.clone(),
                stack_id: call.cluster.stack_id.clone(),
                workers: call
                    .node_groups
                    .iter()
                    .find(|group| group.is_default && !group.is_master())
                    .map_or(-1, |group| group.node_count),
                removes: match call.task {
                    Task::Resize { remove, .. } => remove.to_vec(),
                    _ => Vec::new(),
                },
                token: call
                    .context
                    .get("auth_token")
                    .and_then(|token| token.as_str().map(str::to_owned)),
                end: "dropped",
            });
            calls.len() - 1
        };
        let _inside = Inside::enter(self, &call.cluster.uuid);
        let mut act = lock(&self.script)
            .pop_front()
            .unwrap_or_else(|| Act::Report(Box::default()));
        loop {
            let (end, result) = match act {
                Act::Report(report) => ("done", Ok(*report)),
                Act::Fail(error) => ("failed", Err(error)),
                Act::Panic => {
                    lock(&self.calls)[at].end = "panicked";
                    panic!("as the script says");
                }
                Act::Save(address, then) => match save_address(call, address).await {
                    Ok(_) => {
                        act = *then;
                        continue;
                    }
                    Err(ObjectError::Revoked(_)) => ("revoked", Err(DriverError::Cancelled)),
                    Err(ObjectError::Raised(fault)) => panic!("{fault}"),
                },
                Act::Deaf(gate, then) => {
                    gate.entered.add_permits(1);
                    gate.open.acquire().await.expect("never closed").forget();
                    act = *then;
                    continue;
                }
                Act::Gate(gate, then) => {
                    gate.entered.add_permits(1);
                    let opened = tokio::select! {
                        permit = gate.open.acquire() => { permit.expect("never closed").forget(); true }
                        () = call.cancel.cancelled() => false,
                    };
                    if opened {
                        act = *then;
                        continue;
                    }
                    ("cancelled", Err(DriverError::Cancelled))
                }
            };
            lock(&self.calls)[at].end = end;
            return result;
        }
    }
}

async fn save_address(call: &DriverCall<'_>, address: &str) -> Result<Value, ObjectError> {
    let instance = json!({
        "magnum_object.name": "Cluster",
        "magnum_object.namespace": "magnum",
        "magnum_object.version": "1.24",
        "magnum_object.data": {"uuid": call.cluster.uuid, "api_address": address},
        "magnum_object.changes": ["api_address"],
    });
    call.objects
        .call(ObjectCall {
            method: "save".to_owned(),
            target: ObjectTarget::Instance(instance),
            args: Vec::new(),
            kwargs: Map::new(),
            context: RequestContext::admin(),
        })
        .await
}

/// Proves that one cluster has one call at a time.
struct Inside<'a>(&'a FakeDriver, ClusterUuid);

impl<'a> Inside<'a> {
    fn enter(driver: &'a FakeDriver, cluster: &ClusterUuid) -> Self {
        let mut inside = lock(&driver.inside);
        let count = inside.entry(cluster.clone()).or_default();
        *count += 1;
        assert_eq!(*count, 1, "two calls at once for cluster {cluster}");
        drop(inside);
        Self(driver, cluster.clone())
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        lock(&self.0.inside).remove(&self.1);
    }
}

/// A report with a stack, a status, and that status for every node group of the call.
pub fn built(status: ClusterStatus, stack: &str) -> DriverReport {
    let mut report = DriverReport::status(status);
    report.cluster.stack_id = Some(stack.to_owned());
    report
}

/// A report that also tells about one node group.
pub fn with_group(mut report: DriverReport, changes: NodeGroupChanges) -> DriverReport {
    report.node_groups.push(changes);
    report
}

#[async_trait]
impl Driver for FakeDriver {
    fn info(&self) -> &DriverInfo {
        &self.info
    }

    async fn carry_out(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        self.call(call.task.as_str(), call).await
    }

    async fn observe(&self, clusters: &[ClusterRef]) -> Result<Vec<Observation>, DriverError> {
        lock(&self.observed).extend_from_slice(clusters);
        let gate = lock(&self.poll_gate).clone();
        if let Some(gate) = gate {
            gate.entered.add_permits(1);
            gate.open.acquire().await.expect("never closed").forget();
        }
        let observations = lock(&self.observations);
        Ok(clusters
            .iter()
            .filter_map(|one| {
                let cluster = one.cluster.uuid.clone();
                let result = observations.get(&cluster)?.clone();
                Some(Observation { cluster, result })
            })
            .collect())
    }

    async fn health(&self, clusters: &[ClusterRef]) -> Result<Vec<HealthObservation>, DriverError> {
        lock(&self.health_polls).extend(clusters.iter().map(|one| one.cluster.uuid.clone()));
        let gate = lock(&self.poll_gate).clone();
        if let Some(gate) = gate {
            gate.entered.add_permits(1);
            gate.open.acquire().await.expect("never closed").forget();
        }
        let health = lock(&self.health);
        Ok(clusters
            .iter()
            .filter_map(|one| {
                let cluster = one.cluster.uuid.clone();
                let result = health.get(&cluster)?.clone();
                Some(HealthObservation { cluster, result })
            })
            .collect())
    }

    async fn nodes_to_remove(
        &self,
        _call: &DriverCall<'_>,
        _shrinking: Shrinking<'_>,
    ) -> Result<Vec<String>, DriverError> {
        lock(&self.choices).pop_front().unwrap_or_else(|| Ok(Vec::new()))
    }

    async fn utilisation(&self, clusters: &[ClusterRef]) -> Result<Vec<UtilisationObservation>, DriverError> {
        lock(&self.utilisation_polls).extend(clusters.iter().map(|one| one.cluster.uuid.clone()));
        let gate = lock(&self.utilisation_gate).clone();
        if let Some(gate) = gate {
            gate.entered.add_permits(1);
            gate.open.acquire().await.expect("never closed").forget();
        }
        let utilisation = lock(&self.utilisation);
        Ok(clusters
            .iter()
            .filter_map(|one| {
                let cluster = one.cluster.uuid.clone();
                let result = utilisation.get(&cluster)?.clone();
                Some(UtilisationObservation { cluster, result })
            })
            .collect())
    }
}
