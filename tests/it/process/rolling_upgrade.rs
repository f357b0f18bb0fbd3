//! Conductors of the release before and of this one, on one queue and one database: a rolling upgrade, and the way back.
//!
//! Requests come all the time, drivers are at work all the time, and conductors of both releases are stopped and killed with
//! operations in their hands. What one release has begun the other one ends, in both directions; nothing is lost, nothing is
//! wrong, by a checker that knows neither.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_common::clock::utc_now;
use magnum_tests::checker::history::{Heard, RequestId, Told};
use magnum_tests::checker::{self, Bounds, History, read};
use magnum_tests::deployment::Deployment;
use magnum_tests::process::Program;
use magnum_tests::rest::{Answer, Rest};
use magnum_tests::{Backend, probe, wait};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(180);

/// Longer than any of it takes.
const LIMIT: i64 = 3_600_000;

const BOUNDS: Bounds = Bounds {
    after_limit: Duration::from_secs(60),
    waiting: Duration::from_secs(120),
    idle_statements: 5.0,
};

fn now() -> i64 {
    utc_now().timestamp_millis()
}

struct Tenant<'a> {
    deployment: &'a Deployment,
    rest: Rest,
    template: String,
    told: Vec<Told>,
    clusters: Vec<String>,
}

impl Tenant<'_> {
    fn hear(&mut self, kind: &str, cluster: &str, asked: i64, answer: &Answer) -> Result<()> {
        ensure!(answer.status.is_success(), "{kind}: {answer:?}");
        self.told.push(Told {
            id: answer.request_id.clone().map(RequestId::Rest),
            tenant: String::new(),
            kind: kind.to_owned(),
            cluster: Some(cluster.to_owned()),
            asked,
            limit: LIMIT,
            heard: Heard::Confirmed,
        });
        Ok(())
    }

    async fn create(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let (asked, name) = (now(), format!("c{}", self.clusters.len()));
            let answer = self
                .rest
                .ask_for_cluster(&self.template, &name, json!({}))
                .await?;
            let cluster = answer.body["uuid"].as_str().context("a uuid")?.to_owned();
            self.hear("cluster_create", &cluster, asked, &answer)?;
            self.clusters.push(cluster);
        }
        Ok(())
    }

    async fn resize(&mut self, clusters: &[String], nodes: u32) -> Result<()> {
        for cluster in clusters {
            self.is_complete(cluster).await?;
            let asked = now();
            let answer = self.rest.resize(cluster, nodes).await?;
            self.hear("cluster_update", cluster, asked, &answer)?;
        }
        Ok(())
    }

    async fn delete(&mut self, clusters: &[String]) -> Result<()> {
        for cluster in clusters {
            let asked = now();
            let answer = self.rest.delete(&format!("/clusters/{cluster}")).await?;
            self.hear("cluster_delete", cluster, asked, &answer)?;
        }
        Ok(())
    }

    async fn is_complete(&self, cluster: &str) -> Result<()> {
        wait::until("a cluster to be complete", PATIENCE, async || {
            let status = self.rest.status(cluster).await?.unwrap_or_default();
            ensure!(status.ends_with("_COMPLETE"), "{status}");
            Ok(())
        })
        .await
    }

    /// Asks for a cluster whose driver waits to be let go.
    async fn create_held(&mut self) -> Result<String> {
        let (asked, labels) = (now(), json!({"scripted_create": "wait"}));
        let answer = self.rest.ask_for_cluster(&self.template, "held", labels).await?;
        let cluster = answer.body["uuid"].as_str().context("a uuid")?.to_owned();
        self.hear("cluster_create", &cluster, asked, &answer)?;
        Ok(cluster)
    }

    /// The conductor whose driver is at work on the cluster, once it is one whose name begins so.
    async fn at_work(&self, cluster: &str, names: &str) -> Result<String> {
        wait::until("a driver to be at work", PATIENCE, async || {
            let begun = self.deployment.record.begun("create", cluster)?;
            let last = begun.last().and_then(|call| call.conductor.clone());
            last.filter(|name| name.starts_with(names))
                .with_context(|| format!("{begun:?}"))
        })
        .await
    }

    /// Whether an operation was begun by a conductor whose name begins so, and ended by one of the others.
    fn went_over(history: &History, from: &str, to: &str) -> bool {
        history.operations.iter().any(|operation| {
            let calls: Vec<_> = history.calls_of(operation).collect();
            let is_first = calls.first().is_some_and(|call| call.conductor.starts_with(from));
            let last = calls.last().filter(|call| call.end.is_some());
            is_first && last.is_some_and(|call| call.conductor.starts_with(to))
        })
    }
}

/// Kills the conductor `name`, and drains the others.
async fn end(conductors: Vec<(&str, Program)>, name: &str) -> Result<()> {
    for (other, mut conductor) in conductors {
        if other == name {
            conductor.kill().await?;
        } else {
            let status = conductor.terminate(Duration::from_secs(60)).await?;
            ensure!(status.success(), "{other}: {status}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn both_releases_carry_out_what_the_other_has_begun() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("conductor", "operation_workers", 4);
    deployment.set("conductor", "operation_lease", 6);
    deployment.set("conductor", "shutdown_timeout", 5);
    deployment.set("api", "accept_wait", 0);
    deployment.set("quotas", "max_clusters_per_project", 1000);
    deployment.set_driver_delay(Duration::from_secs(1));
    let api = deployment.api().await?;

    let mut old = Vec::new();
    for name in ["old-1", "old-2"] {
        old.push((name, deployment.conductor_of_the_release_before(name).await?));
    }
    let mut tenant = Tenant {
        deployment: &deployment,
        template: api.rest.create_template("small").await?,
        rest: api.rest.clone(),
        told: Vec::new(),
        clusters: Vec::new(),
    };
    tenant.create(12).await?;
    let held = tenant.create_held().await?;

    // There: one conductor of the release before is drained, and one killed while its driver works.
    let holder = tenant.at_work(&held, "old").await?;
    let mut new = vec![("new-1", deployment.conductor("new-1").await?)];
    tenant.create(8).await?;
    end(old, &holder).await?;
    new.push(("new-2", deployment.conductor("new-2").await?));
    tenant.at_work(&held, "new").await?;
    deployment.record.let_go(&held)?;
    let first: Vec<String> = tenant.clusters[..8].to_vec();
    tenant.resize(&first[..6], 3).await?;

    // And back.
    let held = tenant.create_held().await?;
    let holder = tenant.at_work(&held, "new").await?;
    tenant.create(8).await?;
    let _old = deployment.conductor_of_the_release_before("old-3").await?;
    tenant.delete(&first[4..]).await?;
    end(new, &holder).await?;
    tenant.create(4).await?;
    tenant.at_work(&held, "old").await?;
    deployment.record.let_go(&held)?;

    deployment.settled_with(tenant.told.len(), PATIENCE).await?;
    let database = probe::open(&deployment.database).await?;
    let (calls, overlaps) = read::calls(&deployment.record)?;
    let history = History {
        told: std::mem::take(&mut tenant.told),
        calls,
        overlaps,
        operations: read::operations(&database).await?,
        clusters: read::clusters(&database).await?,
        built: deployment.record.built()?,
        ..History::default()
    };
    let verdicts = checker::check(&history, &BOUNDS);
    ensure!(verdicts.is_empty(), "{verdicts:#?}");
    for (from, to) in [("old", "new"), ("new", "old")] {
        ensure!(
            Tenant::went_over(&history, from, to),
            "nothing went from {from} to {to}"
        );
    }
    for conductor in ["old-1", "old-2", "new-1", "new-2", "old-3"] {
        let count = history
            .calls
            .iter()
            .filter(|call| call.conductor == conductor)
            .count();
        ensure!(count > 0, "{conductor} has done nothing");
    }
    let failed: Vec<_> = history
        .operations
        .iter()
        .filter(|one| one.state == "failed")
        .collect();
    ensure!(failed.is_empty(), "{failed:?}");
    Ok(())
}
