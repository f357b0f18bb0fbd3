//! Calls that take longer than their caller waits for a sign of life, with the real oslo.messaging client.
//!
//! A client with `call_monitor_timeout` gives up when it hears nothing for that long. So each of these calls only
//! survives because signs of life come: while the driver works, while the operation waits for its turn, and after
//! another conductor has taken it over.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::{Backend, wait};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);

/// Seconds without a sign of life after which the callers of these tests give up: the shortest that oslo has.
const MONITOR: u64 = 2;

async fn oslo_client(deployment: &Deployment) -> Result<OsloPeer> {
    let config = deployment.config_file("client")?;
    OsloPeer::start("oslo_client.py", &[config.to_str().context("path")?]).await
}

fn call(method: &str, args: &Value, monitored: bool) -> Value {
    let monitor = if monitored { json!(MONITOR) } else { Value::Null };
    json!({
        "do": "call", "method": method, "args": args, "context": {"project_id": "noauth", "user_id": "noauth"},
        "timeout": 60, "call_monitor_timeout": monitor,
    })
}

fn create(template: &str, labels: &Value) -> (String, Value) {
    let uuid = uuid::Uuid::new_v4().to_string();
    let fields = json!({
        "uuid": uuid, "name": "c", "project_id": "noauth", "user_id": "noauth",
        "cluster_template_id": template, "labels": labels, "create_timeout": 60,
    });
    let args = json!({
        "cluster": raw_rpc::object("Cluster", "1.24", fields), "master_count": 1, "node_count": 1, "create_timeout": 60,
    });
    (uuid, args)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_monitored_call_outlives_its_monitor_while_the_driver_works() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set_driver_delay(Duration::from_secs(3 * MONITOR));
    let _conductor = deployment.conductor("one").await?;
    let template = deployment.api().await?.rest.create_template("t").await?;
    let mut python = oslo_client(&deployment).await?;

    let (uuid, args) = create(&template, &json!({}));
    let asked = Instant::now();
    let answer = python.ask(call("cluster_create", &args, true)).await??;
    ensure!(asked.elapsed() > Duration::from_secs(3 * MONITOR));
    ensure!(answer["magnum_object.data"]["uuid"] == uuid.as_str(), "{answer}");
    ensure!(
        answer["magnum_object.data"]["status"] == "CREATE_COMPLETE",
        "{answer}"
    );

    // A caller that did not ask for signs of life would break on one.
    let answer = python
        .ask(call("cluster_delete", &json!({"uuid": uuid}), false))
        .await??;
    ensure!(answer.is_null(), "{answer}");
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_of_life_come_while_the_operation_waits_for_its_turn_and_end_with_the_answer() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("conductor", "operation_workers", 1);
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let cluster = api
        .rest
        .create_cluster(&template, "c", json!({"scripted_create": "wait"}))
        .await?;
    wait::until("the driver to begin", PATIENCE, async || {
        ensure!(deployment.record.begun("create", &cluster)?.len() == 1);
        Ok::<_, anyhow::Error>(())
    })
    .await?;

    let mut rpc = RawRpc::connect(&deployment.vhost).await?;
    let (second, args) = create(&template, &json!({}));
    let mut message = raw_rpc::request("cluster_create", args);
    message["_timeout"] = json!(MONITOR);
    let message = rpc.ask(message).await?;
    // It waits for the one slot, which the first create holds.
    for _ in 0..3 {
        let sign = rpc.any_reply_to(&message, Duration::from_secs(MONITOR)).await?;
        ensure!(sign["ending"] == false && sign["failure"].is_null(), "{sign}");
    }
    ensure!(deployment.record.begun("create", &second)?.is_empty());
    deployment.record.let_go(&cluster)?;
    let answer = rpc.reply_to(&message, PATIENCE).await?;
    ensure!(
        answer["result"]["magnum_object.data"]["status"] == "CREATE_COMPLETE",
        "{answer}"
    );
    let late = rpc.any_reply_to(&message, Duration::from_secs(2 * MONITOR)).await;
    ensure!(late.is_err(), "after the answer: {late:?}");
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn takeover_continues_the_heartbeats_of_a_call() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let mut one = deployment.conductor("one").await?;
    let template = deployment.api().await?.rest.create_template("t").await?;
    let mut rpc = RawRpc::connect(&deployment.vhost).await?;
    let (cluster, args) = create(&template, &json!({"scripted_create": "wait"}));
    let mut message = raw_rpc::request("cluster_create", args);
    message["_timeout"] = json!(MONITOR);
    let message = rpc.ask(message).await?;
    let begun = async |count: usize| {
        wait::until("the driver to begin", PATIENCE, async || {
            let begun = deployment.record.begun("create", &cluster)?.len();
            ensure!(begun == count, "{begun} begun");
            Ok(())
        })
        .await
    };
    begun(1).await?;
    let _two = deployment.conductor("two").await?;
    one.kill().await?;
    begun(2).await?;
    rpc.forget_replies().await;
    for _ in 0..2 {
        let sign = rpc
            .any_reply_to(&message, 2 * Duration::from_secs(MONITOR))
            .await?;
        ensure!(sign["ending"] == false, "{sign}");
    }
    deployment.record.let_go(&cluster)?;
    let answer = rpc.reply_to(&message, PATIENCE).await?;
    ensure!(
        answer["result"]["magnum_object.data"]["status"] == "CREATE_COMPLETE",
        "{answer}"
    );
    deployment.settled(PATIENCE).await.map(drop)
}
