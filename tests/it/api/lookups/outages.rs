//! Services that go away and come back while requests come in.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::cloud_services::{CloudServices, Service};
use magnum_tests::rest::Rest;
use magnum_tests::wait;
use serde_json::json;

use super::world::{World, settings, via};

const LIMIT: Duration = Duration::from_secs(10);
const CLIENTS: usize = 4;

/// Posts templates until told to stop; how many were made and how many refused. Every refusal has to be a 503 that names
/// the service and nothing else.
async fn post_until(world: &World, client: &Rest, name: &str, stop: &AtomicBool) -> Result<(usize, usize)> {
    let (mut made, mut refused) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = client
            .post("/clustertemplates", &world.template(json!({})))
            .await?;
        if answer.status.as_u16() == 201 {
            made += 1;
            continue;
        }
        refused += 1;
        ensure!(answer.status.as_u16() == 503, "{answer:?}");
        ensure!(
            answer.detail().starts_with(&format!("{name} is not available")),
            "{answer:?}"
        );
        ensure!(!answer.detail().contains("127.0.0.1"), "{answer:?}");
        ensure!(
            began.elapsed() < LIMIT + Duration::from_secs(20),
            "{:?}",
            began.elapsed()
        );
    }
    Ok((made, refused))
}

async fn goes_and_comes_back(service: Service, name: &str) -> Result<()> {
    let cloud = CloudServices::shared().await?;
    let mut settings = settings(cloud);
    settings.api.lookup_timeout = LIMIT;
    let line = ChaosProxy::start(cloud.address(service)).await?;
    via(cloud, &mut settings, service, line.address()).await?;
    let world = World::with(cloud, settings).await?;
    let client = world.client(&world.member).await?;
    let stop = AtomicBool::new(false);

    let asking = try_join_all((0..CLIENTS).map(|_| post_until(&world, &client, name, &stop)));
    let acting = async {
        let works = async |what: &str, status: u16| {
            wait::until(what, Duration::from_secs(60), async || {
                let answer = client
                    .post("/clustertemplates", &world.template(json!({})))
                    .await?;
                ensure!(answer.status.as_u16() == status, "{answer:?}");
                Ok(())
            })
            .await
        };
        let outcome = async {
            works("the service to be there", 201).await?;
            line.cut();
            works("the service to be missed", 503).await?;
            line.restore();
            works("the service to be found again", 201).await?;
            line.stall();
            works("the silent service to be missed", 503).await?;
            line.restore();
            works("the service to be found once more", 201).await
        }
        .await;
        stop.store(true, Ordering::Relaxed);
        outcome
    };
    let (asked, acted) = tokio::join!(asking, acting);
    acted?;
    let asked = asked?;
    let (made, refused) = asked
        .iter()
        .fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    ensure!(made > 0 && refused > 0, "{asked:?}");
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn glance_goes_away_and_comes_back() -> Result<()> {
    goes_and_comes_back(Service::Glance, "Glance").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nova_goes_away_and_comes_back() -> Result<()> {
    goes_and_comes_back(Service::Nova, "Nova").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neutron_goes_away_and_comes_back() -> Result<()> {
    goes_and_comes_back(Service::Neutron, "Neutron").await
}
