//! A database that is really gone, under a conductor that takes messages.
//!
//! The server is killed and started again on the same data. While it is away the conductor says so, is not ready,
//! and takes nothing more: what was delivered stays unacknowledged, what is sent meanwhile stays with the broker.
//! When it is back, every message becomes one operation.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::mariadb::Mariadb;
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::{TestDatabase, rabbitmq, wait};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(120);
const QUEUE: &str = "magnum-conductor";

/// A cast that asks for a new cluster. Returns the cluster's uuid.
async fn ask_for_cluster(rpc: &RawRpc, template: &str) -> Result<String> {
    let uuid = uuid::Uuid::new_v4().to_string();
    let fields = json!({
        "uuid": uuid, "name": "c", "project_id": "noauth", "user_id": "noauth", "cluster_template_id": template,
        "labels": {}, "create_timeout": 60,
    });
    let object = raw_rpc::object("Cluster", "1.24", fields);
    let args = json!({"cluster": object, "master_count": 1, "node_count": 1, "create_timeout": 60});
    rpc.cast(&raw_rpc::request("cluster_create", args)).await?;
    Ok(uuid)
}

/// Waits until the topic queue holds so many messages. Returns how many of them a consumer has.
async fn queue_holds(deployment: &Deployment, messages: usize) -> Result<u64> {
    wait::until(&format!("{messages} messages"), PATIENCE, async || {
        let queue = deployment.vhost.management().queue(QUEUE).await?;
        let seen = [&queue["messages_ready"], &queue["messages_unacknowledged"]].map(Value::as_u64);
        match seen {
            [Some(ready), Some(taken)] if ready + taken == messages as u64 => Ok(taken),
            _ => Err(anyhow::anyhow!("ready and unacknowledged: {seen:?}")),
        }
    })
    .await
}

/// What `/readiness` says of a conductor.
async fn readiness(deployment: &Deployment, name: &str) -> Result<Value> {
    let config = std::fs::read_to_string(deployment.folder.join(format!("{name}.conf")))?;
    let admin = config
        .lines()
        .find_map(|line| line.strip_prefix("admin_listen = "))
        .context("the admin address")?;
    Ok(reqwest::get(format!("http://{admin}/readiness"))
        .await?
        .json()
        .await?)
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_database_is_away_no_message_is_taken_and_none_is_lost() -> Result<()> {
    const BEFORE: usize = 12;
    const MEANWHILE: usize = 8;
    let server = Mariadb::dedicated().await?;
    let deployment =
        Deployment::on(TestDatabase::on_mariadb(&server).await?, rabbitmq::vhost().await?).await?;
    let conductor = deployment.conductor("one").await?;
    let template = {
        let api = deployment.api().await?;
        api.rest.create_template("small").await?
    };
    queue_holds(&deployment, 0).await?;
    let rpc = RawRpc::connect(&deployment.vhost).await?;

    server.kill().await?;
    let mut asked = BTreeSet::new();
    for _ in 0..BEFORE {
        asked.insert(ask_for_cluster(&rpc, &template).await?);
    }
    conductor
        .wait_log("keeping them unacknowledged and taking no more", PATIENCE)
        .await?;
    let taken = queue_holds(&deployment, BEFORE).await?;
    ensure!(
        taken > 0,
        "the conductor holds nothing that it could try to record"
    );
    for _ in 0..MEANWHILE {
        asked.insert(ask_for_cluster(&rpc, &template).await?);
    }
    let now = queue_holds(&deployment, BEFORE + MEANWHILE).await?;
    ensure!(now == taken, "it goes on taking messages: {taken}, then {now}");
    let ready = readiness(&deployment, "one").await?;
    ensure!(ready["database"] == false && ready["broker"] == true, "{ready}");

    server.start().await?;
    conductor
        .wait_log("the database is back; taking messages again", PATIENCE)
        .await?;
    queue_holds(&deployment, 0).await?;
    let operations = deployment.settled(PATIENCE).await?;
    let made: BTreeSet<String> = operations
        .iter()
        .filter(|one| one["state"] == "succeeded")
        .filter_map(|one| one["cluster"].as_str().map(str::to_owned))
        .collect();
    ensure!(made == asked, "lost: {:?}", asked.difference(&made));
    ensure!(operations.len() == asked.len(), "{} operations", operations.len());
    for cluster in &asked {
        let calls = deployment.record.begun("create", cluster)?.len();
        ensure!(calls == 1, "the driver was called {calls} times for {cluster}");
    }
    Ok(())
}
