//! Tokens of services beside tokens of users, and application credentials with access rules.

use std::time::Duration;

use anyhow::Result;
use magnum_tests::wait;
use serde_json::{Value, json};

use super::world::{Cloud, World};

async fn status(world: &World, user: &str, service: &str) -> u16 {
    let headers = [("x-auth-token", user), ("x-service-token", service)];
    world
        .ask("GET", "/v1/clusters", &headers, Value::Null)
        .await
        .status
}

/// A token that ends within seconds.
async fn short(cloud: &Cloud, roles: &[&str]) -> Result<String> {
    let anna = cloud.people.person(roles).await?;
    cloud.people.short_token(&anna).await
}

async fn ended(world: &World, token: &str) -> Result<()> {
    wait::until(
        "the token to expire",
        Duration::from_secs(60),
        async || match world.status(token).await {
            401 => Ok(()),
            other => Err(other),
        },
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_services_token_an_expired_one_of_a_user_is_accepted() -> Result<()> {
    let cloud = Cloud::start().await?;
    let world = World::start(cloud.settings()).await?;
    let service = cloud.people.person(&["service"]).await?;
    let service = cloud.people.token(&service).await?;
    let nova = cloud.people.person(&["admin"]).await?;
    let without_role = cloud.people.token(&nova).await?;
    let user = short(&cloud, &["reader"]).await?;
    let seen = short(&cloud, &["reader"]).await?;
    assert_eq!(world.status(&seen).await, 200);
    ended(&world, &user).await?;
    ended(&world, &seen).await?;
    for user in [&user, &seen] {
        assert_eq!(world.status(user).await, 401);
        assert_eq!(status(&world, user, &service).await, 200);
        assert_eq!(status(&world, user, &without_role).await, 401);
        assert_eq!(status(&world, user, "nonsense").await, 401);
        assert_eq!(
            world.status(user).await,
            401,
            "it is not valid by itself because of that"
        );
    }
    assert_eq!(status(&world, "nonsense", &service).await, 401);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn service_token_without_the_role_is_refused_unless_the_option_allows_it() -> Result<()> {
    let cloud = Cloud::start().await?;
    let strict = World::start(cloud.settings()).await?;
    let mut settings = cloud.settings();
    settings.keystone_authtoken.service_token_roles_required = false;
    let lenient = World::start(settings).await?;
    let anna = cloud.people.person(&["reader"]).await?;
    let user = cloud.people.token(&anna).await?;
    assert_eq!(strict.status(&user).await, 200);
    assert_eq!(status(&strict, &user, &user).await, 401);
    assert_eq!(status(&lenient, &user, &user).await, 200);
    let expired = short(&cloud, &["reader"]).await?;
    ended(&lenient, &expired).await?;
    assert_eq!(
        status(&lenient, &expired, &user).await,
        401,
        "only the role lets an expired token pass"
    );
    strict.stop().await;
    lenient.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn application_credential_is_limited_by_its_access_rules() -> Result<()> {
    let cloud = Cloud::start().await?;
    cloud.people.service("container-infra", "magnum").await?;
    let mut settings = cloud.settings();
    settings.keystone_authtoken.service_type = Some("container-infra".to_owned());
    let world = World::start(settings).await?;
    let unnamed = World::start(cloud.settings()).await?;
    let anna = cloud.people.person(&["reader", "member"]).await?;
    let rules = json!({"access_rules": [
        {"service": "container-infra", "method": "GET", "path": "/v1/clusters"},
        {"service": "container-infra", "method": "GET", "path": "/v1/clusters/*"},
        {"service": "compute", "method": "GET", "path": "/v1/**"},
    ]});
    let token = cloud.people.token_of_application(&anna, rules).await?;
    for (path, expected) in [
        ("/v1/clusters", 200),
        ("/v1/clusters/", 200),
        ("/clusters", 200),
        ("/v1/clusters/x", 404),
        ("/v1/clusters/x/nodegroups", 401),
        ("/v1/clustertemplates", 401),
    ] {
        assert_eq!(world.get(path, &token).await.status, expected, "{path}");
    }
    let delete = world
        .ask(
            "DELETE",
            "/v1/clusters/x",
            &[("x-auth-token", &token)],
            Value::Null,
        )
        .await;
    assert_eq!(delete.status, 401);
    assert_eq!(
        unnamed.status(&token).await,
        401,
        "without service_type the rules cannot be checked"
    );
    // Without rules it may do what its user may.
    let free = cloud.people.token_of_application(&anna, json!({})).await?;
    assert_eq!(world.get("/v1/clustertemplates", &free).await.status, 200);
    assert_eq!(unnamed.status(&free).await, 200);
    world.stop().await;
    unnamed.stop().await;
    Ok(())
}
