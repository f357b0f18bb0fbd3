//! Ids, the access log and the metrics.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use serde_json::Value;

use magnum_tests::api_alone::World;

const PATIENCE: Duration = Duration::from_secs(30);
const THEIRS: &str = "req-11111111-2222-3333-4444-555555555555";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_has_a_request_id_of_its_own() -> Result<()> {
    let world = World::start(|settings| settings.cors.allowed_origin = vec!["https://h".into()]).await?;
    let client = reqwest::Client::new();
    let mut seen = std::collections::BTreeSet::new();
    for (method, path, status) in [
        ("GET", "/", 200),
        ("GET", "/v1/clusters", 200),
        ("GET", "/v1/nothing", 404),
        ("PUT", "/v1/clusters", 405),
        ("POST", "/v1/clusters", 400),
        ("OPTIONS", "/v1/clusters", 200),
    ] {
        let request = client
            .request(method.parse()?, world.url(path))
            .header("x-openstack-request-id", THEIRS);
        let answer = request.send().await?;
        ensure!(
            answer.status().as_u16() == status,
            "{method} {path}: {}",
            answer.status()
        );
        let ids: Vec<_> = answer
            .headers()
            .get_all("x-openstack-request-id")
            .iter()
            .collect();
        ensure!(ids.len() == 1, "{ids:?}");
        let id = ids[0].to_str()?.to_owned();
        let uuid = id.strip_prefix("req-").context("req-")?;
        ensure!(uuid::Uuid::try_parse(uuid).is_ok() && id != THEIRS, "{id}");
        ensure!(seen.insert(id));
    }
    world.stop().await;
    Ok(())
}

/// The lines of the log that tell of answered requests.
fn answered(log: &str) -> Vec<Value> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["message"] == "request answered")
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_line_per_request_names_caller_and_request_and_no_secret() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("DEFAULT", "use_json", true);
    deployment.set("oslo_middleware", "enable_proxy_headers_parsing", true);
    let api = deployment.api().await?;
    let client = reqwest::Client::new();
    let request = client
        .get(format!("{}/clusters/no-such?secret=hunter2", api.rest.base()))
        .header("X-Auth-Token", "token-hunter2")
        .header("X-Service-Token", "service-hunter2")
        .header("X-Project-Id", "the-project")
        .header("X-User-Id", "the-user")
        .header("X-Forwarded-For", "203.0.113.9")
        .header("X-OpenStack-Request-ID", THEIRS);
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    let id = answer.headers()["x-openstack-request-id"].to_str()?.to_owned();
    let bytes = answer.bytes().await?.len();
    api.program.wait_log("request answered", PATIENCE).await?;
    let log = api.program.log();
    let lines = answered(&log);
    ensure!(
        lines.len() == 1,
        "probes of health have no line at this level? {log}"
    );
    let line = &lines[0];
    for (name, value) in [
        ("http.method", Value::from("GET")),
        ("http.path", Value::from("/v1/clusters/no-such")),
        ("http.route", Value::from("/v1/clusters/{ident}")),
        ("http.status", Value::from(status)),
        ("http.response.bytes", Value::from(bytes)),
        ("user.id", Value::from("the-user")),
        ("project.id", Value::from("the-project")),
        ("client.address", Value::from("203.0.113.9")),
    ] {
        ensure!(line[name] == value, "{name} is not {value}: {line}");
    }
    ensure!(line["duration_ms"].is_u64(), "{line}");
    ensure!(
        line["request.id"] == id && line["request.global_id"] == THEIRS,
        "{line}"
    );
    ensure!(!log.contains("hunter2"), "a secret is in the log");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_are_by_route_not_by_path() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let admin = format!("127.0.0.1:{}", magnum_tests::ports::free_port()?);
    deployment.set("api", "admin_listen", &admin);
    let api = deployment.api().await?;
    for path in ["/clusters/one", "/clusters/two", "/nothing/here"] {
        api.rest.get(path).await?;
    }
    let text = reqwest::get(format!("http://{admin}/metrics"))
        .await?
        .text()
        .await?;
    for line in [
        "magnum_api_requests_total{method=\"GET\",route=\"/v1/clusters/{ident}\",status=\"404\"} 2",
        "magnum_api_requests_total{method=\"GET\",route=\"none\",status=\"404\"} 1",
    ] {
        ensure!(text.contains(line), "{line} is not in {text}");
    }
    ensure!(!text.contains("/clusters/one"), "{text}");
    ensure!(text.contains("magnum_api_connections "), "{text}");
    Ok(())
}
