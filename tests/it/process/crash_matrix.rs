//! The crash matrix: the conductor dies at every border of every operation, and another one finishes.
//!
//! The rows come from the conductor's own list of borders, so a new step is covered without a new test. In each
//! row a conductor is stopped exactly at the border and `kill -9`ed there; a second conductor takes over when
//! the lease ends, and the driver's own record tells whether an effect was doubled. Rows run a few at a time,
//! each in a deployment of its own.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use magnum_conductor::operations::border::borders;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::rest::Rest;
use magnum_tests::{Backend, wait};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(90);

/// Rows that run at the same time; each has an API and up to two conductors.
const AT_A_TIME: usize = 4;

/// Borders that only calls reach: the request is then made as a call, as Magnum's administrators' tools do.
fn is_for_calls(border: &str) -> bool {
    border.contains("/reply/")
}

async fn matrix(backend: Backend) -> Result<()> {
    let rows: Vec<String> = borders()
        .into_iter()
        .filter(|border| !is_for_calls(border))
        .collect();
    ensure!(
        rows.len() > 20,
        "the list of borders is suspiciously short: {rows:?}"
    );
    let rows =
        futures::stream::iter(rows).map(async |border| row(backend, &border).await.with_context(|| border));
    let results: Vec<Result<()>> = rows.buffer_unordered(AT_A_TIME).collect().await;
    let failures: Vec<String> = results
        .into_iter()
        .filter_map(Result::err)
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(
        failures.is_empty(),
        "{} rows failed:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
    Ok(())
}

/// One row: kill at `border`, take over, look.
async fn row(backend: Backend, border: &str) -> Result<()> {
    let mut deployment = Deployment::new(backend).await?;
    deployment.set("api", "accept_wait", 1);
    let (kind, _) = border.split_once('/').context("a border without a kind")?;
    let api = deployment.api().await?;
    let template = {
        let _announces_the_driver = deployment.conductor("first").await?;
        api.rest.create_template("small").await?
    };
    let cluster = match kind {
        "cluster_create" => None,
        _ => Some(existing_cluster(&deployment, &api, &template).await?),
    };

    let file = deployment.folder.join("border");
    let doomed = deployment.conductor_launch("doomed").await?;
    let mut doomed = doomed
        .env("MAGNUM_TEST_BORDER", border)
        .env("MAGNUM_TEST_BORDER_FILE", &file)
        .start()
        .await?;
    let rpc = if is_for_calls(border) {
        Some(RawRpc::connect(&deployment.vhost).await?)
    } else {
        None
    };
    let request = match rpc {
        Some(rpc) => tokio::spawn(call(rpc, kind.to_owned(), template, cluster)),
        None => tokio::spawn(request(api.rest.clone(), kind.to_owned(), template, cluster)),
    };
    wait::until("the border to be reached", PATIENCE, async || {
        file.with_extension("reached")
            .exists()
            .then_some(())
            .context("not yet")
    })
    .await?;
    doomed.kill().await?;
    let _heir = deployment.conductor("heir").await?;
    let cluster = request.await??;

    let operations = deployment.settled(PATIENCE).await?;
    let ours: Vec<_> = operations.iter().filter(|one| one["kind"] == kind).collect();
    ensure!(
        ours.len() == 1,
        "the request became {} operations: {ours:#?}",
        ours.len()
    );
    ensure!(ours[0]["state"] == "succeeded", "it ended otherwise: {}", ours[0]);
    outcome(&deployment, &api.rest, border, kind, &cluster).await
}

async fn existing_cluster(deployment: &Deployment, api: &Api, template: &str) -> Result<String> {
    let mut builder = deployment.conductor("builder").await?;
    let cluster = api.rest.create_cluster(template, "c", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    deployment.settled(PATIENCE).await?;
    builder.terminate(PATIENCE).await?;
    Ok(cluster)
}

/// Sends the request of the row; returns the cluster's uuid.
async fn request(rest: Rest, kind: String, template: String, cluster: Option<String>) -> Result<String> {
    match (kind.as_str(), cluster) {
        ("cluster_create", None) => rest.create_cluster(&template, "c", json!({})).await,
        ("cluster_update", Some(cluster)) => {
            rest.resize(&cluster, 2).await?.expect(202)?;
            Ok(cluster)
        }
        ("cluster_delete", Some(cluster)) => {
            rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
            Ok(cluster)
        }
        (other, _) => bail!("the matrix does not know how to ask for {other}: teach it"),
    }
}

/// Makes the request of the row as a call, and sees that it is answered in spite of the crash.
async fn call(mut rpc: RawRpc, kind: String, template: String, cluster: Option<String>) -> Result<String> {
    let uuid = cluster.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
    let fields = json!({
        "uuid": uuid, "name": "c", "project_id": "noauth", "user_id": "noauth", "cluster_template_id": template,
        "labels": {}, "create_timeout": 60,
    });
    let cluster = raw_rpc::object("Cluster", "1.24", fields);
    let args = match kind.as_str() {
        "cluster_create" => {
            json!({"cluster": cluster, "master_count": 1, "node_count": 1, "create_timeout": 60})
        }
        "cluster_update" => {
            json!({"cluster": cluster, "node_count": 2, "health_status": null, "health_status_reason": null})
        }
        "cluster_delete" => json!({"uuid": uuid}),
        other => bail!("the matrix does not know how to call {other}: teach it"),
    };
    let reply = rpc.call(raw_rpc::request(&kind, args), PATIENCE).await?;
    ensure!(reply["failure"].is_null(), "answered with {}", reply["failure"]);
    Ok(uuid)
}

/// What the user sees and what the driver did, when all is over.
async fn outcome(
    deployment: &Deployment,
    rest: &Rest,
    border: &str,
    kind: &str,
    cluster: &str,
) -> Result<()> {
    let (status, call) = match kind {
        "cluster_create" => (Some("CREATE_COMPLETE"), "create"),
        "cluster_update" => (Some("UPDATE_COMPLETE"), "update"),
        _ => (None, "delete"),
    };
    ensure!(rest.status(cluster).await?.as_deref() == status);
    ensure!(
        deployment.record.is_built(cluster) == status.is_some(),
        "the effect differs from the status"
    );
    let calls = deployment.record.begun(call, cluster)?;
    // Only a crash between the effect and its record makes it happen again.
    let expected = if border.ends_with(&format!("/{call}_cluster/after_effect")) {
        2
    } else {
        1
    };
    ensure!(
        calls.len() == expected,
        "the driver was called {} times instead of {expected}",
        calls.len()
    );
    ensure!(
        calls.iter().all(|one| one.operation == calls[0].operation),
        "repeated for another operation: {calls:#?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_border_on_sqlite() -> Result<()> {
    matrix(Backend::Sqlite).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_border_on_mariadb() -> Result<()> {
    matrix(Backend::Mariadb).await
}
