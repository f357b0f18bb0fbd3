//! Servers that go away and come back, seen from the API and from a conductor in the middle of its work.
//!
//! The lines are cut and stalled by proxies. While a server is away the API answers 503 and promises nothing;
//! when it is back, everything works again without a restart. A conductor whose database does not answer gives
//! its work up before another one may take it, and stops in time when it is told to. One whose database is slow keeps its work.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use diesel::prelude::*;
use magnum_db::schema::conductor_operation::dsl as op;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::process::{Program, works};
use magnum_tests::{Backend, probe, wait};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

/// A deployment whose API reaches its servers through proxies, and whose conductor does not.
struct Scene {
    deployment: Deployment,
    broker: ChaosProxy,
    database: ChaosProxy,
    api: Api,
    template: String,
    _conductor: Program,
}

impl Scene {
    async fn set() -> Result<Self> {
        let mut deployment = Deployment::new(Backend::Mariadb).await?;
        deployment.set("api", "publish_timeout", 3);
        let conductor = deployment.conductor("one").await?;
        let broker = ChaosProxy::start(deployment.vhost.address).await?;
        let database = ChaosProxy::start(deployment.database.address()?).await?;
        deployment.connect_via(Some(broker.address()), Some(database.address()));
        let api = deployment.api().await?;
        let template = api.rest.create_template("small").await?;
        Ok(Self {
            deployment,
            broker,
            database,
            api,
            template,
            _conductor: conductor,
        })
    }

    /// Asking for a cluster and for the end of one is answered 503, with this in its words.
    async fn asking_fails(&self, existing: &str, words: &str) -> Result<()> {
        let asked = self
            .api
            .rest
            .ask_for_cluster(&self.template, "no", json!({}))
            .await?;
        let deleted = self.api.rest.delete(&format!("/clusters/{existing}")).await?;
        for answer in [asked, deleted] {
            ensure!(
                answer.status.as_u16() == 503,
                "{}: {}",
                answer.status,
                answer.body
            );
            ensure!(answer.detail().contains(words), "{}", answer.body);
            ensure!(
                answer.body["errors"][0]["request_id"].is_string(),
                "{}",
                answer.body
            );
        }
        Ok(())
    }

    /// A cluster is built by the same processes as before.
    async fn asking_works(&self, name: &str) -> Result<String> {
        let cluster = wait::until("a request to be accepted", PATIENCE, async || {
            let answer = self
                .api
                .rest
                .ask_for_cluster(&self.template, name, json!({}))
                .await?;
            answer.expect(202)
        })
        .await?;
        let cluster = cluster["uuid"].as_str().context("no uuid")?.to_owned();
        self.api
            .rest
            .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
            .await?;
        Ok(cluster)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_broker_the_api_accepts_nothing_and_still_reads() -> Result<()> {
    let scene = Scene::set().await?;
    let before = scene.asking_works("before").await?;
    scene.broker.cut();
    scene.asking_fails(&before, "message").await?;
    let read = scene.api.rest.get(&format!("/clusters/{before}")).await?;
    ensure!(read.expect(200)?["status"] == "CREATE_COMPLETE");
    scene.broker.restore();
    scene.asking_works("after").await?;
    scene.deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_does_not_confirm_is_a_503_in_bounded_time() -> Result<()> {
    let scene = Scene::set().await?;
    let before = scene.asking_works("before").await?;
    scene.broker.stall();
    scene.asking_fails(&before, "message").await?;
    scene.broker.restore();
    scene.asking_works("after").await?;
    // What was said 503 to may have been on its way all the same, once at most: then it was carried out.
    let operations = scene.deployment.settled(PATIENCE).await?;
    let deletes = operations.iter().filter(|one| one["kind"] == "cluster_delete");
    ensure!(deletes.count() <= 1, "{operations:#?}");
    let creates = operations.iter().filter(|one| one["kind"] == "cluster_create");
    ensure!((2..=3).contains(&creates.count()), "{operations:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn api_reports_a_lost_database_and_recovers() -> Result<()> {
    let scene = Scene::set().await?;
    let before = scene.asking_works("before").await?;
    scene.database.cut();
    scene.asking_fails(&before, "database").await?;
    let read = scene.api.rest.get("/clusters").await?;
    ensure!(
        read.status.as_u16() == 503 && read.detail().contains("database"),
        "{}",
        read.body
    );
    scene.database.restore();
    scene.asking_works("after").await?;
    scene.deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_without_its_database_gives_its_work_up_before_another_takes_it() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Postgres).await?;
    let api = deployment.api().await?;
    let two = deployment.conductor_launch("two").await?;
    let line = ChaosProxy::start(deployment.database.address()?).await?;
    deployment.connect_via(None, Some(line.address()));
    let one = deployment.conductor("one").await?;
    let template = api.rest.create_template("small").await?;
    let cluster = api
        .rest
        .create_cluster(&template, "c", json!({"scripted_create": "wait"}))
        .await?;
    let begun = async |count: usize| {
        wait::until("the driver to begin", PATIENCE, async || {
            let begun = deployment.record.begun("create", &cluster)?;
            ensure!(begun.len() == count, "{} begun", begun.len());
            Ok(begun)
        })
        .await
    };
    let first = begun(1).await?.remove(0);
    line.stall();
    let two = two.start().await?;
    let second = begun(2).await?.remove(1);
    ensure!(!works(first.pid), "two programs work on one cluster");
    ensure!(second.operation == first.operation && second.attempt == first.attempt + 1);
    one.wait_log("could not be renewed in time", PATIENCE).await?;
    deployment.record.let_go(&cluster)?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    line.restore();
    // Back on its line, the first conductor takes part again.
    drop(two);
    let next = api.rest.create_cluster(&template, "next", json!({})).await?;
    api.rest.wait_status(&next, "CREATE_COMPLETE", PATIENCE).await?;
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_stops_in_time_though_its_database_says_nothing() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("conductor", "shutdown_timeout", 1);
    let api = deployment.api().await?;
    let line = ChaosProxy::start(deployment.database.address()?).await?;
    deployment.connect_via(None, Some(line.address()));
    let mut one = deployment.conductor("one").await?;
    let template = api.rest.create_template("small").await?;
    let cluster = api
        .rest
        .create_cluster(&template, "c", json!({"scripted_create": "wait"}))
        .await?;
    wait::until("the driver to begin", PATIENCE, async || {
        ensure!(
            !deployment.record.begun("create", &cluster)?.is_empty(),
            "not begun"
        );
        Ok(())
    })
    .await?;
    line.stall();
    // shutdown_timeout and forty seconds, and a loaded machine.
    let status = one.terminate(Duration::from_secs(60)).await?;
    ensure!(status.success(), "{status}");
    deployment.record.let_go(&cluster)?;
    line.restore();
    let _two = deployment.conductor("two").await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_database_ends_no_lease() -> Result<()> {
    const CREATES: usize = 16;
    const LEASE: Duration = Duration::from_secs(10);
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("quotas", "max_clusters_per_project", CREATES);
    let api = deployment.api().await?;
    let line = ChaosProxy::start(deployment.database.address()?).await?;
    deployment.connect_via(None, Some(line.address()));
    // Work for two connections, and renewals beside it. A statement takes a quarter of a second: sixteen renewals, each with
    // statements of its own, would take longer than the lease.
    deployment.set("conductor", "operation_lease", LEASE.as_secs());
    deployment.set("database", "max_pool_size", 2);
    deployment.set("database", "max_overflow", 0);
    let _one = deployment.conductor("one").await?;
    let template = api.rest.create_template("small").await?;
    let mut clusters = Vec::new();
    for number in 0..CREATES {
        let name = format!("c-{number}");
        let labels = json!({"scripted_create": "wait"});
        clusters.push(api.rest.create_cluster(&template, &name, labels).await?);
    }
    let begun = async |cluster: &str, count: usize| {
        let begun = deployment.record.begun("create", cluster)?.len();
        ensure!(begun == count, "{cluster}: {begun} begun");
        Ok(())
    };
    for cluster in &clusters {
        wait::until("the driver to begin", PATIENCE, async || begun(cluster, 1).await).await?;
    }
    line.slow(Duration::from_millis(125));
    let direct = probe::open(&deployment.database).await?;
    let first_expiry = async || {
        let running = op::conductor_operation.filter(op::state.eq("running"));
        let first = running.select(diesel::dsl::min(op::lease_expires_ms));
        let first: Option<i64> = direct.run(move |conn| Ok(first.first(conn)?)).await?;
        first.context("nothing runs")
    };
    let before = first_expiry().await?;
    wait::until("all leases to outlive two terms", PATIENCE, async || {
        let passed = first_expiry().await? - before;
        ensure!(u128::try_from(passed)? > 2 * LEASE.as_millis(), "{passed} ms");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    line.restore();
    for cluster in &clusters {
        deployment.record.let_go(cluster)?;
    }
    deployment.settled_with(CREATES, PATIENCE).await?;
    for cluster in &clusters {
        begun(cluster, 1).await?;
    }
    Ok(())
}
