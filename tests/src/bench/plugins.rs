//! A driver that is a Python package, under our conductor and under Magnum's: the real magnum-capi-helm, the doubles of a
//! cloud, a management cluster and helm (`tests/testbed/plugins`), one broker and one database server.
//!
//! | figure | how |
//! |---|---|
//! | creates/s | a backlog of creates, from the first request to the cloud until helm, the last that the driver does, was called for each |
//! | looks/s | clusters in progress, one conductor: between its first look and that at the last of them |
//! | sweep | the same clusters and several conductors, until none has a cluster left to look at: ours share them, each of Magnum's looks at all |
//! | MiB at work | the conductor and its processes while so many creates wait for a helm that hangs, helm itself left out |
//! | kill s, stop s | from SIGKILL or SIGTERM until those helms have ended, and with the latter the conductor |
//!
//! Each does what it does by default: ours makes keys ahead of need while it is idle, and is measured once more without them;
//! Magnum looks at its clusters every ten seconds, also while it creates. Processor time is the machine's, less that of broker,
//! database, doubles and this program, since processes that nobody waits for are in nobody's figures.

mod contestant;
mod measuring;

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::report::{Goal, Report, Row};
use super::{Environment, seconds};
use crate::plugin_world::PluginWorld;
use crate::run_dir::run_dir;
use contestant::Contestant;
use measuring::{Bench, Measured};

/// What `bench plugins` measures.
#[derive(Debug, clap::Args)]
pub struct Plugins {
    /// Clusters that are created
    #[arg(long, default_value_t = 40)]
    pub creates: u64,
    /// Clusters in progress
    #[arg(long, default_value_t = 1_000)]
    pub looks: u64,
    /// Conductors that look at them, besides one alone
    #[arg(long, default_value_t = 3)]
    pub conductors: u64,
    /// Calls at work at a time when memory is read
    #[arg(long, default_value_t = 8)]
    pub calls: u64,
    /// Longest time in seconds for one contestant; more is an error
    #[arg(long, default_value = "300", value_parser = seconds)]
    pub limit: Duration,
}

const COLUMNS: [&str; 10] = [
    "creates/s",
    "cpu ms/create",
    "looks/s",
    "cpu ms/look",
    "sweep s",
    "sweep cpu s",
    "MiB idle",
    "MiB at work",
    "kill s",
    "stop s",
];

impl Plugins {
    /// Measures all contestants.
    pub async fn run(&self, environment: &Environment<'_>) -> Result<Report> {
        let setup = json!({"creates": self.creates, "looks": self.looks, "conductors": self.conductors, "calls": self.calls});
        let mut report = Report::new("plugins", &COLUMNS, setup);
        let world = PluginWorld::open(&run_dir()?.folder("bench-world")?).await?;
        let mut bench = Bench {
            plugins: self,
            environment,
            world,
        };
        let ours = bench.all(Contestant::Ours).await?;
        let (creates, cpu) = bench.creates(Contestant::Ours, 0).await?;
        let cpu = cpu.saturating_sub(ours.idle_cpu);
        let peer = bench.all(Contestant::Magnum).await?;
        report.row(self.row("ours", &ours));
        let without_pool = [Some(creates), Some(per(cpu, self.creates))];
        report.row(Row {
            name: "ours, no pool",
            figures: without_pool.into_iter().chain([None; 8]).collect(),
        });
        report.row(self.row("magnum 23", &peer));
        for goal in [
            Goal::at_least("creates, times the peer's", ours.creates / peer.creates, 1.0),
            Goal::at_least(
                "creates without a pool of keys, times the peer's",
                creates / peer.creates,
                1.0,
            ),
            Goal::at_least(
                "sweep of all conductors, times as fast as the peer's",
                peer.sweep.as_secs_f64() / ours.sweep.as_secs_f64(),
                10.0,
            ),
            Goal::at_most(
                "memory at work, share of the peer's",
                ours.at_work_mib / peer.at_work_mib,
                1.0,
            ),
        ] {
            report.goal(goal);
        }
        Ok(report)
    }

    fn row(&self, name: &'static str, measured: &Measured) -> Row {
        Row {
            name,
            figures: vec![
                Some(measured.creates),
                Some(per(measured.create_cpu, self.creates)),
                Some(measured.looks),
                Some(per(measured.look_cpu, self.looks)),
                Some(measured.sweep.as_secs_f64()),
                Some(measured.sweep_cpu.as_secs_f64()),
                Some(measured.idle_mib),
                Some(measured.at_work_mib),
                measured.kill.map(|took| took.as_secs_f64()),
                measured.stop.map(|took| took.as_secs_f64()),
            ],
        }
    }
}

/// Milliseconds for each.
fn per(cpu: Duration, count: u64) -> f64 {
    cpu.as_secs_f64() * 1e3 / count as f64
}
