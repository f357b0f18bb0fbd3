//! The real memcached, shared by API processes.

use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_common::secret::Secret;
use magnum_config::{CacheProtection, Settings};
use magnum_tests::memcached::Memcached;
use magnum_tests::wait;

use super::world::{Cloud, World};

fn with(mut settings: Settings, server: &Memcached, secret: &str) -> Settings {
    let section = &mut settings.keystone_authtoken;
    section.memcached_servers = vec![server.address().to_string()];
    section.memcache_security_strategy = CacheProtection::Encrypt;
    section.memcache_secret_key = Some(Secret::new(secret));
    section.memcache_pool_dead_retry = Duration::from_secs(1);
    settings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validated_token_is_shared_between_processes() -> Result<()> {
    let cloud = Cloud::start().await?;
    let server = Memcached::start().await?;
    let settings = with(cloud.settings(), &server, "secret of both");
    let (one, two) = (
        World::start(settings.clone()).await?,
        World::start(settings).await?,
    );
    let stranger = World::start(with(cloud.settings(), &server, "another")).await?;
    let anna = cloud.people.person(&["reader"]).await?;
    let token = cloud.people.token(&anna).await?;
    assert_eq!(one.status(&token).await, 200);
    assert_eq!(two.status(&token).await, 200);
    assert_eq!(cloud.validations(), 1, "the second process knew");
    assert_eq!(stranger.status(&token).await, 200);
    assert_eq!(cloud.validations(), 2, "another secret opens nothing");

    let keys = server.keys().await?;
    assert_eq!(keys.len(), 2, "{keys:?}");
    for key in keys {
        assert!(!key.contains(&token));
        let kept = server.value(&key).await?;
        for text in [token.as_str(), &anna.name, &anna.project_id, "\"catalog\""] {
            let is_there = kept.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!is_there, "{text} is readable in memcached");
        }
    }
    for world in [one, two, stranger] {
        world.stop().await;
    }
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_does_not_outlive_the_cache_time_by_changing_hands() -> Result<()> {
    let cloud = Cloud::start().await?;
    let server = Memcached::start().await?;
    let mut settings = with(cloud.settings(), &server, "secret");
    settings.keystone_authtoken.token_cache_time = 3;
    let (one, two) = (
        World::start(settings.clone()).await?,
        World::start(settings).await?,
    );
    let anna = cloud.people.person(&["reader"]).await?;
    let token = cloud.people.token(&anna).await?;
    assert_eq!(one.status(&token).await, 200);
    cloud.people.revoke(&token).await?;
    let revoked = tokio::time::Instant::now();
    let mut asked = 0;
    wait::until("both to refuse it", Duration::from_secs(20), async || {
        asked += 1;
        match (one.status(&token).await, two.status(&token).await) {
            (401, 401) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    assert!(asked > 1, "it was remembered for a while");
    // Were the second one's time counted from when it found the entry, it would be up to twice as long.
    assert!(
        revoked.elapsed() < Duration::from_millis(4500),
        "{:?}",
        revoked.elapsed()
    );
    one.stop().await;
    two.stop().await;
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_memcached_that_goes_away_and_comes_back_harms_nobody() -> Result<()> {
    let cloud = Cloud::start().await?;
    let server = Memcached::start().await?;
    let address = server.address();
    let world = World::start(with(cloud.settings(), &server, "secret")).await?;
    let anna = cloud.people.person(&["reader"]).await?;
    assert_eq!(world.status(&cloud.people.token(&anna).await?).await, 200);
    server.stop().await?;
    let token = cloud.people.token_for(&anna, serde_json::Value::Null).await?;
    assert_eq!(world.status(&token).await, 403, "let in");
    let server = Memcached::on(address.port()).await?;
    wait::until(
        "memcached to be used again",
        Duration::from_secs(30),
        async || {
            let token = cloud
                .people
                .token(&anna)
                .await
                .map_err(|error| error.to_string())?;
            assert_eq!(world.status(&token).await, 200);
            match server.keys().await {
                Ok(keys) if !keys.is_empty() => Ok(()),
                other => Err(format!("{other:?}")),
            }
        },
    )
    .await?;
    world.stop().await;
    server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_cache_entries_are_ignored() -> Result<()> {
    let cloud = Cloud::start().await?;
    let server = Memcached::start().await?;
    let settings = with(cloud.settings(), &server, "secret");
    let one = World::start(settings.clone()).await?;
    let people = &cloud.people;
    let (rita, chief) = (
        people.person(&["reader"]).await?,
        people.person(&["admin"]).await?,
    );
    let (reader, admin) = (people.token(&rita).await?, people.token(&chief).await?);
    assert_eq!(one.get("/v1/mservices", &reader).await.status, 403);
    let of_reader = server.keys().await?.pop().context("a key")?;
    assert_eq!(one.get("/v1/mservices", &admin).await.status, 200);
    let of_admin = server
        .keys()
        .await?
        .into_iter()
        .find(|key| *key != of_reader)
        .context("a key")?;
    // Who reaches memcached puts the administrator's entry in the place of the reader's.
    server.copy(&of_admin, &of_reader).await?;
    let two = World::start(settings).await?;
    assert_eq!(two.get("/v1/mservices", &reader).await.status, 403);
    assert_eq!(cloud.validations(), 3, "it was not read, so Keystone was asked");
    one.stop().await;
    two.stop().await;
    server.stop().await
}
