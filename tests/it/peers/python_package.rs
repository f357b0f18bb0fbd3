//! Clusters of a driver that is a Python package, the same one in both conductors: what one has made, the other goes on with.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::python_magnum::{ANNA, NORTH, PythonMagnum};
use magnum_tests::python_plugin::{DRIVER, Library, PythonPlugin};
use magnum_tests::rest::Rest;
use serde_json::json;

/// A Python conductor looks at its clusters every ten seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Another number of nodes, then the end, by whichever conductor is there.
async fn resize_and_delete(rest: &Rest, plugin: &PythonPlugin, cluster: &str) -> Result<()> {
    rest.resize(cluster, 3).await?.expect(202)?;
    let shown = rest.wait_status(cluster, "UPDATE_COMPLETE", PATIENCE).await?;
    ensure!(shown["node_count"] == 3, "{shown}");
    let nodes = plugin.nodes(cluster)?;
    ensure!(nodes == 4, "{nodes} instead of a master and three workers");
    rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    rest.wait_gone(cluster, PATIENCE).await?;
    let left = plugin.effects(cluster)?;
    ensure!(left.is_empty(), "{left:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_conductor_resizes_and_deletes_a_packages_cluster_that_the_other_has_made() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    let plugin = PythonPlugin::in_deployment(&mut deployment, Library::Magnum23).await?;
    let api = deployment.api().await?;
    let rest = api.rest.as_somebody(NORTH, ANNA);

    let mut conductor = deployment.conductor("ours").await?;
    let template = rest.create_template_for("small", DRIVER).await?;
    let ours = rest.create_cluster(&template, "ours", json!({})).await?;
    rest.wait_status(&ours, "CREATE_COMPLETE", PATIENCE).await?;
    deployment.settled(PATIENCE).await?;
    conductor.terminate(PATIENCE).await?;

    let mut python = PythonMagnum::beside(&deployment).await?;
    python.install(&plugin)?;
    let mut conductor = python.conductor(&deployment.vhost).await?;
    let theirs = rest.create_cluster(&template, "theirs", json!({})).await?;
    resize_and_delete(&rest, &plugin, &ours).await?;
    rest.wait_status(&theirs, "CREATE_COMPLETE", PATIENCE).await?;
    conductor.kill_group().await?;

    let _conductor = deployment.conductor("ours-again").await?;
    resize_and_delete(&rest, &plugin, &theirs).await?;
    deployment.settled(PATIENCE).await.map(drop)
}
