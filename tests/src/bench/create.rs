//! Creates: from the cast until the driver has returned and the rows are saved, certificates included.
//!
//! A backlog is published while no conductor runs, so the publisher's speed does not matter; the clock runs from the
//! moment the conductor consumes until every cluster has its stack, which both conductors write after their driver
//! returned. The limit beside them is the bare making of RSA keys, four for each cluster, on all processors.
//!
//! With RSA keys ours is measured twice. First as an idle conductor leaves it: before the backlog is published, a
//! conductor runs with nothing to do until its pool has the keys that the backlog takes, and that time is not measured.
//! Then with the pool turned off, which is what remains of a backlog that has emptied the pool.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_config::Settings;
use magnum_x509::key::{KeyKind, PrivateKey};
use serde_json::json;
use tokio::time::Instant;

use super::load::Load;
use super::measure::Server;
use super::report::{Goal, Report, Row, say};
use super::site::Site;
use super::usage::{cpu_of_tree, rss_mib};
use super::{Environment, seconds};

/// What `bench create` measures.
#[derive(Debug, clap::Args)]
pub struct Create {
    /// Clusters with EC keys
    #[arg(long, default_value_t = 1_000)]
    pub clusters: u64,
    /// Clusters with RSA keys, which take far longer to make
    #[arg(long, default_value_t = 60)]
    pub rsa_clusters: u64,
    /// Clusters of the Python peer, which has RSA keys only
    #[arg(long, default_value_t = 40)]
    pub peer_clusters: u64,
    /// Longest time in seconds for one contestant; more is an error
    #[arg(long, default_value = "300", value_parser = seconds)]
    pub limit: Duration,
}

const COLUMNS: [&str; 5] = ["clusters", "created/s", "cpu ms/cluster", "RSS MiB", "start s"];

/// Keys of a cluster: three CAs and the conductor's own.
const KEYS: u64 = 4;

const BUILT: &str = "SELECT COUNT(*) AS n FROM cluster WHERE stack_id IS NOT NULL";

const POOLED: &str = "SELECT COUNT(*) AS n FROM conductor_key_pool";

const RSA: &str = "rsa-2048";

struct Measured {
    rate: f64,
    row: Row,
}

impl Create {
    /// Measures all contestants.
    pub async fn run(&self, environment: &Environment<'_>) -> Result<Report> {
        let setup = json!({
            "clusters": self.clusters, "rsa_clusters": self.rsa_clusters, "peer_clusters": self.peer_clusters,
        });
        let mut report = Report::new("create", &COLUMNS, setup);
        let bare = bare_keys(self.rsa_clusters * KEYS).await? / KEYS as f64;
        report.row(Row {
            name: "bare RSA keys",
            figures: vec![Some(self.rsa_clusters as f64), Some(bare), None, None, None],
        });
        let ec = self
            .ours(environment, "ours, EC", "ecdsa-p256", self.clusters, 0)
            .await?;
        let pool = u64::from(Settings::default().certificates.key_pool_size);
        ensure!(
            self.rsa_clusters * KEYS <= pool,
            "{} clusters need more than the {pool} keys of the pool",
            self.rsa_clusters
        );
        let pooled = self
            .ours(
                environment,
                "ours, RSA-2048, from the pool",
                RSA,
                self.rsa_clusters,
                pool,
            )
            .await?;
        let rsa = self
            .ours(environment, "ours, RSA-2048, no pool", RSA, self.rsa_clusters, 0)
            .await?;
        let peer = self.peer(environment).await?;
        report.goal(Goal::at_least(
            "rate with EC keys, times the peer's",
            ec.rate / peer.rate,
            100.0,
        ));
        report.goal(Goal::at_least(
            "rate with RSA keys from the pool, times the peer's",
            pooled.rate / peer.rate,
            1.5,
        ));
        report.goal(Goal::at_least(
            "rate with RSA keys and no pool, times the peer's",
            rsa.rate / peer.rate,
            1.0,
        ));
        report.goal(Goal::at_most(
            "time with RSA keys and no pool, times that of making the keys alone",
            bare / rsa.rate,
            1.2,
        ));
        for measured in [ec, pooled, rsa, peer] {
            report.row(measured.row);
        }
        Ok(report)
    }

    async fn ours(
        &self,
        environment: &Environment<'_>,
        name: &'static str,
        key_type: &str,
        count: u64,
        pool: u64,
    ) -> Result<Measured> {
        say(&format!("create, {name}: {count} clusters"));
        let site = Site::prepare(environment).await?;
        if pool > 0 {
            let idle = Server::start(site.ours(environment, "bench", key_type, pool)?, &site.vhost).await?;
            site.wait_for(POOLED, count * KEYS, self.limit).await?;
            idle.stop().await?;
        }
        let load = Load::open(&site.vhost).await?;
        load.backlog(count).await?;
        let server = Server::start(site.ours(environment, "bench", key_type, pool)?, &site.vhost).await?;
        let done = site.wait_for(BUILT, count, self.limit).await?;
        let measured = measured(
            name,
            count,
            done - server.began,
            cpu_of_tree(server.pid)?,
            rss_mib(server.pid)?,
            server.start,
        );
        server.stop().await?;
        load.close().await;
        check(&site, count).await?;
        Ok(measured)
    }

    async fn peer(&self, environment: &Environment<'_>) -> Result<Measured> {
        let count = self.peer_clusters;
        say(&format!("create, magnum 23: {count} clusters"));
        let site = Site::prepare(environment).await?;
        let python = site.python().await?;
        let load = Load::open(&site.vhost).await?;
        load.backlog(count).await?;
        let spawned = Instant::now();
        let mut conductor = python.conductor(&site.vhost).await?;
        let began = Instant::now();
        let done = site.wait_for(BUILT, count, self.limit).await?;
        let pid = conductor.pid();
        let measured = measured(
            "magnum 23",
            count,
            done - began,
            cpu_of_tree(pid)?,
            rss_mib(pid)?,
            began - spawned,
        );
        conductor.kill_group().await?;
        load.close().await;
        check(&site, count).await?;
        Ok(measured)
    }
}

/// Every cluster has its four certificates.
async fn check(site: &Site, count: u64) -> Result<()> {
    let kept = site.number("SELECT COUNT(*) AS n FROM x509keypair").await?;
    ensure!(kept == count * KEYS, "{kept} certificates for {count} clusters");
    Ok(())
}

fn measured(
    name: &'static str,
    count: u64,
    took: Duration,
    cpu: Duration,
    rss_mib: f64,
    start: Duration,
) -> Measured {
    let rate = count as f64 / took.as_secs_f64();
    Measured {
        rate,
        row: Row {
            name,
            figures: vec![
                Some(count as f64),
                Some(rate),
                Some(cpu.as_secs_f64() * 1e3 / count as f64),
                Some(rss_mib),
                Some(start.as_secs_f64()),
            ],
        },
    }
}

/// RSA-2048 keys per second when nothing else is done, on all processors.
async fn bare_keys(count: u64) -> Result<f64> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    say(&format!("create, bare: {count} RSA keys on {threads} threads"));
    let began = Instant::now();
    let each = count.div_ceil(threads);
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            tokio::task::spawn_blocking(move || {
                (0..each).try_for_each(|_| PrivateKey::generate(KeyKind::Rsa(2048)).map(drop))
            })
        })
        .collect();
    for worker in workers {
        worker.await?.context("a key")?;
    }
    Ok((each * threads) as f64 / began.elapsed().as_secs_f64())
}
