//! Keystone is asked as often as needed and no more.

use std::time::Duration;

use anyhow::Result;
use futures::future::join_all;
use magnum_tests::openstack::PASSWORD;
use magnum_tests::wait;
use reqwest::Method;
use serde_json::{Value, json};

use super::world::{Cloud, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_validated_once_however_many_requests_it_makes() -> Result<()> {
    let cloud = Cloud::start().await?;
    let world = World::start(cloud.settings()).await?;
    let anna = cloud.people.person(&["reader"]).await?;
    let token = cloud.people.token(&anna).await?;
    let at_once = join_all((0..50).map(|_| world.status(&token))).await;
    assert_eq!(at_once, [200; 50]);
    for _ in 0..50 {
        assert_eq!(world.status(&token).await, 200);
    }
    assert_eq!((cloud.validations(), cloud.log_ins()), (1, 1));
    let other = cloud.people.token_for(&anna, Value::Null).await?;
    assert_eq!(world.status(&other).await, 403);
    assert_eq!(
        (cloud.validations(), cloud.log_ins()),
        (2, 1),
        "another token is another question"
    );
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_invalid_token_in_a_loop_does_not_reach_keystone_each_time() -> Result<()> {
    let cloud = Cloud::start().await?;
    let world = World::start(cloud.settings()).await?;
    let at_once = join_all((0..50).map(|_| world.status("nonsense"))).await;
    assert_eq!(at_once, [401; 50]);
    assert_eq!(cloud.validations(), 1);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_caching_every_request_asks() -> Result<()> {
    let cloud = Cloud::start().await?;
    let mut settings = cloud.settings();
    settings.keystone_authtoken.token_cache_time = -1;
    let world = World::start(settings).await?;
    let anna = cloud.people.person(&["reader"]).await?;
    let token = cloud.people.token(&anna).await?;
    for _ in 0..3 {
        assert_eq!(world.status(&token).await, 200);
        assert_eq!(world.status("nonsense").await, 401);
    }
    assert_eq!(cloud.validations(), 6);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_token_is_refused_when_its_cache_time_has_passed() -> Result<()> {
    let cloud = Cloud::start().await?;
    let mut settings = cloud.settings();
    settings.keystone_authtoken.token_cache_time = 2;
    let world = World::start(settings).await?;
    let anna = cloud.people.person(&["reader"]).await?;
    let token = cloud.people.token(&anna).await?;
    assert_eq!(world.status(&token).await, 200);
    cloud.people.revoke(&token).await?;
    wait::until(
        "the entry to end",
        Duration::from_secs(20),
        async || match world.status(&token).await {
            401 => Ok(()),
            other => Err(other),
        },
    )
    .await?;
    assert_eq!(cloud.validations(), 2);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_token_that_was_revoked_is_renewed_and_nobody_notices() -> Result<()> {
    let cloud = Cloud::start().await?;
    let service = cloud.people.person(&["admin", "service"]).await?;
    let mut settings = cloud.settings();
    settings.keystone_authtoken.username = Some(service.name.clone());
    settings.keystone_authtoken.project_name = Some(service.project.clone());
    let world = World::start(settings).await?;
    let anna = cloud.people.person(&["reader"]).await?;
    assert_eq!(world.status(&cloud.people.token(&anna).await?).await, 200);
    // A new password takes back every token that was made until now, to the second.
    let same = json!({"user": {"password": PASSWORD}});
    let path = format!("/users/{}", service.id);
    cloud.people.administrate(Method::PATCH, &path, same).await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let token = cloud.people.token_for(&anna, Value::Null).await?;
    assert_eq!(world.status(&token).await, 403, "let in");
    assert_eq!(cloud.log_ins(), 2);
    world.stop().await;
    Ok(())
}
