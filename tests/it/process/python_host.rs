//! How a plug-in host starts: when its imports never end, and when they end later than the call that wanted it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::python_plugin::{DRIVER, PythonPlugin};
use magnum_tests::wait;
use serde_json::json;

use super::python_driver::deployment;

const PATIENCE: Duration = Duration::from_secs(120);

/// Has the driver's interpreter write a line into `starts`, and wait for `gate`.
fn hold_starts(plugin: &PythonPlugin, starts: &Path, gate: &Path) -> Result<()> {
    let interpreter = plugin.interpreter()?;
    let text = fs::read_to_string(&interpreter)?;
    let held =
        format!("#!/bin/sh\necho started >> {starts:?}\nwhile [ ! -e {gate:?} ]; do sleep 0.05; done\n");
    fs::write(&interpreter, text.replacen("#!/bin/sh\n", &held, 1))?;
    for folder in fs::read_dir(&plugin.drivers)? {
        let manifest = folder?.path().join("driver.toml");
        let text = fs::read_to_string(&manifest)?;
        let old = text.lines().find(|line| line.starts_with("interpreter = "));
        let new = format!("interpreter = {interpreter:?}");
        fs::write(&manifest, text.replace(old.context("an interpreter")?, &new))?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_starts_slowly_is_not_started_again_by_each_call_that_gives_up() -> Result<()> {
    let (mut deployment, plugin) = deployment(Backend::Sqlite).await?;
    deployment.set("kubernetes", "health_polling_interval", 1);
    let mut one = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("small", DRIVER).await?;
    let cluster = api.rest.create_cluster(&template, "slow", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    one.terminate(PATIENCE).await?;

    let (starts, gate) = (deployment.folder.join("starts"), deployment.folder.join("gate"));
    hold_starts(&plugin, &starts, &gate)?;
    deployment
        .database
        .execute("UPDATE cluster SET health_status = NULL")
        .await?;
    let two = deployment.conductor("two").await?;
    two.wait_log("the driver did not answer within", PATIENCE).await?;
    fs::write(&gate, "")?;
    wait::until("the cluster's health", PATIENCE, async || {
        let shown = api.rest.get(&format!("/clusters/{cluster}")).await?.expect(200)?;
        ensure!(shown["health_status"] == "HEALTHY", "{shown}");
        Ok(())
    })
    .await?;
    let starts = fs::read_to_string(&starts)?;
    ensure!(starts.lines().count() == 1, "{starts}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_never_ends_is_given_up_and_harms_no_other_driver() -> Result<()> {
    let (mut deployment, plugin) = deployment(Backend::Sqlite).await?;
    // Another environment, whose only driver never ends its import.
    let folder = plugin.drivers.join("test_exits_v1");
    fs::create_dir(&folder)?;
    let interpreter = plugin.interpreter()?;
    let text = fs::read_to_string(&interpreter)?;
    fs::write(
        &interpreter,
        text.replace("exec ", "MAGNUM_TEST_ENDLESS_IMPORT=1 exec "),
    )?;
    let manifest = format!(
        "[driver]\nname = 'test_exits_v1'\nversion = '1.0.0'\nengine = 'python'\n[[provides]]\n\
         server_type = 'vm'\nos = 'ubuntu'\ncoe = 'kubernetes'\n[python]\ninterpreter = '{}'\n",
        interpreter.display()
    );
    fs::write(folder.join("driver.toml"), manifest)?;
    // On a busy machine the other environment takes some seconds, too.
    deployment.set("python", "start_timeout", 20);
    let one = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let endless = api.rest.create_template_for("endless", "test_exits_v1").await?;
    api.rest.create_cluster(&endless, "endless", json!({})).await?;
    one.wait_log("was not ready within [python] start_timeout", PATIENCE)
        .await?;
    let template = api.rest.create_template_for("small", DRIVER).await?;
    let cluster = api.rest.create_cluster(&template, "other", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    // One for the environment that works, and at most one for the attempt that is made now.
    wait::until(
        "the folders of given-up starts to be gone",
        PATIENCE,
        async || {
            let folders = fs::read_dir(&plugin.runtime)?.count();
            ensure!(folders <= 2, "{folders} folders");
            Ok::<_, anyhow::Error>(())
        },
    )
    .await
}
