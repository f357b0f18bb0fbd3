//! Three MariaDB nodes that replicate with Galera, any of which may be killed or paused while requests go on: with one
//! writer behind HAProxy, and with several, each program at a node of its own. Nothing that was confirmed is lost, nothing is
//! done twice. With several writers a quota holds, and what one API has confirmed is seen at another one.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use magnum_tests::client_stream::{self, ClientStream};
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::galera::Galera;
use magnum_tests::galera_front::GaleraFront;
use magnum_tests::process::Program;
use magnum_tests::{TestDatabase, rabbitmq};
use serde_json::json;

const CLIENTS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn the_one_writer_may_be_killed_and_paused() -> Result<()> {
    let cluster = Arc::new(Galera::start().await?);
    let front = GaleraFront::start(&cluster).await?;
    let database = TestDatabase::on_galera(front.address()).await?;
    let mut deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
    client_stream::prepare(&mut deployment);
    let _conductors = [
        deployment.conductor("one").await?,
        deployment.conductor("two").await?,
    ];
    let api = deployment.api().await?;
    let stream = ClientStream::default();
    let round = async || {
        stream.goes_on(10).await?;
        let writer = cluster.behind(front.address()).await?;
        cluster.kill(writer).await?;
        stream.goes_on(12).await?;
        cluster.restart(writer).await?;

        let writer = cluster.behind(front.address()).await?;
        cluster.pause(writer).await?;
        stream.goes_on(12).await?;
        cluster.resume(writer).await?;
        cluster.wait_healthy().await?;
        Ok(())
    };
    let rounds = stream
        .during(std::slice::from_ref(&api.rest), CLIENTS, round)
        .await?;
    let summary = stream.verdict(&deployment, &deployment.database).await?;
    eprintln!("{} writers killed or paused: {summary:?}", 2 * rounds);
    Ok(())
}

/// A program for each of the first nodes, which reaches the database there.
struct Scene {
    cluster: Galera,
    deployment: Deployment,
    conductors: Vec<Program>,
    apis: Vec<Api>,
}

impl Scene {
    async fn set(conductors: usize, apis: usize, options: &[(&str, &str, usize)]) -> Result<Self> {
        let cluster = Galera::start().await?;
        let database = TestDatabase::on_galera(cluster.address(0)).await?;
        let mut deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
        cluster.catch_up().await?;
        client_stream::prepare(&mut deployment);
        // What another node has committed is there when it is read here.
        deployment.set("database", "mysql_wsrep_sync_wait", 1);
        for (section, option, value) in options {
            deployment.set(section, option, value);
        }
        let mut scene = Self {
            cluster,
            deployment,
            conductors: Vec::new(),
            apis: Vec::new(),
        };
        for number in 0..conductors {
            let url = scene.deployment.database.url_via(scene.cluster.address(number));
            let name = format!("conductor-{number}");
            let launch = scene
                .deployment
                .conductor_launch_with(&name, |config| config.set("database", "connection", url));
            scene.conductors.push(launch.await?.start().await?);
        }
        for number in 0..apis {
            let address = scene.cluster.address(number);
            scene.deployment.connect_via(None, Some(address));
            scene.apis.push(scene.deployment.api().await?);
        }
        Ok(scene)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_of_several_writers_may_be_killed_and_paused() -> Result<()> {
    let scene = Scene::set(3, 3, &[]).await?;
    let (cluster, stream) = (&scene.cluster, ClientStream::default());
    let mut paused = 0;
    let round = async || {
        for node in 0..cluster.size() {
            stream.goes_on(6).await?;
            cluster.kill(node).await?;
            stream.goes_on(8).await?;
            cluster.restart(node).await?;
        }
        cluster.pause(paused % cluster.size()).await?;
        stream.goes_on(8).await?;
        cluster.resume(paused % cluster.size()).await?;
        paused += 1;
        cluster.wait_healthy().await
    };
    let apis: Vec<_> = scene.apis.iter().map(|api| api.rest.clone()).collect();
    let rounds = stream.during(&apis, CLIENTS, round).await?;
    let summary = stream
        .verdict(&scene.deployment, &scene.deployment.database)
        .await?;
    eprintln!(
        "{} nodes killed, {rounds} paused: {summary:?}",
        cluster.size() * rounds
    );
    ensure!(scene.conductors.len() == 3);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quota_holds_at_several_writers_and_what_is_confirmed_is_seen_everywhere() -> Result<()> {
    const LIMIT: usize = 3;
    const ROUNDS: usize = 8;
    const REQUESTS: usize = 16;
    let scene = Scene::set(1, 2, &[("quotas", "max_clusters_per_project", LIMIT)]).await?;
    for round in 0..ROUNDS {
        let project = format!("project-{round}");
        let rests = [0, 1].map(|number| scene.apis[number].rest.as_somebody(&project, "somebody"));
        let template = rests[0].create_template("small").await?;
        let asking = (0..REQUESTS).map(async |number| {
            let [here, there] = [0, 1].map(|further| &rests[(number + further) % 2]);
            let answer = here
                .ask_for_cluster(&template, &format!("c{number}"), json!({}))
                .await?;
            if answer.status.as_u16() != 202 {
                ensure!(
                    answer.status.as_u16() == 403 || answer.status.is_server_error(),
                    "{answer:?}"
                );
                return Ok(0_usize);
            }
            let cluster = answer.body["uuid"].as_str().context("a uuid")?;
            let seen = there.status(cluster).await?;
            ensure!(
                seen.is_some(),
                "the other API does not know {cluster}, which was confirmed"
            );
            Ok(1)
        });
        let promised: usize = try_join_all(asking).await?.into_iter().sum();
        ensure!(
            promised <= LIMIT,
            "round {round}: {promised} clusters, and {LIMIT} are allowed"
        );
        ensure!(promised > 0, "round {round}: nobody got a place");
    }
    scene
        .deployment
        .settled(std::time::Duration::from_secs(60))
        .await
        .map(drop)
}
