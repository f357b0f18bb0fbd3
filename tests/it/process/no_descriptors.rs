//! A conductor whose broker goes away while it may open nothing works again when both are over, without a restart.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::Deployment;
use magnum_tests::{Backend, descriptors, wait};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_that_could_open_nothing_connects_to_the_broker_again() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let api = deployment.api().await?;
    let line = ChaosProxy::start(deployment.vhost.address).await?;
    deployment.connect_via(Some(line.address()), None);
    let conductor = deployment.conductor("one").await?;
    let usual = descriptors::limit(conductor.pid())?;

    descriptors::set_limit(conductor.pid(), descriptors::NONE_MORE)?;
    line.cut();
    wait::until("an attempt to connect to be refused", PATIENCE, async || {
        let log = conductor.log();
        log.contains("Too many open files").then_some(()).context(log)
    })
    .await?;
    line.restore();
    descriptors::set_limit(conductor.pid(), usual)?;

    let template = api.rest.create_template("small").await?;
    let cluster = api.rest.create_cluster(&template, "later", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    let log = conductor.log();
    ensure!(!log.contains("panic:"), "{log}");
    Ok(())
}
