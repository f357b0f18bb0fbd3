//! The health check: what one round over every cluster costs, by one, two and four conductors.
//!
//! The clusters are settled and known to the check; the driver says the same of each as the row does, so nothing is
//! written. Measured is one interval, from its begin to its end: statements by the database server, processor time by
//! the kernel, programs that the conductors started included. What a conductor does besides is measured by the same
//! interval without a check, and is left out of the goals.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_common::model::ClusterStatus;
use serde_json::json;
use tokio::time::sleep;

use super::measure::Server;
use super::report::{Goal, Report, Row, say};
use super::site::{Eye, Site};
use super::usage::cpu_of_tree;
use super::{Environment, seconds};

/// What `bench health` measures.
#[derive(Debug, clap::Args)]
pub struct Health {
    /// Clusters
    #[arg(long, default_value_t = 10_000)]
    pub clusters: u64,
    /// Seconds between two polls of a cluster, which is how long each round takes
    #[arg(long, default_value = "60", value_parser = seconds)]
    pub interval: Duration,
}

const COLUMNS: [&str; 6] = [
    "clusters",
    "conductors",
    "polls",
    "statements",
    "per 500",
    "cpu ms/cluster",
];

/// Clusters that a conductor claims at once, by default.
const BATCH: f64 = 500.0;

#[derive(Debug, Clone, Copy)]
struct Measured {
    polls: u64,
    statements: u64,
    cpu: Duration,
}

impl Health {
    /// Measures one, two and four conductors.
    pub async fn run(&self, environment: &Environment<'_>) -> Result<Report> {
        let setup = json!({
            "clusters": self.clusters, "interval": self.interval.as_secs_f64(), "batch": BATCH,
        });
        let mut report = Report::new("health", &COLUMNS, setup);
        let mut per_batch = Vec::new();
        for conductors in [1_u32, 2, 4] {
            let idle = self.round(environment, &mut report, conductors, false).await?;
            let checking = self.round(environment, &mut report, conductors, true).await?;
            ensure!(
                checking.polls >= self.clusters * 9 / 10,
                "{} polls of {} clusters in an interval",
                checking.polls,
                self.clusters
            );
            let statements = checking.statements as f64 - idle.statements as f64;
            per_batch.push(statements / (checking.polls as f64 / BATCH));
        }
        for (conductors, per_batch) in [1, 2, 4].into_iter().zip(per_batch) {
            let goal = match conductors {
                1 => "statements per 500 clusters, one conductor",
                2 => "statements per 500 clusters, two conductors",
                _ => "statements per 500 clusters, four conductors",
            };
            report.goal(Goal::at_most(goal, per_batch, 10.0));
        }
        Ok(report)
    }

    async fn round(
        &self,
        environment: &Environment<'_>,
        report: &mut Report,
        conductors: u32,
        checking: bool,
    ) -> Result<Measured> {
        let name = if checking { "checking" } else { "idle" };
        say(&format!("health, {name}: {conductors} conductors"));
        let site = Site::prepare(environment).await?;
        let interval = if checking { self.interval } else { Duration::ZERO };
        let site = site.with("kubernetes", "health_polling_interval", interval.as_secs_f64());
        site.fill(self.clusters, ClusterStatus::CreateComplete).await?;
        let mut eye = site.eye().await?;
        let mut servers = Vec::new();
        for number in 0..conductors {
            let command = site.ours(environment, &format!("bench-{number}"), "ecdsa-p256", 0)?;
            servers.push(Server::start(command, &site.vhost).await?);
        }
        // One interval, from a moment when every cluster was polled once; without a check, when the start is as long ago.
        if checking {
            self.all_known(&mut eye).await?;
        } else {
            sleep(self.interval).await;
        }
        let before = self.read(&mut eye, &servers).await?;
        sleep(self.interval).await;
        let after = self.read(&mut eye, &servers).await?;
        for server in servers {
            server.stop().await?;
        }
        let failed = eye
            .number("SELECT COUNT(*) AS n FROM conductor_cluster_health WHERE failures > 0")
            .await?;
        ensure!(failed == 0, "the driver did not answer about {failed} clusters");
        let measured = Measured {
            polls: after.polls - before.polls,
            statements: after.statements.saturating_sub(before.statements),
            cpu: after.cpu.saturating_sub(before.cpu),
        };
        let batches = measured.polls as f64 / BATCH;
        report.row(Row {
            name,
            figures: vec![
                Some(self.clusters as f64),
                Some(f64::from(conductors)),
                Some(measured.polls as f64),
                Some(measured.statements as f64),
                checking.then(|| measured.statements as f64 / batches),
                checking.then(|| measured.cpu.as_secs_f64() * 1e3 / measured.polls as f64),
            ],
        });
        Ok(measured)
    }

    async fn all_known(&self, eye: &mut Eye) -> Result<()> {
        let deadline = tokio::time::Instant::now() + self.interval * 3;
        loop {
            let known = eye
                .number("SELECT COUNT(*) AS n FROM conductor_cluster_health WHERE answered_ms IS NOT NULL")
                .await?;
            if known >= self.clusters {
                return Ok(());
            }
            ensure!(
                tokio::time::Instant::now() < deadline,
                "{known} of {} clusters were looked at in three intervals",
                self.clusters
            );
            sleep(Duration::from_millis(250)).await;
        }
    }

    async fn read(&self, eye: &mut Eye, servers: &[Server]) -> Result<Measured> {
        let mut cpu = Duration::ZERO;
        for server in servers {
            cpu += cpu_of_tree(server.pid)?;
        }
        Ok(Measured {
            // Each claim raises the epoch by one.
            polls: eye
                .number(
                    "SELECT CAST(COALESCE(SUM(lease_epoch), 0) AS SIGNED) AS n FROM conductor_cluster_health",
                )
                .await?,
            statements: eye.statements_of_ours().await?,
            cpu,
        })
    }
}
