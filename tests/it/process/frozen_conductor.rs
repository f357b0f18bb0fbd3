//! A conductor that stands still keeps nothing from the others for longer than its lease: neither what it works on, nor what the
//! broker has handed to it.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::{Backend, wait};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

/// Far below the two minutes that RabbitMQ takes with the configured heartbeat.
const PATIENCE: Duration = Duration::from_secs(40);
const REQUESTS: u64 = 5;

fn create(template: &str, name: &str) -> Value {
    let fields = json!({
        "uuid": uuid::Uuid::new_v4(), "name": name, "project_id": "noauth", "user_id": "noauth",
        "cluster_template_id": template, "create_timeout": 60,
    });
    let cluster = raw_rpc::object("Cluster", "1.24", fields);
    let args = json!({"cluster": cluster, "master_count": 1, "node_count": 1, "create_timeout": 60});
    raw_rpc::request("cluster_create", args)
}

#[tokio::test(flavor = "multi_thread")]
async fn prefetched_messages_of_a_frozen_conductor_are_redelivered_within_its_lease() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("conductor", "operation_lease", 12);
    deployment.set("oslo_messaging_rabbit", "heartbeat_timeout_threshold", 60);
    let one = deployment.conductor("one").await?;
    let template = deployment.api().await?.rest.create_template("t").await?;
    let rpc = RawRpc::connect(&deployment.vhost).await?;
    one.signal(Signal::SIGSTOP)?;
    for number in 0..REQUESTS {
        rpc.cast(&create(&template, &format!("c-{number}"))).await?;
    }
    let management = deployment.vhost.management();
    wait::until("the broker to hand the requests out", PATIENCE, async || {
        let queue = management.queue("magnum-conductor").await?;
        let handed_out = queue["messages_unacknowledged"].as_u64();
        ensure!(handed_out == Some(REQUESTS), "{handed_out:?}");
        Ok(())
    })
    .await?;
    let _two = deployment.conductor("two").await?;
    deployment
        .settled_with(usize::try_from(REQUESTS)?, PATIENCE)
        .await?;
    let states = deployment.operations().await?;
    ensure!(
        states.iter().all(|operation| operation["state"] == "succeeded"),
        "{states:#?}"
    );
    one.signal(Signal::SIGCONT)?;
    Ok(())
}
