//! `[drivers] disabled_drivers`: no new cluster with such a driver, and no old one left alone.
//!
//! A cluster that the driver built before it was disabled is still polled, updated and deleted, whether the
//! conductor has recorded which driver built it or a Python conductor has, which records nothing.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq)]
enum BuiltBy {
    Us,
    Python,
}

async fn is_operated_after_its_driver_was_disabled(built_by: BuiltBy) -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let (template, cluster) = {
        let mut conductor = deployment.conductor("before").await?;
        let api = deployment.api().await?;
        let template = api.rest.create_template("small").await?;
        let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
        api.rest
            .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
            .await?;
        deployment.settled(PATIENCE).await?;
        ensure!(conductor.terminate(PATIENCE).await?.success());
        (template, cluster)
    };
    if built_by == BuiltBy::Python {
        deployment
            .database
            .execute("DELETE FROM conductor_cluster_driver; DELETE FROM conductor_operation")
            .await?;
    }
    // As if its last update were still under way in the cloud.
    deployment
        .database
        .execute("UPDATE cluster SET status = 'UPDATE_IN_PROGRESS'")
        .await?;

    deployment.set("drivers", "disabled_drivers", "scripted");
    let _conductor = deployment.conductor("after").await?;
    let api = deployment.api().await?;
    let refused = api.rest.ask_for_cluster(&template, "new", json!({})).await?;
    ensure!(
        refused.status.as_u16() == 400 && refused.body.to_string().contains("scripted"),
        "{}: {}",
        refused.status,
        refused.body
    );

    api.rest
        .wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    api.rest.resize(&cluster, 3).await?.expect(202)?;
    deployment.settled(PATIENCE).await?;
    api.rest
        .wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    ensure!(deployment.record.begun("update", &cluster)?.len() == 1);
    api.rest
        .delete(&format!("/clusters/{cluster}"))
        .await?
        .expect(204)?;
    api.rest.wait_gone(&cluster, PATIENCE).await?;
    let operations = deployment.settled(PATIENCE).await?;
    let bad: Vec<_> = operations
        .iter()
        .filter(|one| one["state"] != "succeeded")
        .collect();
    ensure!(bad.is_empty(), "{bad:#?}");
    ensure!(!deployment.record.is_built(&cluster));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_a_driver_that_was_disabled_is_operated_to_its_end() -> Result<()> {
    is_operated_after_its_driver_was_disabled(BuiltBy::Us).await
}

#[tokio::test(flavor = "multi_thread")]
async fn so_is_one_of_which_no_driver_is_recorded() -> Result<()> {
    is_operated_after_its_driver_was_disabled(BuiltBy::Python).await
}
