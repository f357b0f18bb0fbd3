//! The driver of a simulated conductor, and the cloud that it builds in, which all conductors share.

#![expect(
    clippy::panic,
    reason = "it runs in simulations only, and panicking is one of the things that drivers do"
)]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use magnum_common::model::ClusterStatus;
use magnum_driver_api::{
    ClusterRef, Driver, DriverCall, DriverError, DriverReport, Observation, Reason, Task,
};
use magnum_drivers::{Capabilities, ClusterType, DriverInfo, MasterSizeRule};
use rand::RngExt as _;

use super::line::{Line, Stage};
use super::plan::Weather;
use crate::checker::history::{Call, End, Overlap};

/// How long a driver goes on that has been told to stop and is deaf: longer than it is given.
const DEAF: Duration = Duration::from_secs(10);

/// What drivers have built, and what they wrote down.
#[derive(Default)]
pub struct Cloud(Mutex<State>);

#[derive(Default)]
struct State {
    record: Record,
    stacks: BTreeMap<String, Stack>,
    at_work: BTreeMap<String, u32>,
    poisoned: u32,
}

/// What drivers wrote down.
#[derive(Default, Clone)]
pub struct Record {
    /// Calls.
    pub calls: Vec<Call>,
    /// Calls that found another one at work.
    pub overlaps: Vec<Overlap>,
}

/// What there is of one cluster.
#[derive(Default)]
struct Stack {
    /// Nodes.
    built: Option<i64>,
    work: Option<Work>,
}

/// What goes on in the cloud.
struct Work {
    operation: String,
    word: &'static str,
    ready: Duration,
    /// Nodes afterwards; none: it is gone.
    nodes: Option<i64>,
    fails: Option<String>,
}

impl Cloud {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What drivers wrote down by now.
    pub fn record(&self) -> Record {
        self.lock().record.clone()
    }

    /// Clusters that are built, with the number of their nodes.
    pub fn built(&self) -> BTreeMap<String, i64> {
        let state = self.lock();
        let built = state.stacks.iter();
        built
            .filter_map(|(cluster, stack)| Some((cluster.clone(), stack.built?)))
            .collect()
    }
}

/// A driver in one conductor.
pub struct SimulatedDriver {
    info: DriverInfo,
    stage: Arc<Stage>,
    line: Arc<Line>,
    cloud: Arc<Cloud>,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Done,
    GoesOn,
    Transient,
    Permanent,
    Panics,
    Hangs,
    NotHere,
}

impl SimulatedDriver {
    /// The driver `name` in the conductor of this line.
    pub fn new(name: &str, stage: Arc<Stage>, line: Arc<Line>, cloud: Arc<Cloud>) -> Arc<Self> {
        let mut capabilities = Capabilities::default();
        for name in Capabilities::NAMES {
            capabilities.set(name, *name != "scale");
        }
        Arc::new(Self {
            info: DriverInfo {
                name: name.to_owned(),
                version: semver::Version::new(1, 0, 0),
                cluster_types: vec![ClusterType::new("vm", "ubuntu", "kubernetes")],
                beta: false,
                capabilities,
                master_size: MasterSizeRule::Odd,
                api: Default::default(),
            },
            stage,
            line,
            cloud,
        })
    }

    fn act(&self, task: Task<'_>) -> Act {
        let weather = if self.stage.is_quiet() {
            Weather::fair()
        } else {
            self.stage.plan.weather
        };
        let acts = [
            (weather.transient, Act::Transient),
            (weather.permanent, Act::Permanent),
            (weather.panics, Act::Panics),
            (weather.hangs, Act::Hangs),
            (weather.not_here, Act::NotHere),
            (weather.in_progress, Act::GoesOn),
        ];
        let mut chance = self.stage.roll(|dice| dice.random_range(0..200));
        for (share, act) in acts {
            if chance < share {
                // What ends with the call is not observed.
                let is_observed = matches!(task, Task::Create | Task::Update { .. } | Task::Delete);
                return if act == Act::GoesOn && !is_observed {
                    Act::Done
                } else {
                    act
                };
            }
            chance -= share;
        }
        Act::Done
    }

    /// Nodes that a cluster shall have after the task; none: it is gone.
    fn nodes(call: &DriverCall<'_>) -> Option<i64> {
        let groups = call.node_groups.iter();
        let is_there = |uuid| !matches!(call.task, Task::DeleteNodeGroup(gone) if gone == uuid);
        match call.task {
            Task::Delete => None,
            _ => Some(
                groups
                    .filter(|group| is_there(&group.uuid))
                    .map(|group| i64::from(group.node_count))
                    .sum(),
            ),
        }
    }

    async fn work(
        &self,
        call: &DriverCall<'_>,
        act: Act,
        mut mark: Mark<'_>,
    ) -> Result<DriverReport, DriverError> {
        let (cluster, operation) = (call.cluster.uuid.as_str(), call.operation.as_str());
        let word = word(call.task);
        let longest = u64::try_from(self.stage.plan.weather.longest.as_millis()).unwrap_or(1000);
        let works = self.stage.roll(|dice| match dice.random_range(0..4) {
            0 => dice.random_range(0..longest),
            _ => dice.random_range(0..longest / 10),
        });
        let works = if act == Act::Hangs {
            Duration::from_secs(1_000_000)
        } else {
            Duration::from_millis(works)
        };
        let is_stopped = tokio::select! {
            biased;
            () = call.cancel.cancelled() => true,
            () = tokio::time::sleep(works) => false,
        };
        if is_stopped {
            if self.stage.roll(|dice| dice.random_range(0..5)) == 0 {
                tokio::time::sleep(DEAF).await;
            }
            return mark.failed("cancelled", DriverError::Cancelled);
        }
        match act {
            Act::Panics => {
                mark.says("panic", Some("The driver panicked"));
                panic!("as the simulation says");
            }
            Act::Transient => {
                let text = format!("the cloud is busy with {operation}");
                return mark.failed("transient", DriverError::Transient(Reason::open(text)));
            }
            Act::Permanent => {
                let text = format!("the cloud does not want {operation}");
                return mark.failed("permanent", DriverError::Permanent(Reason::open(text)));
            }
            Act::Done | Act::GoesOn | Act::Hangs | Act::NotHere => {}
        }
        let now = self.stage.trace.elapsed();
        let takes = self.stage.roll(|dice| dice.random_range(0..40));
        let is_failing = self.stage.roll(|dice| dice.random_range(0..5)) == 0;
        let mut state = self.cloud.lock();
        let stack = state.stacks.entry(cluster.to_owned()).or_default();
        let is_known = stack
            .work
            .as_ref()
            .is_some_and(|work| work.operation == operation);
        if !is_known && act == Act::GoesOn {
            stack.work = Some(Work {
                operation: operation.to_owned(),
                word,
                ready: now + Duration::from_secs(takes),
                nodes: Self::nodes(call),
                fails: is_failing.then(|| format!("the cloud gave up {operation}")),
            });
        }
        // An attempt before this one may have begun it: it is adopted.
        if stack
            .work
            .as_ref()
            .is_some_and(|work| work.operation == operation)
        {
            let (status, reason) = stack.look(now);
            let fails = stack.work.as_ref().and_then(|work| work.fails.clone());
            drop(state);
            mark.says(status.as_str(), fails.as_deref());
            return Ok(report(status, reason));
        }
        stack.work = None;
        stack.built = Self::nodes(call);
        drop(state);
        let status = status(word, "COMPLETE");
        mark.says(status.as_str(), None);
        Ok(report(status, None))
    }
}

impl Stack {
    /// How the work in the cloud stands.
    fn look(&mut self, now: Duration) -> (ClusterStatus, Option<String>) {
        let Some(work) = &self.work else {
            return (ClusterStatus::CreateInProgress, None);
        };
        if now < work.ready {
            return (status(work.word, "IN_PROGRESS"), None);
        }
        if let Some(reason) = &work.fails {
            return (status(work.word, "FAILED"), Some(reason.clone()));
        }
        self.built = work.nodes;
        (status(work.word, "COMPLETE"), None)
    }
}

fn word(task: Task<'_>) -> &'static str {
    match task {
        Task::Create => "CREATE",
        Task::Delete => "DELETE",
        _ => "UPDATE",
    }
}

/// A status by its two words.
fn status(word: &str, outcome: &str) -> ClusterStatus {
    let text = format!("{word}_{outcome}");
    text.parse().unwrap_or(ClusterStatus::UpdateFailed)
}

fn report(status: ClusterStatus, reason: Option<String>) -> DriverReport {
    let mut report = DriverReport::status(status);
    report.cluster.status_reason = reason;
    report
}

/// The line of a call in the record, and its place in its cluster.
struct Mark<'a> {
    driver: &'a SimulatedDriver,
    cluster: String,
    call: usize,
    has_ended: bool,
}

impl<'a> Mark<'a> {
    fn begin(driver: &'a SimulatedDriver, call: &DriverCall<'_>) -> Self {
        let stage = &driver.stage;
        let cluster = call.cluster.uuid.to_string();
        let what = call.task.as_str();
        let (operation, attempt) = (call.operation, call.attempt);
        stage.trace.note(
            &driver.line.name,
            format_args!("driver {what} {cluster} {operation} {attempt}"),
        );
        let mut state = driver.cloud.lock();
        let number = state.record.calls.len();
        let inside = state.at_work.entry(cluster.clone()).or_default();
        *inside += 1;
        let pid = u32::try_from(number).unwrap_or_default();
        if *inside > 1 {
            state.record.overlaps.push(Overlap {
                cluster: cluster.clone(),
                operation: operation.to_string(),
                pid,
            });
        }
        state.record.calls.push(Call {
            call: what.to_owned(),
            cluster: cluster.clone(),
            operation: operation.to_string(),
            attempt,
            conductor: driver.line.name.clone(),
            pid,
            began: stage.trace.elapsed().as_secs_f64(),
            began_wall: stage.now_ms(),
            end: None,
        });
        Self {
            driver,
            cluster,
            call: number,
            has_ended: false,
        }
    }

    fn says(&mut self, outcome: &str, says: Option<&str>) {
        let stage = &self.driver.stage;
        stage.trace.note(
            &self.driver.line.name,
            format_args!("driver of {} says {outcome}", self.cluster),
        );
        self.has_ended = true;
        let mut state = self.driver.cloud.lock();
        state.record.calls[self.call].end = Some(End {
            at: stage.trace.elapsed().as_secs_f64(),
            outcome: outcome.to_owned(),
            says: says.map(str::to_owned),
        });
    }

    fn failed(mut self, outcome: &str, error: DriverError) -> Result<DriverReport, DriverError> {
        let text = error.reason().told().to_owned();
        self.says(outcome, Some(&text));
        Err(error)
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.driver.stage.trace.note(
                &self.driver.line.name,
                format_args!("driver of {} is dropped", self.cluster),
            );
        }
        let mut state = self.driver.cloud.lock();
        if let Some(inside) = state.at_work.get_mut(&self.cluster) {
            *inside -= 1;
        }
    }
}

#[async_trait]
impl Driver for SimulatedDriver {
    fn info(&self) -> &DriverInfo {
        &self.info
    }

    async fn carry_out(&self, call: &DriverCall<'_>) -> Result<DriverReport, DriverError> {
        let act = self.act(call.task);
        if act == Act::NotHere {
            // It was not asked, so there is no call, and no word of its own for which anybody may fail.
            return Err(DriverError::NotHere("no process is left".into()));
        }
        let mark = Mark::begin(self, call);
        if let Some((cluster, times)) = self.stage.plan.poison
            && call.cluster.name.as_deref() == Some(&format!("c{cluster}"))
        {
            let is_fatal = {
                let mut state = self.cloud.lock();
                state.poisoned += 1;
                state.poisoned <= times
            };
            if is_fatal {
                self.line.die_of_driver();
                std::future::pending::<()>().await;
            }
        }
        self.work(call, act, mark).await
    }

    async fn observe(&self, clusters: &[ClusterRef]) -> Result<Vec<Observation>, DriverError> {
        let now = self.stage.trace.elapsed();
        let mut state = self.cloud.lock();
        let observations = clusters.iter().filter_map(|one| {
            let uuid = one.cluster.uuid.clone();
            let stack = state.stacks.get_mut(uuid.as_str())?;
            stack.work.as_ref()?;
            let (status, reason) = stack.look(now);
            Some(Observation {
                cluster: uuid,
                result: Ok(report(status, reason)),
            })
        });
        Ok(observations.collect())
    }
}
