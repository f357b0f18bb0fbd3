//! Drivers that take their time: the status is observed until it is final, a delete does not wait for the end
//! of a create, and no call is made twice.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::process::works;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_only_begins_is_observed_until_it_is_done() -> Result<()> {
    let deployment = Deployment::new(Backend::Postgres).await?;
    let _one = deployment.conductor("one").await?;
    let _two = deployment.conductor("two").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    let labels = json!({"scripted_create": "in_progress", "scripted_update": "in_progress", "scripted_delete": "in_progress"});
    let cluster = api.rest.create_cluster(&template, "slow", labels).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    api.rest.resize(&cluster, 2).await?.expect(202)?;
    api.rest
        .wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    api.rest
        .delete(&format!("/clusters/{cluster}"))
        .await?
        .expect(204)?;
    api.rest.wait_gone(&cluster, PATIENCE).await?;
    for call in ["create", "update", "delete"] {
        ensure!(
            deployment.record.begun(call, &cluster)?.len() == 1,
            "{call} was repeated"
        );
    }
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_overtakes_a_create_that_takes_long() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let _one = deployment.conductor("one").await?;
    let _two = deployment.conductor("two").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    let cluster = api
        .rest
        .create_cluster(&template, "slow", json!({"scripted_create": "wait"}))
        .await?;
    let create = magnum_tests::wait::until("the create to begin", PATIENCE, async || {
        let mut begun = deployment.record.begun("create", &cluster)?;
        ensure!(begun.len() == 1, "{} begun", begun.len());
        Ok(begun.remove(0))
    })
    .await?;
    api.rest
        .delete(&format!("/clusters/{cluster}"))
        .await?
        .expect(204)?;
    // Nobody lets the create go on: either conductor may have taken the delete, and the one that works stops its driver.
    api.rest.wait_gone(&cluster, PATIENCE).await?;
    ensure!(!works(create.pid), "the create's program still runs");
    ensure!(!deployment.record.is_built(&cluster));
    deployment.settled(PATIENCE).await.map(drop)
}

/// What waits for its turn must not keep others from looking at the one before it: each would wait for the other until the
/// time limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_observed_ends_while_others_wait_behind_it() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let _one = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    // Held at its call, so that the others have come before it is observed.
    let labels = json!({"scripted_create_nodegroup": "in_progress", "scripted_delay": "2"});
    let cluster = api.rest.create_cluster(&template, "slow", labels).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    let groups = format!("/clusters/{cluster}/nodegroups");
    for name in ["pool-1", "pool-2", "pool-3"] {
        let body = json!({"name": name, "node_count": 1});
        drop(api.rest.post(&groups, &body).await?.expect(202)?);
    }
    let operations = deployment.settled_with(4, PATIENCE).await?;
    for operation in &operations {
        ensure!(operation["state"] == "succeeded", "{operation}");
    }
    ensure!(deployment.record.begun("create_nodegroup", &cluster)?.len() == 3);
    Ok(())
}
