//! Both directions with the real thing: Magnum's own client code drives our conductor, and Magnum's own object
//! layer rebuilds what our API publishes.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::oslo_peer::OsloPeer;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

async fn peer(deployment: &Deployment, script: &str) -> Result<OsloPeer> {
    OsloPeer::start(script, &[&deployment.config_file("peer")?.display().to_string()]).await
}

/// A recorded request: method, arguments and context as they were on the wire.
fn frame(name: &str) -> Result<(String, Value, Value)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/rpc/{name}.json"));
    let recorded: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).with_context(|| path.display().to_string())?)?;
    let body: Value = serde_json::from_str(recorded["body"].as_str().context("body")?)?;
    let message: Value = serde_json::from_str(body["oslo.message"].as_str().context("message")?)?;
    let keys = message.as_object().context("object")?;
    let context = keys
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix("_context_")?.to_owned(), value.clone())))
        .collect();
    Ok((
        message["method"].as_str().context("method")?.to_owned(),
        message["args"].clone(),
        context,
    ))
}

/// The template that the recorded frames name: made through the API, then given its recorded uuid.
async fn recorded_template(deployment: &Deployment, api: &Api, uuid: &str) -> Result<()> {
    let made = api.rest.create_template("recorded").await?;
    deployment
        .database
        .execute(&format!(
            "UPDATE cluster_template SET uuid = '{uuid}' WHERE uuid = '{made}'"
        ))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_frames_cast_by_oslo_do_their_work() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let mut python = peer(&deployment, "oslo_client.py").await?;

    let (method, args, context) = frame("request-cluster_create-cast")?;
    let data = &args["cluster"]["magnum_object.data"];
    let uuid = data["uuid"].as_str().context("uuid")?.to_owned();
    recorded_template(
        &deployment,
        &api,
        data["cluster_template_id"].as_str().context("template")?,
    )
    .await?;
    python
        .ask(json!({"do": "cast", "method": method, "args": args, "context": context}))
        .await??;
    let made = api.rest.wait_status(&uuid, "CREATE_COMPLETE", PATIENCE).await?;
    ensure!(
        made["name"] == data["name"] && made["labels"] == data["labels"],
        "{made}"
    );

    let (method, args, context) = frame("request-cluster_update-cast")?;
    python
        .ask(json!({"do": "cast", "method": method, "args": args, "context": context}))
        .await??;
    let updated = api.rest.wait_status(&uuid, "UPDATE_COMPLETE", PATIENCE).await?;
    ensure!(updated["node_count"] == args["node_count"], "{updated}");

    let (method, args, context) = frame("request-cluster_update-call")?;
    python
        .ask(json!({"do": "call", "method": method, "args": args, "context": context}))
        .await??;

    let (method, args, context) = frame("request-cluster_delete-cast")?;
    python
        .ask(json!({"do": "cast", "method": method, "args": args, "context": context}))
        .await??;
    api.rest.wait_gone(&uuid, PATIENCE).await?;
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_calls_return_what_magnum_returns() -> Result<()> {
    let deployment = Deployment::new(Backend::Postgres).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let mut python = peer(&deployment, "oslo_client.py").await?;
    let pong = python
        .ask(json!({"do": "call", "method": "ping_conductor", "args": {}, "context": {}}))
        .await??;
    ensure!(pong == true);

    let (method, args, context) = frame("request-cluster_create-call")?;
    let uuid = args["cluster"]["magnum_object.data"]["uuid"]
        .as_str()
        .context("uuid")?
        .to_owned();
    let template = args["cluster"]["magnum_object.data"]["cluster_template_id"]
        .as_str()
        .context("template")?;
    recorded_template(&deployment, &api, template).await?;
    let answer = python
        .ask(json!({"do": "call", "method": method, "args": args, "context": context}))
        .await??;
    ensure!(answer["magnum_object.name"] == "Cluster", "{answer}");
    ensure!(answer["magnum_object.data"]["uuid"] == uuid.as_str(), "{answer}");

    let (method, args, context) = frame("request-cluster_delete-call")?;
    let answer = python
        .ask(json!({"do": "call", "method": method, "args": args, "context": context}))
        .await??;
    ensure!(answer.is_null(), "{answer}");
    api.rest.wait_gone(&uuid, PATIENCE).await?;
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_call_raises_magnums_own_exception_in_python() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let mut python = peer(&deployment, "oslo_client.py").await?;

    let (method, args, context) = frame("request-cluster_delete-ClusterNotFound")?;
    let raised = python
        .ask(json!({"do": "call", "method": method, "args": args, "context": context}))
        .await?
        .unwrap_err();
    ensure!(
        (raised.module.as_str(), raised.class.as_str()) == ("magnum.common.exception", "ClusterNotFound"),
        "{raised}"
    );

    // A cluster that is being worked on refuses an update.
    let template = api.rest.create_template("small").await?;
    let cluster = api
        .rest
        .create_cluster(&template, "busy", json!({"scripted_create": "wait"}))
        .await?;
    let seen = json!({"object": "Cluster", "saved": {"uuid": cluster, "cluster_template_id": template, "status": "CREATE_COMPLETE"}});
    let update = json!({"do": "api", "method": "cluster_update", "args": [seen, 3, null, null], "context": {"project_id": "noauth"}});
    let raised = python.ask(update).await?.unwrap_err();
    ensure!(raised.module == "magnum.common.exception", "{raised}");
    deployment.record.let_go(&cluster)?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn magnums_server_rebuilds_what_our_api_publishes() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("api", "accept_wait", 0);
    let api = deployment.api().await?;
    let (template, existing) = {
        let _conductor = deployment.conductor("one").await?;
        let template = api.rest.create_template("small").await?;
        let existing = api.rest.create_cluster(&template, "existing", json!({})).await?;
        api.rest
            .wait_status(&existing, "CREATE_COMPLETE", PATIENCE)
            .await?;
        deployment.settled(PATIENCE).await?;
        (template, existing)
    };

    let mut python = peer(&deployment, "oslo_server.py").await?;
    let created = api
        .rest
        .create_cluster(&template, "new", json!({"k": "v ü"}))
        .await?;
    let seen = python.next_event(PATIENCE).await?;
    ensure!(
        seen["method"] == "cluster_create" && seen["args"]["node_count"] == 1,
        "{seen}"
    );
    let cluster = &seen["args"]["cluster"];
    ensure!(
        cluster["object"] == "Cluster" && cluster["fields"]["uuid"] == created.as_str(),
        "{seen}"
    );
    ensure!(
        cluster["fields"]["labels"]["k"] == "v ü" && cluster["fields"]["name"] == "new",
        "{seen}"
    );
    ensure!(
        cluster["changes"]
            .as_array()
            .is_some_and(|changes| changes.contains(&json!("name"))),
        "{seen}"
    );
    ensure!(seen["context"]["project_id"] == "noauth", "{seen}");

    api.rest.resize(&existing, 4).await?.expect(202)?;
    let seen = python.next_event(PATIENCE).await?;
    ensure!(
        seen["method"] == "cluster_update" && seen["args"]["node_count"] == 4,
        "{seen}"
    );
    ensure!(
        seen["args"]["cluster"]["fields"]["status"] == "CREATE_COMPLETE",
        "{seen}"
    );

    api.rest
        .delete(&format!("/clusters/{existing}"))
        .await?
        .expect(204)?;
    let seen = python.next_event(PATIENCE).await?;
    ensure!(
        seen["method"] == "cluster_delete" && seen["args"]["uuid"] == existing.as_str(),
        "{seen}"
    );
    Ok(())
}
