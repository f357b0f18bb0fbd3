//! Sweeps: what it costs to look at every cluster in progress once, by one, two and four conductors.
//!
//! The clusters are rows from the start; the driver has nothing new to say of any. Queries are counted by the database
//! server, processor time by the kernel, programs that the conductors started included. What a conductor does besides
//! sweeping is in all figures: the goals are held against the difference between the large sweep and the small one, and
//! with several conductors against what they cost beyond as many idle ones.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_common::model::ClusterStatus;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::measure::Server;
use super::report::{Goal, Report, Row, say};
use super::site::{Eye, Site};
use super::usage::{cpu_of_tree, rss_mib};
use super::{Environment, seconds};

/// What `bench sweep` measures.
#[derive(Debug, clap::Args)]
pub struct Sweep {
    /// Clusters in the small sweep; the Python peer does this one
    #[arg(long, default_value_t = 1_000)]
    pub few: u64,
    /// Clusters in the large sweep
    #[arg(long, default_value_t = 20_000)]
    pub many: u64,
    /// Longest time in seconds for one sweep; more is an error
    #[arg(long, default_value = "300", value_parser = seconds)]
    pub limit: Duration,
}

const COLUMNS: [&str; 7] = [
    "clusters",
    "conductors",
    "sweep s",
    "cpu ms/cluster",
    "queries",
    "RSS MiB",
    "start s",
];

/// Clusters that a conductor claims at once, by default.
const BATCH: f64 = 500.0;

/// How long a conductor without clusters is left alone before its figures are read.
const IDLE: Duration = Duration::from_secs(5);

struct Measured {
    clusters: u64,
    cpu: Duration,
    queries: u64,
    rss_mib: f64,
    start: Duration,
}

impl Sweep {
    /// Measures all contestants.
    pub async fn run(&self, environment: &Environment<'_>) -> Result<Report> {
        let setup = json!({"few": self.few, "many": self.many, "batch": BATCH});
        let mut report = Report::new("sweep", &COLUMNS, setup);
        let idle = self.ours(environment, &mut report, 0, 1).await?;
        let few = self.ours(environment, &mut report, self.few, 1).await?;
        let mut many = Vec::new();
        for conductors in [1, 2, 4] {
            many.push(self.ours(environment, &mut report, self.many, conductors).await?);
        }
        let peer = self.peer(environment, &mut report).await?;
        let of_difference = |large: &Measured| {
            let clusters = (large.clusters - few.clusters) as f64;
            let queries = large.queries.saturating_sub(few.queries) as f64;
            let cpu = large.cpu.saturating_sub(few.cpu).as_secs_f64();
            (queries / (clusters / BATCH), cpu / clusters)
        };
        let (queries, cpu) = of_difference(&many[0]);
        let peer_cpu = peer.cpu.as_secs_f64() / peer.clusters as f64;
        report.goal(Goal::at_most("queries per batch of 500", queries, 10.0));
        report.goal(Goal::at_most(
            "cpu per cluster, share of the peer's",
            cpu / peer_cpu,
            0.01,
        ));
        let beyond_idle = |measured: &Measured, conductors: u32| {
            let queries = measured
                .queries
                .saturating_sub(idle.queries * u64::from(conductors));
            let cpu = measured.cpu.saturating_sub(idle.cpu * conductors);
            (queries as f64, cpu.as_secs_f64())
        };
        let (of_one, of_four) = (beyond_idle(&many[0], 1), beyond_idle(&many[2], 4));
        report.goal(Goal::at_most(
            "queries of four conductors, times those of one",
            of_four.0 / of_one.0,
            1.25,
        ));
        report.goal(Goal::at_most(
            "cpu of four conductors, times that of one",
            of_four.1 / of_one.1,
            1.25,
        ));
        report.goal(Goal::at_most(
            "RSS idle, share of the peer's",
            idle.rss_mib / peer.rss_mib,
            0.1,
        ));
        report.goal(Goal::at_most(
            "start, share of the peer's",
            few.start.as_secs_f64() / peer.start.as_secs_f64(),
            1.0 / 15.0,
        ));
        Ok(report)
    }

    async fn ours(
        &self,
        environment: &Environment<'_>,
        report: &mut Report,
        clusters: u64,
        conductors: u64,
    ) -> Result<Measured> {
        say(&format!(
            "sweep, ours: {clusters} clusters, {conductors} conductors"
        ));
        let site = Site::prepare(environment).await?;
        site.fill(clusters, ClusterStatus::CreateInProgress).await?;
        let mut eye = site.eye().await?;
        let (before, began) = (eye.statements_of_ours().await?, Instant::now());
        let mut servers = Vec::new();
        for number in 0..conductors {
            let command = site.ours(environment, &format!("bench-{number}"), "ecdsa-p256", 0)?;
            servers.push(Server::start(command, &site.vhost).await?);
        }
        // Given back after its look: nobody holds it, and the next look is far away.
        let looked_at = "SELECT COUNT(*) AS n FROM conductor_cluster_poll \
                         WHERE next_poll_ms > 0 AND lease_expires_ms IS NULL";
        let done = self.until(&mut eye, looked_at, clusters).await?;
        if clusters == 0 {
            // What it does at its start, and goes on doing.
            sleep(IDLE).await;
        }
        let mut cpu = Duration::ZERO;
        for server in &servers {
            cpu += cpu_of_tree(server.pid)?;
        }
        let measured = Measured {
            clusters,
            cpu,
            queries: eye.statements_of_ours().await?.saturating_sub(before),
            rss_mib: rss_mib(servers[0].pid)?,
            start: servers[0].start,
        };
        row(report, "ours", &measured, conductors, done - began);
        for server in servers {
            server.stop().await?;
        }
        let failed = eye
            .number("SELECT COUNT(*) AS n FROM conductor_cluster_poll WHERE failures > 0")
            .await?;
        ensure!(failed == 0, "the driver could not look at {failed} clusters");
        Ok(measured)
    }

    async fn until(&self, eye: &mut Eye, query: &'static str, count: u64) -> Result<Instant> {
        let deadline = Instant::now() + self.limit;
        loop {
            let there = eye.number(query).await?;
            let now = Instant::now();
            if there >= count {
                return Ok(now);
            }
            ensure!(now < deadline, "{there} of {count} (see --limit)");
            sleep(Duration::from_millis(250)).await;
        }
    }

    async fn peer(&self, environment: &Environment<'_>, report: &mut Report) -> Result<Measured> {
        say(&format!("sweep, magnum 23: {} clusters", self.few));
        let site = Site::prepare(environment).await?;
        let python = site.python().await?;
        // What it uses without any cluster.
        let mut idle = python.conductor(&site.vhost).await?;
        sleep(Duration::from_secs(3)).await;
        let of_start = cpu_of_tree(idle.pid())?;
        idle.kill_group().await?;
        site.fill(self.few, ClusterStatus::CreateInProgress).await?;
        let mut eye = site.eye().await?;
        let (queries, selects) = (eye.questions_of_magnum().await?, eye.counter("Com_select").await?);
        let spawned = Instant::now();
        let mut conductor = python.conductor(&site.vhost).await?;
        let start = spawned.elapsed();
        // Besides one for the list, two queries for each cluster: its template, and its node groups for the driver.
        let deadline = Instant::now() + self.limit;
        while eye.counter("Com_select").await? < selects + 2 * self.few {
            ensure!(
                Instant::now() < deadline,
                "not done after {:?} (see --limit)",
                self.limit
            );
            sleep(Duration::from_millis(250)).await;
        }
        let took = spawned.elapsed();
        let pid = conductor.pid();
        let measured = Measured {
            clusters: self.few,
            cpu: cpu_of_tree(pid)?.saturating_sub(of_start),
            queries: eye.questions_of_magnum().await?.saturating_sub(queries),
            rss_mib: rss_mib(pid)?,
            start,
        };
        row(report, "magnum 23", &measured, 1, took);
        conductor.kill_group().await?;
        Ok(measured)
    }
}

fn row(report: &mut Report, name: &'static str, measured: &Measured, conductors: u64, took: Duration) {
    report.row(Row {
        name,
        figures: vec![
            Some(measured.clusters as f64),
            Some(conductors as f64),
            Some(took.as_secs_f64()),
            (measured.clusters > 0).then(|| measured.cpu.as_secs_f64() * 1e3 / measured.clusters as f64),
            Some(measured.queries as f64),
            Some(measured.rss_mib),
            Some(measured.start.as_secs_f64()),
        ],
    });
}
