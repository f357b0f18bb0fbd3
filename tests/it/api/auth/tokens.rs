//! Whose token lets in, and as whom.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_tests::wait;
use reqwest::Method;
use serde_json::{Value, json};

use super::world::{Answer, Cloud, World};

const REFUSED: &str = "The request you have made requires authentication.";

fn assert_refused(answer: &Answer) {
    assert_eq!(answer.status, 401, "{}", answer.body);
    assert_eq!(
        answer.body,
        json!({"error": {"code": 401, "title": "Unauthorized", "message": REFUSED}})
    );
    let header = |name: &str| answer.headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(
        header("www-authenticate"),
        Some("Keystone uri=\"http://keystone.example:5000\"")
    );
    assert!(header("x-openstack-request-id").is_some_and(|id| id.starts_with("req-")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lets_in_whoever_it_stands_for_and_nothing_else_does() -> Result<()> {
    let cloud = Cloud::start().await?;
    let world = World::start(cloud.settings()).await?;
    let anna = cloud.people.person(&["member", "reader"]).await?;
    let token = cloud.people.token(&anna).await?;
    assert_eq!(world.status(&token).await, 200);
    assert_eq!(
        world.status(&format!(" {token} ")).await,
        200,
        "blanks around a token are not part of it"
    );
    for path in ["/v1/clusters", "/v1/no-such-route", "/v1/clusters/x", "/v2"] {
        assert_refused(&world.ask("GET", path, &[], Value::Null).await);
    }
    for token in ["", "nonsense", "gAAAAABnonsense", "tok\u{e9}"] {
        assert_refused(&world.get("/v1/clusters", token).await);
    }
    assert_refused(&world.ask("PUT", "/v1/clusters", &[], Value::Null).await);
    // Answered without a body to the end of the connection, which the next request on it would notice.
    assert_eq!(
        world.ask("HEAD", "/v1/clusters", &[], Value::Null).await.status,
        401
    );
    assert_eq!(world.get("/v1/no-such-route", &token).await.status, 404);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn identity_headers_of_a_client_are_ignored() -> Result<()> {
    let cloud = Cloud::start().await?;
    let world = World::start(cloud.settings()).await?;
    let claim = [
        ("x-roles", "admin,member,reader"),
        ("x-user-id", "u"),
        ("x-project-id", "p"),
        ("x-identity-status", "Confirmed"),
        ("x-is-admin-project", "True"),
    ];
    assert_refused(&world.ask("GET", "/v1/mservices", &claim, Value::Null).await);
    let rita = cloud.people.person(&["reader"]).await?;
    let token = cloud.people.token(&rita).await?;
    let mut with_token = claim.to_vec();
    with_token.push(("x-auth-token", &token));
    assert_eq!(
        world
            .ask("GET", "/v1/mservices", &with_token, Value::Null)
            .await
            .status,
        403
    );
    let body = json!({"name": "t", "image_id": "i", "coe": "kubernetes", "external_network_id": "public"});
    let answer = world.ask("POST", "/v1/clustertemplates", &with_token, body).await;
    assert_eq!(answer.status, 403, "{}", answer.body);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn public_places_do_not_look_at_a_token() -> Result<()> {
    let cloud = Cloud::start().await?;
    let world = World::start(cloud.settings()).await?;
    for path in ["/", "/v1", "/v1/", "/healthcheck"] {
        assert_eq!(world.get(path, "nonsense").await.status, 200, "{path}");
    }
    for path in ["/v1.json", "/.json"] {
        assert_eq!(world.get(path, "nonsense").await.status, 404, "{path}");
    }
    assert_eq!(cloud.validations(), 0);
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_without_a_project_are_accepted_and_limited_by_their_roles() -> Result<()> {
    let cloud = Cloud::start().await?;
    let world = World::start(cloud.settings()).await?;
    let rita = cloud.people.person(&["reader"]).await?;
    let unscoped = cloud.people.token_for(&rita, Value::Null).await?;
    cloud.people.grant(&rita, "domains/default", "member").await?;
    let domain = cloud
        .people
        .token_for(&rita, json!({"domain": {"id": "default"}}))
        .await?;
    cloud.people.grant(&rita, "system", "reader").await?;
    let system = cloud
        .people
        .token_for(&rita, json!({"system": {"all": true}}))
        .await?;
    for token in [&unscoped, &domain, &system] {
        assert_eq!(world.get("/v1/clusters", token).await.status, 403);
        assert_eq!(world.get("/v1/mservices", token).await.status, 403);
        assert_eq!(world.get("/v1/clusters/x", token).await.status, 404);
    }
    // An administrator sees everything, but owns nothing without a project.
    let chief = cloud.people.person(&[]).await?;
    cloud.people.grant(&chief, "system", "admin").await?;
    let system = cloud
        .people
        .token_for(&chief, json!({"system": {"all": true}}))
        .await?;
    assert_eq!(world.get("/v1/clusters", &system).await.status, 200);
    assert_eq!(world.get("/v1/mservices", &system).await.status, 200);
    let body = json!({"name": "t", "image_id": "i", "coe": "kubernetes", "external_network_id": "public"});
    for (path, body) in [
        ("/v1/clustertemplates", body),
        ("/v1/clusters", json!({"name": "c", "cluster_template_id": "t"})),
    ] {
        let answer = world.ask("POST", path, &[("x-auth-token", &system)], body).await;
        assert_eq!(answer.status, 403, "{path} {}", answer.body);
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_ends_when_it_expires_remembered_or_not() -> Result<()> {
    let cloud = Cloud::start().await?;
    let world = World::start(cloud.settings()).await?;
    let anna = cloud.people.person(&["reader", "member"]).await?;
    let token = cloud.people.short_token(&anna).await?;
    assert_eq!(world.status(&token).await, 200);
    wait::until(
        "the token to expire",
        Duration::from_secs(20),
        async || match world.status(&token).await {
            401 => Ok(()),
            other => Err(other),
        },
    )
    .await?;
    // Once when it was new, and perhaps once more when it was no longer known.
    assert!(cloud.validations() <= 2, "{}", cloud.validations());
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revoked_tokens_and_those_of_disabled_users_and_projects_do_not_let_in() -> Result<()> {
    let cloud = Cloud::start().await?;
    let mut settings = cloud.settings();
    // Every request asks.
    settings.keystone_authtoken.token_cache_time = -1;
    let world = World::start(settings).await?;
    let disable = |kind: &'static str, id: String| {
        let people = cloud.people.clone();
        async move {
            let path = format!("/{kind}s/{id}");
            people
                .administrate(Method::PATCH, &path, json!({kind: {"enabled": false}}))
                .await
        }
    };
    for which in ["revoked", "user", "project"] {
        let anna = cloud.people.person(&["reader"]).await?;
        let token = cloud.people.token(&anna).await?;
        assert_eq!(world.status(&token).await, 200, "{which}");
        match which {
            "user" => drop(disable("user", anna.id).await?),
            "project" => drop(disable("project", anna.project_id).await?),
            _ => cloud.people.revoke(&token).await?,
        }
        assert_refused(&world.get("/v1/clusters", &token).await);
    }
    world.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conductor_gets_the_caller_with_the_token_document() -> Result<()> {
    let cloud = Cloud::start().await?;
    let mut world = World::start(cloud.settings()).await?;
    let anna = cloud.people.person(&["member", "reader"]).await?;
    let token = cloud.people.token(&anna).await?;
    world
        .sql(format!(
            "insert into cluster (uuid, name, project_id, user_id, status, cluster_template_id) values \
             ('00000000-0000-4000-8000-0000000000c1', 'c', '{}', '{}', 'CREATE_COMPLETE', 't')",
            anna.project_id, anna.id
        ))
        .await?;
    let claim = [("x-auth-token", token.as_str()), ("x-user-name", "root")];
    let answer = world.ask("DELETE", "/v1/clusters/c", &claim, Value::Null).await;
    assert_eq!(answer.status, 204, "{}", answer.body);
    let request = world.asked.recv().await.context("a request")?;
    let told = |key: &str| request.context.get(key).map(Cow::into_owned).unwrap_or_default();
    assert_eq!(told("user_id"), anna.id.as_str());
    assert_eq!(told("user_name"), anna.name.as_str());
    assert_eq!(told("project_id"), anna.project_id.as_str());
    assert_eq!(told("project_name"), anna.project.as_str());
    assert_eq!(told("user_domain_id"), "default");
    assert_eq!(told("user_domain_name"), "Default");
    // Keystone lists them in the order of their random ids.
    let mut roles: Vec<String> = serde_json::from_value(told("roles"))?;
    roles.sort_unstable();
    assert_eq!(roles, ["member", "reader"]);
    assert_eq!(told("is_admin"), false);
    assert_eq!(told("auth_token"), token.as_str());
    assert_eq!(told("auth_url"), "http://keystone.example:5000");
    let document = &told("auth_token_info")["token"];
    assert_eq!(document["project"]["domain"]["name"], "Default");
    let catalog = document["catalog"].as_array().context("a catalog")?;
    assert!(
        catalog.iter().any(|service| service["type"] == "identity"),
        "{document}"
    );
    world.stop().await;
    Ok(())
}
