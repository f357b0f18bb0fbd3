//! The crash matrix: the conductor dies at every border of every operation, and another one finishes.
//!
//! The rows are the conductor's own list of borders, all of it, so a new step is covered without a new test. In
//! each row a conductor is stopped exactly at the border and `kill -9`ed there; a second one takes over. Rows run
//! a few at a time, each in a deployment of its own. Asserted in every row:
//!
//! * the conductor reaches the border at all;
//! * the request became one operation, and that succeeded;
//! * the cluster has the status that the request leads to, or is gone after a delete, and what the driver's
//!   record says exists is what the status says;
//! * the driver was called once; twice only where the crash falls between the effect and its record, and then for
//!   the same operation; never twice at a time.
//!
//! Rows of the step `reply` are asked as calls, the others through the API. In those also:
//!
//! * the caller is answered in spite of the crash, with the result: once when the answer had not left, again when
//!   only the journal did not know that it had;
//! * the journal says in the end that the answer was sent;
//! * the same message delivered once more is answered again with the same result, makes no other operation and
//!   calls no driver.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use magnum_conductor::operations::border::borders;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::rest::Rest;
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(90);

/// Rows that run at the same time; each has an API and up to two conductors.
const AT_A_TIME: usize = 4;

/// Borders that only calls reach.
fn is_for_calls(border: &str) -> bool {
    border.contains("/reply/")
}

async fn matrix(backend: Backend) -> Result<()> {
    let rows = borders();
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
    let mut asked = if is_for_calls(border) {
        Asked::Call(Box::new(
            Call::send(&deployment, kind, &template, cluster.as_deref()).await?,
        ))
    } else {
        let (rest, kind) = (api.rest.clone(), kind.to_owned());
        Asked::Rest(tokio::spawn(request(rest, kind, template, cluster)))
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
    let cluster = match &mut asked {
        Asked::Rest(request) => request.await??,
        Asked::Call(call) => call.answered(&deployment, border).await?,
    };
    one_succeeded(&deployment, kind).await?;
    outcome(&deployment, &api.rest, border, kind, &cluster).await
}

/// All operations have ended, and exactly one of them is of this kind.
async fn one_succeeded(deployment: &Deployment, kind: &str) -> Result<()> {
    let operations = deployment.settled(PATIENCE).await?;
    let ours: Vec<_> = operations.iter().filter(|one| one["kind"] == kind).collect();
    ensure!(
        ours.len() == 1,
        "the request became {} operations: {ours:#?}",
        ours.len()
    );
    ensure!(ours[0]["state"] == "succeeded", "it ended otherwise: {}", ours[0]);
    Ok(())
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

/// The request of a row under way.
enum Asked {
    Rest(JoinHandle<Result<String>>),
    Call(Box<Call>),
}

/// A request made as a call.
struct Call {
    rpc: RawRpc,
    cluster: String,
    message: Value,
}

impl Call {
    async fn send(
        deployment: &Deployment,
        kind: &str,
        template: &str,
        cluster: Option<&str>,
    ) -> Result<Self> {
        let rpc = RawRpc::connect(&deployment.vhost).await?;
        let uuid = cluster.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned);
        let fields = json!({
            "uuid": uuid, "name": "c", "project_id": "noauth", "user_id": "noauth",
            "cluster_template_id": template, "labels": {}, "create_timeout": 60,
        });
        let object = raw_rpc::object("Cluster", "1.24", fields);
        let args = match kind {
            "cluster_create" => {
                json!({"cluster": object, "master_count": 1, "node_count": 1, "create_timeout": 60})
            }
            "cluster_update" => {
                json!({"cluster": object, "node_count": 2, "health_status": null, "health_status_reason": null})
            }
            "cluster_delete" => json!({"uuid": uuid}),
            other => bail!("the matrix does not know how to call {other}: teach it"),
        };
        let mut message = raw_rpc::request(kind, args);
        // The project of the clusters that come from the API.
        message["_context_project_id"] = json!("noauth");
        let message = rpc.ask(message).await?;
        Ok(Self {
            rpc,
            cluster: uuid,
            message,
        })
    }

    /// Sees that the call is answered as the module says. Returns the cluster's uuid.
    async fn answered(&mut self, deployment: &Deployment, border: &str) -> Result<String> {
        let answer = self.answer().await?;
        if border.ends_with("/after_publish") {
            let again = self
                .answer()
                .await
                .context("the journal did not know that it was sent")?;
            ensure!(again == answer, "answered otherwise: {again} after {answer}");
        }
        wait::until("the journal to know of the answer", PATIENCE, async || {
            let operations = deployment.operations().await?;
            let pending = operations.iter().find(|one| one["answer_pending"] == true);
            ensure!(pending.is_none(), "pending: {pending:?}");
            Ok(())
        })
        .await?;
        self.rpc.ask(self.message.clone()).await?;
        let repeated = self.answer().await.context("the repeated message")?;
        ensure!(
            repeated == answer,
            "answered otherwise: {repeated} after {answer}"
        );
        Ok(self.cluster.clone())
    }

    /// The next answer, which is a result.
    async fn answer(&mut self) -> Result<Value> {
        let reply = self.rpc.reply_to(&self.message, PATIENCE).await?;
        ensure!(reply["failure"].is_null(), "answered with {}", reply["failure"]);
        Ok(reply["result"].clone())
    }
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
