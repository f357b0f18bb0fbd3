//! The driver of a simulated conductor.

#![expect(
    clippy::panic,
    reason = "it runs in simulations only, and panicking is one of the things that drivers do"
)]

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use magnum_common::model::ClusterStatus;
use magnum_driver_api::{
    ClusterRef, Driver, DriverCall, DriverError, DriverReport, Observation, Reason, Task,
};
use magnum_drivers::{Capabilities, ClusterType, DriverInfo, MasterSizeRule};
use rand::RngExt as _;

use super::cloud::{Asked, Cloud, GoesOn};
use super::conductor::Surroundings;
use super::line::{Line, Stage};
use super::plan::Weather;
use super::record::{Mark, Record};

/// How long a driver goes on that has been told to stop and is deaf: longer than it is given.
const DEAF: Duration = Duration::from_secs(10);

/// A driver in one conductor.
pub struct SimulatedDriver {
    info: DriverInfo,
    stage: Arc<Stage>,
    line: Arc<Line>,
    cloud: Arc<Cloud>,
    record: Arc<Record>,
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
    pub fn new(name: &str, around: &Surroundings, line: Arc<Line>) -> Arc<Self> {
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
            stage: Arc::clone(&around.stage),
            line,
            cloud: Arc::clone(&around.cloud),
            record: Arc::clone(&around.record),
        })
    }

    fn act(&self, task: Task<'_>) -> Act {
        if self.line.has_no_processes() {
            return Act::NotHere;
        }
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
        let takes = self.stage.roll(|dice| dice.random_range(0..40));
        let is_failing = self.stage.roll(|dice| dice.random_range(0..5)) == 0;
        let asked = Asked {
            cluster,
            operation,
            word,
            nodes: Self::nodes(call),
            goes_on: (act == Act::GoesOn).then(|| GoesOn {
                takes: Duration::from_secs(takes),
                fails: is_failing.then(|| format!("the cloud gave up {operation}")),
            }),
        };
        let (status, reason, fails) = self.cloud.build(asked, self.stage.trace.elapsed());
        mark.says(status.as_str(), fails.as_deref());
        Ok(report(status, reason))
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
        let mark = Mark::begin(&self.record, &self.stage, &self.line, call);
        if let Some((cluster, times)) = self.stage.plan.poison
            && call.cluster.name.as_deref() == Some(&format!("c{cluster}"))
        {
            let is_fatal = self.cloud.poisons() <= times;
            if is_fatal {
                self.line.die_of_driver();
                std::future::pending::<()>().await;
            }
        }
        self.work(call, act, mark).await
    }

    async fn observe(&self, clusters: &[ClusterRef]) -> Result<Vec<Observation>, DriverError> {
        let now = self.stage.trace.elapsed();
        let observations = clusters.iter().filter_map(|one| {
            let cluster = one.cluster.uuid.clone();
            let (status, reason) = self.cloud.look(cluster.as_str(), now)?;
            Some(Observation {
                cluster,
                result: Ok(report(status, reason)),
            })
        });
        Ok(observations.collect())
    }
}

fn word(task: Task<'_>) -> &'static str {
    match task {
        Task::Create => "CREATE",
        Task::Delete => "DELETE",
        _ => "UPDATE",
    }
}

fn report(status: ClusterStatus, reason: Option<String>) -> DriverReport {
    let mut report = DriverReport::status(status);
    report.cluster.status_reason = reason;
    report
}
