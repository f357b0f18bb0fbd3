//! Storms: hundreds of requests while conductors are killed and servers restarted.
//!
//! What counts is the promise made to the user: every cluster whose creation was answered with 202 exists in the
//! end, complete, and its driver was never called twice at a time. The second group of tests does to our
//! conductor what was done to Magnum's own: `kill -9` early, `kill -9` late, a broker restart and SIGTERM, with
//! a hundred accepted creations each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use magnum_tests::deployment::Deployment;
use magnum_tests::mariadb::Mariadb;
use magnum_tests::process::Program;
use magnum_tests::python_plugin::{DRIVER, Library, PythonPlugin};
use magnum_tests::rabbitmq::Rabbitmq;
use magnum_tests::rest::Rest;
use magnum_tests::{Backend, TestDatabase, wait};
use rand::RngExt as _;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(300);

/// Requests under way at the same time.
const CLIENTS: usize = 8;

/// Asks for `count` clusters, however often it takes, and returns those that were answered with 202. What was
/// answered otherwise is not promised; its uuid is not known to anybody.
async fn create_clusters(
    rest: &Rest,
    template: &str,
    count: usize,
    accepted: &AtomicUsize,
) -> Result<BTreeSet<String>> {
    let clusters = futures::stream::iter(0..count).map(async |number| {
        let answer = wait::until("a request to be accepted", PATIENCE, async || {
            let answer = rest
                .ask_for_cluster(template, &format!("c{number}"), json!({}))
                .await?;
            // A server in trouble says so and is asked again; a refusal would be a mistake of this test.
            ensure!(
                !answer.status.is_server_error(),
                "{}: {}",
                answer.status,
                answer.body
            );
            Ok::<_, anyhow::Error>(answer)
        });
        let uuid = answer.await?.expect(202)?["uuid"]
            .as_str()
            .context("no uuid")?
            .to_owned();
        accepted.fetch_add(1, Ordering::Relaxed);
        Ok(uuid)
    });
    clusters
        .buffer_unordered(CLIENTS)
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .collect()
}

/// Every cluster that was promised is there and complete; nobody has open operations; effects are not doubled.
async fn nothing_is_lost(deployment: &Deployment, rest: &Rest, promised: &BTreeSet<String>) -> Result<()> {
    // What was accepted may still wait in the queue, with no operation open that would tell.
    wait::until("every accepted request to be journalled", PATIENCE, async || {
        let operations = deployment.operations().await?;
        let journalled = creates(&operations).keys().cloned().collect();
        let lost: BTreeSet<_> = promised.difference(&journalled).collect();
        ensure!(
            lost.is_empty(),
            "{} of {} are not, such as {:?}",
            lost.len(),
            promised.len(),
            lost.first()
        );
        Ok(())
    })
    .await?;
    let operations = deployment.settled(PATIENCE).await?;
    let creates = creates(&operations);
    for cluster in promised {
        let create = &creates[cluster];
        ensure!(
            create["state"] == "succeeded",
            "an accepted request ended as {create}"
        );
    }
    let mut complete = 0;
    let mut page = rest.get("/clusters").await?.expect(200)?;
    loop {
        let clusters = page["clusters"].as_array().cloned().unwrap_or_default();
        complete += clusters
            .iter()
            .filter(|one| is_promised_and_complete(promised, one))
            .count();
        let Some(next) = page["next"].as_str() else { break };
        let next = next.split_once("/v1").context("an unexpected link")?.1.to_owned();
        page = rest.get(&next).await?.expect(200)?;
    }
    ensure!(
        complete == promised.len(),
        "{complete} of {} accepted clusters are complete",
        promised.len()
    );
    let missing = promised
        .iter()
        .filter(|cluster| !deployment.record.is_built(cluster))
        .count();
    ensure!(
        missing == 0,
        "{missing} clusters are complete in the database and were never built"
    );
    Ok(())
}

/// The creations among the operations, by their cluster.
fn creates(operations: &[Value]) -> BTreeMap<String, &Value> {
    operations
        .iter()
        .filter(|one| one["kind"] == "cluster_create")
        .filter_map(|one| Some((one["cluster"].as_str()?.to_owned(), one)))
        .collect()
}

fn is_promised_and_complete(promised: &BTreeSet<String>, cluster: &Value) -> bool {
    cluster["status"] == "CREATE_COMPLETE"
        && cluster["uuid"]
            .as_str()
            .is_some_and(|uuid| promised.contains(uuid))
}

/// A deployment whose conductors do not start more programs than this machine can carry.
pub fn calm(deployment: &mut Deployment) {
    deployment.set("conductor", "operation_workers", 12);
    deployment.set("conductor", "operation_retry_max_attempts", 100);
    deployment.set("api", "accept_wait", 0);
    deployment.set("quotas", "max_clusters_per_project", 10_000);
}

/// One conductor, replaced by a new one each time it is killed.
pub struct Conductors<'a> {
    deployment: &'a Deployment,
    running: Vec<Program>,
    started: usize,
}

impl<'a> Conductors<'a> {
    pub async fn start(deployment: &'a Deployment, count: usize) -> Result<Self> {
        let mut conductors = Self {
            deployment,
            running: Vec::new(),
            started: 0,
        };
        for _ in 0..count {
            conductors.add().await?;
        }
        Ok(conductors)
    }

    /// Starts one more. It need not be ready: its servers may be down in this moment.
    async fn add(&mut self) -> Result<()> {
        self.started += 1;
        self.running.push(
            self.deployment
                .conductor_launch(&format!("conductor-{}", self.started))
                .await?
                .spawn()?,
        );
        Ok(())
    }

    pub async fn kill_one(&mut self) -> Result<()> {
        let victim = rand::rng().random_range(0..self.running.len());
        self.running.swap_remove(victim).kill().await?;
        self.add().await
    }
}

/// Nine times something is killed or restarted, each time when some more of `all` requests were accepted: not when
/// some time has passed.
pub async fn storm(
    accepted: &AtomicUsize,
    all: usize,
    broker: &Rabbitmq,
    server: &Mariadb,
    conductors: &mut Conductors<'_>,
) -> Result<()> {
    for event in 1..=9 {
        let at = event * all / 10;
        wait::until("requests to be accepted", PATIENCE, async || {
            let now = accepted.load(Ordering::Relaxed);
            ensure!(now >= at, "{now} of {at}");
            Ok(())
        })
        .await?;
        match event % 3 {
            0 => broker.restart().await?,
            1 => conductors.kill_one().await?,
            _ => {
                server.kill().await?;
                server.start().await?;
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_requests_survive_kills_and_restarts_of_everything() -> Result<()> {
    const COUNT: usize = 200;
    let broker = Rabbitmq::dedicated().await?;
    let server = Mariadb::dedicated().await?;
    let mut deployment =
        Deployment::on(TestDatabase::on_mariadb(&server).await?, broker.vhost().await?).await?;
    calm(&mut deployment);
    let mut conductors = Conductors::start(&deployment, 2).await?;
    let api = deployment.api().await?;
    let template = wait::until("the template", PATIENCE, async || {
        api.rest.create_template("small").await
    })
    .await?;

    let accepted = AtomicUsize::new(0);
    let weather = async {
        storm(&accepted, COUNT, &broker, &server, &mut conductors).await?;
        broker.kill().await?;
        broker.start().await?;
        conductors.kill_one().await
    };
    let requests = create_clusters(&api.rest, &template, COUNT, &accepted);
    let (promised, ()) = futures::try_join!(requests, weather)?;
    ensure!(promised.len() == COUNT);
    nothing_is_lost(&deployment, &api.rest, &promised).await
}

/// A hundred accepted creations and a driver that takes its time; `event` happens when `begun` of them have reached the
/// driver.
async fn a_hundred(
    deployment: &mut Deployment,
    begun: usize,
    event: impl AsyncFnOnce(&Deployment, Program) -> Result<Program>,
) -> Result<()> {
    a_hundred_of(deployment, "scripted", begun, event).await
}

/// The same with another driver.
async fn a_hundred_of(
    deployment: &mut Deployment,
    driver: &str,
    begun: usize,
    event: impl AsyncFnOnce(&Deployment, Program) -> Result<Program>,
) -> Result<()> {
    calm(deployment);
    deployment.set_driver_delay(Duration::from_millis(200));
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("small", driver).await?;
    let promised = create_clusters(&api.rest, &template, 100, &AtomicUsize::default()).await?;
    wait::until("the driver to be called", PATIENCE, async || {
        let now = deployment
            .record
            .lines()?
            .iter()
            .filter(|line| line.event == "begin")
            .count();
        ensure!(now >= begun, "{now} of {begun}");
        Ok(())
    })
    .await?;
    let _heir = event(deployment, conductor).await?;
    nothing_is_lost(deployment, &api.rest, &promised).await
}

async fn killed(deployment: &Deployment, mut conductor: Program) -> Result<Program> {
    conductor.kill().await?;
    deployment.conductor("two").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_killed_early_loses_nothing() -> Result<()> {
    a_hundred(&mut Deployment::new(Backend::Mariadb).await?, 20, killed).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_killed_late_loses_nothing() -> Result<()> {
    a_hundred(&mut Deployment::new(Backend::Postgres).await?, 75, killed).await
}

/// Killed twice: the second time while the drivers of the first one's operations are called again.
#[tokio::test(flavor = "multi_thread")]
async fn kills_of_conductors_with_a_python_driver_lose_nothing() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    PythonPlugin::in_deployment(&mut deployment, Library::default()).await?;
    deployment.set("conductor", "status_poll_interval", 1);
    a_hundred_of(&mut deployment, DRIVER, 40, async |deployment, conductor| {
        let mut second = killed(deployment, conductor).await?;
        wait::until("more calls of the driver", PATIENCE, async || {
            let calls = deployment.record.lines()?.len();
            ensure!(calls >= 100, "{calls}");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        second.kill().await?;
        deployment.conductor("three").await
    })
    .await?;
    deployment.record.assert_sound()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_restart_loses_nothing() -> Result<()> {
    let broker = Rabbitmq::dedicated().await?;
    let mut deployment = Deployment::on(
        TestDatabase::empty(Backend::Mariadb).await?,
        broker.vhost().await?,
    )
    .await?;
    a_hundred(&mut deployment, 20, async |_, conductor| {
        broker.restart().await?;
        Ok(conductor)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drained_conductor_ends_within_its_deadline_and_loses_nothing() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("conductor", "shutdown_timeout", 10);
    a_hundred(&mut deployment, 20, async |deployment, mut conductor| {
        let status = conductor.terminate(Duration::from_secs(15)).await?;
        ensure!(status.success(), "a drain is no failure: {status}");
        deployment.conductor("two").await
    })
    .await
}
