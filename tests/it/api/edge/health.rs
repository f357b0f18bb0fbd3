//! Health while a database hangs, and who may ask for it.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::Deployment;
use magnum_tests::ports::free_port;
use magnum_tests::{Backend, wait};
use serde_json::Value;
use tokio::time::Instant;

use magnum_tests::api_alone::World;

const PATIENCE: Duration = Duration::from_secs(60);

/// The answer's status and body, and how long it took.
async fn ask(url: &str) -> Result<(u16, Value, Duration)> {
    let began = Instant::now();
    let request = reqwest::Client::new()
        .get(url)
        .header("accept", "application/json");
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    Ok((status, answer.json().await?, began.elapsed()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hanging_database_fails_health_in_time_and_is_probed_once() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let database = ChaosProxy::start(deployment.database.address()?).await?;
    deployment.connect_via(None, Some(database.address()));
    deployment.set("healthcheck", "backends", "disable_by_file,database,messaging");
    deployment.set("healthcheck", "detailed", true);
    let api = deployment.api().await?;
    let url = api.rest.base().replace("/v1", "/healthcheck");
    let (status, body, _) = ask(&url).await?;
    ensure!(
        status == 200 && body["reasons"].as_array().map(Vec::len) == Some(3),
        "{body}"
    );

    database.stall();
    let seen = wait::until("the outage to be told", PATIENCE, async || {
        let (status, body, took) = ask(&url).await?;
        ensure!(took < Duration::from_secs(10), "it took {took:?}");
        ensure!(status == 503, "{body}");
        Ok::<_, anyhow::Error>(body)
    })
    .await?;
    ensure!(seen["reasons"][1]["reason"] == "DATABASE UNAVAILABLE", "{seen}");
    ensure!(
        seen["reasons"][1]["details"]
            .as_str()
            .is_some_and(|text| text.contains("no answer")),
        "{seen}"
    );
    let before = database.accepted();
    let storm = futures::future::join_all((0..100).map(|_| ask(&url))).await;
    for answer in storm {
        let (status, _, took) = answer?;
        ensure!(
            status == 503 && took < Duration::from_secs(10),
            "{status} {took:?}"
        );
    }
    ensure!(
        database.accepted() <= before + 2,
        "{} connections",
        database.accepted() - before
    );

    database.restore();
    wait::until("health to be well again", PATIENCE, async || {
        let (status, body, _) = ask(&url).await?;
        ensure!(status == 200, "{body}");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_broker_fails_health_until_it_is_back() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let broker = ChaosProxy::start(deployment.vhost.address).await?;
    deployment.connect_via(Some(broker.address()), None);
    deployment.set("healthcheck", "backends", "messaging");
    let api = deployment.api().await?;
    let url = api.rest.base().replace("/v1", "/healthcheck");
    let well = async || {
        wait::until("health to be well", PATIENCE, async || {
            let (status, body, _) = ask(&url).await?;
            ensure!(status == 200, "{body}");
            Ok::<_, anyhow::Error>(())
        })
        .await
    };
    well().await?;
    ensure!(broker.accepted() > 0, "nobody asked the broker");
    for hangs in [false, true] {
        if hangs {
            broker.stall();
        } else {
            broker.cut();
        }
        wait::until("the outage to be told", PATIENCE, async || {
            let (status, body, took) = ask(&url).await?;
            ensure!(took < Duration::from_secs(10), "it took {took:?}");
            ensure!(
                status == 503 && body["reasons"][0] == "BROKER UNAVAILABLE",
                "{status} {body}"
            );
            Ok::<_, anyhow::Error>(())
        })
        .await?;
        broker.restore();
        well().await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_file_of_a_port_takes_that_port_out_of_rotation_and_no_other() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let (admin, elsewhere) = (free_port()?, free_port()?);
    let (file, other) = (
        deployment.folder.join("admin"),
        deployment.folder.join("elsewhere"),
    );
    deployment.set("api", "admin_listen", format!("127.0.0.1:{admin}"));
    deployment.set("healthcheck", "backends", "disable_by_files_ports");
    let pairs = format!("{admin}:{},{elsewhere}:{}", file.display(), other.display());
    deployment.set("healthcheck", "disable_by_file_paths", pairs);
    let api = deployment.api().await?;
    let urls = [
        api.rest.base().replace("/v1", "/healthcheck"),
        format!("http://127.0.0.1:{admin}/healthcheck"),
    ];
    for (made, statuses) in [
        (None, [200, 200]),
        (Some(&other), [200, 200]),
        (Some(&file), [200, 503]),
    ] {
        if let Some(made) = made {
            std::fs::write(made, "")?;
        }
        for (url, status) in urls.iter().zip(statuses) {
            let (answered, body, _) = ask(url).await?;
            ensure!(answered == status, "{made:?} {url}: {answered} {body}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_check_is_limited_to_allowed_networks() -> Result<()> {
    let world = World::start(|settings| {
        settings.healthcheck.allowed_source_ranges = vec!["192.0.2.0/24".parse().unwrap()];
    })
    .await?;
    ensure!(reqwest::get(world.url("/healthcheck")).await?.status().as_u16() == 404);
    world.stop().await;
    let world = World::start(|settings| {
        settings.healthcheck.path = "/up/".to_owned();
        settings.healthcheck.ignore_proxied_requests = true;
        settings.healthcheck.allowed_source_ranges = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await?;
    ensure!(reqwest::get(world.url("/up")).await?.status().is_success());
    ensure!(reqwest::get(world.url("/healthcheck")).await?.status().as_u16() == 404);
    ensure!(reqwest::get(world.url("/upper")).await?.status().as_u16() == 404);
    let proxied = reqwest::Client::new()
        .get(world.url("/up"))
        .header("X-Forwarded-For", "192.0.2.1");
    ensure!(proxied.send().await?.status().as_u16() == 404);
    let admin = format!(
        "http://{}/healthcheck",
        world.api.admin_address().context("admin")?
    );
    ensure!(
        reqwest::get(admin).await?.status().is_success(),
        "the admin port has its own path"
    );
    world.stop().await;
    Ok(())
}
