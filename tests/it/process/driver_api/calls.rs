//! Who may call what, and what comes back.

use anyhow::{Result, ensure};
use magnum_tests::{Backend, wait};
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::json;

use super::world::{PATIENCE, World};

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_route_replies_to_its_project_and_to_nobody_else() -> Result<()> {
    let world = World::start(Backend::Mariadb, |_| {}).await?;
    let cluster = world.cluster("c", json!({})).await?;

    let usage = world
        .ask(Method::GET, &cluster, "disk/usage?unit=KiB", None)
        .await?
        .expect(200)?;
    ensure!(usage["unit"] == "KiB" && usage["notes"].is_null(), "{usage}");
    ensure!(
        usage["nodes"].as_object().is_some_and(|nodes| nodes.len() == 2),
        "{usage}"
    );

    // The name does as well as the uuid, and slashes too many do no harm.
    world
        .ask(Method::GET, "c", "/disk//usage/", None)
        .await?
        .expect(200)?;

    // The driver's refusals look like all others.
    let wrong = world
        .ask(Method::GET, &cluster, "disk/usage?unit=GiB", None)
        .await?;
    ensure!(
        wrong.status.as_u16() == 400 && wrong.detail().starts_with("unit must be one of"),
        "{wrong:?}"
    );

    let path = format!("/clusters/{cluster}/driver/disk/usage");
    let stranger = world.api.rest.as_somebody("away", "stranger").get(&path).await?;
    ensure!(
        stranger.status.as_u16() == 404 && stranger.detail().contains("could not be found"),
        "{stranger:?}"
    );
    // Also where there is no such route: nothing tells the two apart.
    let nothing = format!("/clusters/{cluster}/driver/nothing");
    let other = world
        .api
        .rest
        .as_somebody("away", "stranger")
        .get(&nothing)
        .await?;
    ensure!(other.detail() == stranger.detail(), "{other:?}");
    // An administrator of another project may.
    world.api.rest.get(&path).await?.expect(200)?;

    let early = world.rest().at_version("1.15").get(&path).await?;
    ensure!(early.status.as_u16() == 406, "{early:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn undeclared_routes_and_methods_are_refused() -> Result<()> {
    let world = World::start(Backend::Sqlite, |_| {}).await?;
    let cluster = world.cluster("c", json!({})).await?;
    for path in [
        "nothing",
        "disk",
        "disk/usage/more",
        "Disk/usage",
        "disk%2Fusage%2F..",
        "..%2fnotes",
    ] {
        let answer = world.ask(Method::GET, &cluster, path, None).await?;
        ensure!(answer.status.as_u16() == 404, "{path}: {answer:?}");
    }
    let other = world.look(Method::DELETE, &cluster, "disk/usage").await?;
    ensure!(other.status == 405, "{}", other.body);
    ensure!(
        other.headers.get("allow").map(String::as_str) == Some("GET"),
        "{:?}",
        other.headers
    );
    let notes = world.look(Method::GET, &cluster, "notes").await?;
    ensure!(notes.status == 405 && notes.headers.get("allow").map(String::as_str) == Some("PUT"));
    let head = world.look(Method::HEAD, &cluster, "disk/usage").await?;
    ensure!(head.status == 405, "{}", head.status);
    ensure!(world.own_api_calls()?.is_empty(), "the driver was called");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_and_queries_have_bounds_and_a_form() -> Result<()> {
    let world = World::start(Backend::Sqlite, |_| {}).await?;
    let cluster = world.cluster("c", json!({})).await?;
    let put = async |body| world.ask(Method::PUT, &cluster, "notes", Some(&body)).await;
    let large = put(json!({"text": "x".repeat(64 * 1024)})).await?;
    ensure!(
        large.status.as_u16() == 413 && large.detail().contains("65536"),
        "{large:?}"
    );
    ensure!(put(json!(["text"])).await?.status.as_u16() == 400);
    // Nothing at all is for the driver to judge, and so are its members.
    for nothing in [None, Some(json!({})), Some(json!({"text": 3}))] {
        let answer = world
            .ask(Method::PUT, &cluster, "notes", nothing.as_ref())
            .await?;
        ensure!(
            answer.status.as_u16() == 422 && answer.detail() == "text must be a text",
            "{answer:?}"
        );
    }
    let many = "a=b&".repeat(33);
    for query in [many, format!("a={}", "x".repeat(4096))] {
        let answer = world
            .ask(Method::GET, &cluster, &format!("disk/usage?{query}"), None)
            .await?;
        ensure!(
            answer.status.as_u16() == 400 && answer.detail().contains("at most 32"),
            "{answer:?}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_operators_word_there_is_nothing() -> Result<()> {
    let mut world = World::start(Backend::Sqlite, |deployment| {
        deployment.set("drivers", "custom_api", "another");
    })
    .await?;
    let cluster = world.cluster("c", json!({})).await?;
    for path in ["disk/usage", "nothing"] {
        let answer = world.ask(Method::GET, &cluster, path, None).await?;
        ensure!(
            answer.status.as_u16() == 404 && answer.detail() == "Not Found",
            "{answer:?}"
        );
    }
    // An API whose operator allows it gets no further than to the conductor.
    world.deployment.set("drivers", "custom_api", "disk");
    world.api = world.deployment.api().await?;
    let answer = world.ask(Method::GET, &cluster, "disk/usage", None).await?;
    ensure!(
        answer.status.as_u16() == 404 && answer.detail().contains("can be called"),
        "{answer:?}"
    );
    ensure!(world.own_api_calls()?.is_empty(), "the driver was called");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rule_that_the_driver_names_decides() -> Result<()> {
    let world = World::start(Backend::Sqlite, |deployment| {
        let policy = deployment.folder.join("policy.yaml");
        std::fs::write(&policy, "\"cluster:update\": \"!\"\n\"default\": \"@\"\n").unwrap();
        deployment.set("oslo_policy", "policy_file", policy.display());
    })
    .await?;
    let cluster = world.cluster("c", json!({})).await?;
    let put = async || {
        world
            .ask(Method::PUT, &cluster, "notes", Some(&json!({"text": "x"})))
            .await
    };
    let refused = put().await?;
    ensure!(
        refused.status.as_u16() == 403 && refused.detail().contains("cluster:update"),
        "{refused:?}"
    );
    world
        .ask(Method::GET, &cluster, "disk/usage", None)
        .await?
        .expect(200)?;

    // A rule that nobody defines lets nobody pass, whatever stands in for missing ones elsewhere; and a changed
    // manifest is known a moment after the conductor has read it.
    world.change_manifest("policy = \"cluster:update\"", "policy = \"cluster:updaet\"")?;
    world.conductor.signal(Signal::SIGHUP)?;
    wait::until("the changed manifest", PATIENCE, async || {
        let refused = put().await?;
        ensure!(
            refused.status.as_u16() == 403 && refused.detail().contains("cluster:updaet"),
            "{refused:?}"
        );
        Ok(())
    })
    .await?;
    // What a file says of it, decides.
    let policy = world.deployment.folder.join("policy.yaml");
    std::fs::write(&policy, "\"cluster:updaet\": \"@\"\n")?;
    wait::until("the changed policy", PATIENCE, async || {
        let taken = put().await?;
        ensure!(taken.status.as_u16() == 204, "{taken:?}");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_of_a_changed_manifest_take_the_place_of_the_old_ones() -> Result<()> {
    let world = World::start(Backend::Sqlite, |_| {}).await?;
    let cluster = world.cluster("c", json!({})).await?;
    let put = async |path: &str| {
        world
            .ask(Method::PUT, &cluster, path, Some(&json!({"text": "x"})))
            .await
    };
    put("notes").await?.expect(204)?;
    ensure!(put("team/memo").await?.status.as_u16() == 404);
    world.change_manifest("path = \"notes\"", "path = \"team/memo\"")?;
    world.conductor.signal(Signal::SIGHUP)?;
    wait::until("the new route", PATIENCE, async || {
        let answer = put("team/memo").await?;
        ensure!(answer.status.as_u16() == 204, "{answer:?}");
        Ok(())
    })
    .await?;
    ensure!(put("notes").await?.status.as_u16() == 404);
    Ok(())
}
