//! Keystone goes away, hangs and comes back, under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::keystone_people::People;
use magnum_tests::openstack::OpenStack;
use magnum_tests::wait;
use serde_json::{Value, json};

use super::world::{World, settings};

const WITHIN: Duration = Duration::from_secs(60);

struct Lost {
    people: People,
    line: ChaosProxy,
    world: Arc<World>,
    /// Known to the API before anything happens.
    known: String,
    /// Not known to it.
    fresh: Vec<String>,
}

impl Lost {
    async fn start() -> Result<Self> {
        let keystone = OpenStack::shared().await?;
        let line = ChaosProxy::start(keystone.keystone_address()).await?;
        let url = format!("http://{}/v3", line.address());
        let region = keystone.region_of("identity", "internal", &url).await?;
        let mut settings = settings(line.address(), &region);
        settings.keystone_authtoken.http_connect_timeout = Some(Duration::from_secs(5));
        settings.keystone_authtoken.http_request_max_retries = 1;
        let people = People::of(keystone).await?;
        let world = Arc::new(World::start(settings).await?);
        let anna = people.person(&["reader"]).await?;
        let known = people.token(&anna).await?;
        anyhow::ensure!(world.status(&known).await == 200);
        let mut fresh = Vec::new();
        for _ in 0..2 {
            let anna = people.person(&["reader"]).await?;
            fresh.push(people.token(&anna).await?);
        }
        Ok(Self {
            people,
            line,
            world,
            known,
            fresh,
        })
    }

    async fn meanwhile(&self) {
        for token in &self.fresh {
            let started = Instant::now();
            let answer = self.world.get("/v1/clusters", token).await;
            assert_eq!(answer.status, 503);
            assert_eq!(
                answer.body,
                json!({"error": {"code": 503, "title": "Service Unavailable",
                    "message": "The Keystone service is temporarily unavailable."}})
            );
            assert!(answer.headers.contains_key("x-openstack-request-id"));
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "{:?}",
                started.elapsed()
            );
            assert_eq!(
                self.world.status(&self.known).await,
                200,
                "a remembered token goes on"
            );
        }
        assert_eq!(self.world.get("/v1", "").await.status, 200);
    }

    /// The first question may find a connection that the outage has spoilt, on a busy machine also a second one.
    async fn afterwards(&self) -> Result<()> {
        for token in &self.fresh {
            wait::until("the token to be validated", WITHIN, async || {
                match self.world.status(token).await {
                    200 => Ok(()),
                    other => Err(other),
                }
            })
            .await?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_keystone_is_away_new_tokens_get_a_503_and_known_ones_go_on() -> Result<()> {
    let lost = Lost::start().await?;
    lost.line.cut();
    lost.meanwhile().await;
    lost.line.restore();
    for token in &lost.fresh {
        assert_eq!(
            lost.world.status(token).await,
            200,
            "nothing of the outage is remembered"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keystone_that_hangs_is_not_waited_for_long() -> Result<()> {
    let lost = Lost::start().await?;
    lost.line.stall();
    lost.meanwhile().await;
    lost.line.restore();
    lost.afterwards().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_load_an_outage_is_503s_and_then_over() -> Result<()> {
    let lost = Lost::start().await?;
    let stop = Arc::new(AtomicBool::new(false));
    let load = |token: String, expected: &'static [u16]| {
        let (world, stop) = (Arc::clone(&lost.world), Arc::clone(&stop));
        tokio::spawn(async move {
            let mut seen = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let status = world.status(&token).await;
                assert!(expected.contains(&status), "{status}");
                seen.push(status);
            }
            seen
        })
    };
    let steady = [load(lost.known.clone(), &[200]), load(lost.known.clone(), &[200])];
    let unknown: Vec<_> = lost
        .fresh
        .iter()
        .map(|token| load(token.clone(), &[200, 503]))
        .collect();
    let invalid = load("nonsense".to_owned(), &[401, 503]);
    for _ in 0..2 {
        lost.line.cut();
        let anna = lost.people.person(&["reader"]).await?;
        let token = lost.people.token(&anna).await?;
        assert_eq!(lost.world.status(&token).await, 503);
        lost.line.restore();
        wait::until("Keystone to be asked again", WITHIN, async || {
            match lost.world.status(&token).await {
                200 => Ok(()),
                other => Err(other),
            }
        })
        .await?;
    }
    lost.afterwards().await?;
    stop.store(true, Ordering::Relaxed);
    for one in steady {
        assert!(one.await?.len() > 10);
    }
    for one in unknown {
        assert_eq!(one.await?.last(), Some(&200));
    }
    assert!(invalid.await?.contains(&401));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_user_that_keystone_refuses_is_our_fault_and_not_the_clients() -> Result<()> {
    let keystone = OpenStack::shared().await?;
    let url = keystone.keystone_url();
    let region = keystone.region_of("identity", "internal", &url).await?;
    let people = People::of(keystone).await?;
    let anna = people.person(&["reader"]).await?;
    let token = people.token(&anna).await?;
    let mut settings = settings(keystone.keystone_address(), &region);
    settings.keystone_authtoken.password = Some(magnum_common::secret::Secret::new("wrong"));
    let world = World::start(settings.clone()).await?;
    assert_eq!(world.status(&token).await, 503);
    world.stop().await;
    settings.keystone_authtoken.password = Some(magnum_common::secret::Secret::new(
        magnum_tests::openstack::PASSWORD,
    ));
    settings.keystone_authtoken.interface = "nowhere".to_owned();
    let world = World::start(settings).await?;
    let answer = world
        .ask("GET", "/v1/clusters", &[("x-auth-token", &token)], Value::Null)
        .await;
    assert_eq!(answer.status, 503);
    world.stop().await;
    Ok(())
}
