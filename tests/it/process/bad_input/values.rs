//! Values that a database cannot hold, and writers that are in each other's way: told at once, on every database,
//! and never a 202 for something that no conductor can store.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::future::join_all;
use magnum_tests::deployment::Deployment;
use magnum_tests::rest::IMAGE;
use magnum_tests::{Backend, TestDatabase, on_every_database, rabbitmq};
use reqwest::Method;
use serde_json::{Value, json};

use super::{api_with_template, is_unharmed};

on_every_database! {
    async fn a_value_that_cannot_be_stored_is_a_400_that_names_it(database: TestDatabase) -> Result<()> {
        let mut deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
        // Nobody listens: a request that got as far as the broker would be a 503, or a 202 later.
        deployment.set("api", "accept_wait", 0);
        let (mut api, template) = api_with_template(&deployment).await?;
        let big = "x".repeat(70_000);
        let (one, new) = (format!("/clustertemplates/{template}"), json!({"coe": "kubernetes", "image_id": IMAGE}));
        let with = |base: &Value, name: &str, value: Value| {
            let mut body = base.clone();
            body[name] = value;
            body
        };
        let cluster = json!({"cluster_template_id": template, "keypair": "key"});
        let replace = |path: &str, value: &str| json!([{"op": "replace", "path": path, "value": value}]);
        for (method, path, body, status, told) in [
            (Method::POST, "/clustertemplates", with(&new, "name", json!("a\0b")), 400, "name"),
            (Method::POST, "/clustertemplates", with(&new, "labels", json!({"a": big})), 400, "labels takes"),
            (Method::PATCH, one.as_str(), replace("/name", "a\0b"), 400, "name"),
            (Method::PATCH, one.as_str(), json!([{"op": "add", "path": "/labels/a", "value": big}]), 400, "labels takes"),
            (Method::PATCH, one.as_str(), replace("/links/0", "x"), 400, "internal attribute"),
            (Method::POST, "/clusters", with(&cluster, "keypair", json!("a\0b")), 400, "keypair"),
            (Method::POST, "/clusters", with(&cluster, "labels", json!({"a": big})), 400, "labels takes"),
            (Method::GET, "/clustertemplates/%00", Value::Null, 404, "could not be found"),
            (Method::GET, "/clusters/%00", Value::Null, 404, "could not be found"),
        ] {
            let sent = (!body.is_null()).then_some(&body);
            let answer = api.rest.send(method.clone(), path, sent).await?;
            let told_it = answer.detail().contains(told);
            let detail: String = answer.detail().chars().take(200).collect();
            ensure!(answer.status.as_u16() == status && told_it, "{method} {path} ({told}): {} {detail}", answer.status);
        }

        // Harder to store than to read: outside of the first plane.
        for (name, value) in [
            ("labels", json!({"a": "\u{1f600}"})),
            ("name", json!("\u{1f600}")),
        ] {
            let made = api.rest.post("/clustertemplates", &with(&new, name, value.clone())).await?;
            ensure!(made.expect(201)?[name] == value);
        }
        is_unharmed(&mut api.program)
    }

    /// Each adds a label of its own; a patch that was read from an older row must not take another's away.
    async fn patches_of_one_template_at_the_same_time_all_count(database: TestDatabase) -> Result<()> {
        const WRITERS: usize = 8;
        let deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
        let (mut api, template) = api_with_template(&deployment).await?;
        let path = format!("/clustertemplates/{template}");
        let mut missing: Vec<usize> = (0..WRITERS).collect();
        for _ in 0..WRITERS {
            let patches = missing.iter().map(|number| {
                let patch = json!([{"op": "add", "path": format!("/labels/l{number}"), "value": "x"}]);
                let (rest, path) = (&api.rest, &path);
                async move { (*number, rest.patch(path, &patch).await) }
            });
            let mut refused = Vec::new();
            for (number, answer) in join_all(patches).await {
                match answer?.status.as_u16() {
                    200 => {}
                    // Honest: it did not count, and says so.
                    409 => refused.push(number),
                    other => anyhow::bail!("l{number}: {other}"),
                }
            }
            missing = refused;
            if missing.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let labels = api.rest.get(&path).await?.expect(200)?["labels"].clone();
        for number in 0..WRITERS {
            ensure!(labels[format!("l{number}")] == "x", "l{number} was lost: {labels}");
        }
        is_unharmed(&mut api.program)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsupported_method_gets_405_with_allow() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let api = deployment.api().await?;
    let client = reqwest::Client::new();
    for (method, path, allowed) in [
        (Method::HEAD, "/clusters", "GET, POST"),
        (Method::OPTIONS, "/clusters/x", "GET, PATCH, DELETE"),
        (Method::PUT, "/mservices", "GET"),
    ] {
        let url = format!("{}{path}", api.rest.base());
        let answer = client.request(method.clone(), url).send().await?;
        ensure!(
            answer.status().as_u16() == 405,
            "{method} {path}: {}",
            answer.status()
        );
        let told = answer
            .headers()
            .get("allow")
            .and_then(|value| value.to_str().ok());
        ensure!(told == Some(allowed), "{method} {path}: {told:?}");
    }
    Ok(())
}
