//! What only our conductor can do, asked of a Python one.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::python_magnum::PythonMagnum;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(180);

#[tokio::test(flavor = "multi_thread")]
async fn a_python_conductor_makes_a_call_of_a_drivers_own_api_a_501() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("drivers", "custom_api", "scripted");
    let python = PythonMagnum::beside(&deployment).await?;
    let _conductor = python.conductor(&deployment.vhost).await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    let answer = api.rest.get(&format!("/clusters/{cluster}/driver/echo")).await?;
    ensure!(answer.status.as_u16() == 501, "{answer:?}");
    ensure!(
        answer.detail().contains("Nothing was changed."),
        "{}",
        answer.detail()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_conductor_makes_a_rebuild_and_a_reboot_a_501_and_changes_nothing() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let python = PythonMagnum::beside(&deployment).await?;
    let _conductor = python.conductor(&deployment.vhost).await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template("small").await?;
    let cluster = rest.create_cluster(&template, "c", json!({})).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    for (action, body) in [("rebuild", json!({})), ("reboot", json!({"type": "soft"}))] {
        let path = format!("/clusters/{cluster}/actions/{action}");
        let answer = rest.post(&path, &body).await?;
        ensure!(answer.status.as_u16() == 501, "{action}: {answer:?}");
        ensure!(
            answer.detail().contains("Nothing was changed."),
            "{}",
            answer.detail()
        );
        let status = rest.status(&cluster).await?;
        ensure!(status.as_deref() == Some("CREATE_COMPLETE"), "{status:?}");
    }
    Ok(())
}
