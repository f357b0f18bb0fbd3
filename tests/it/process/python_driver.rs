//! A driver that is a Python package, adopted as an operator would: its clusters' whole life, and what is left of a call
//! that ends before its time.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::process::works;
use magnum_tests::python_plugin::{DRIVER, Library, PythonPlugin};
use magnum_tests::wait;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(120);

pub(super) async fn deployment(backend: Backend) -> Result<(Deployment, PythonPlugin)> {
    let mut deployment = Deployment::new(backend).await?;
    let plugin = PythonPlugin::in_deployment(&mut deployment, Library::default()).await?;
    // Calls that are cut off are noticed soon.
    deployment.set("conductor", "operation_lease", 3);
    deployment.set("conductor", "operation_retry_initial", 0.2);
    deployment.set("conductor", "shutdown_timeout", 1);
    deployment.set("conductor", "status_poll_interval", 0.5);
    Ok((deployment, plugin))
}

/// Waits until a call hangs, and returns its processes.
async fn hanging(plugin: &PythonPlugin, cluster: &str) -> Result<Vec<u32>> {
    wait::until("the call to hang", PATIENCE, async || plugin.pids(cluster)).await
}

async fn gone(pids: &[u32]) -> Result<()> {
    wait::until("the processes of the call to end", PATIENCE, async || {
        let left: Vec<&u32> = pids.iter().filter(|pid| works(**pid)).collect();
        ensure!(left.is_empty(), "{left:?} of {pids:?} are left");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_driver_builds_changes_and_deletes_a_cluster() -> Result<()> {
    let (deployment, plugin) = deployment(Backend::Mariadb).await?;
    let _one = deployment.conductor("one").await?;
    let _two = deployment.conductor("two").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("small", DRIVER).await?;
    let cluster = api.rest.create_cluster(&template, "python", json!({})).await?;
    let made = api
        .rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    ensure!(plugin.nodes(&cluster)? == 2, "one master, one worker");
    ensure!(
        made["cluster_id"] == format!("folder-{}", &cluster[..8]),
        "{made}"
    );
    ensure!(made["coe_version"] == "v1.30.0", "{made}");
    ensure!(made["status_reason"] == Value::Null, "{made}");
    let groups = format!("/clusters/{cluster}/nodegroups");
    let listed = api.rest.get(&groups).await?.expect(200)?;
    for group in listed["nodegroups"].as_array().into_iter().flatten() {
        ensure!(group["status"] == "CREATE_COMPLETE", "{group}");
        ensure!(group["stack_id"] == made["cluster_id"], "{group}");
    }

    api.rest.resize(&cluster, 3).await?.expect(202)?;
    api.rest
        .wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    ensure!(plugin.nodes(&cluster)? == 4);

    let group = json!({"name": "pool", "node_count": 2, "flavor_id": "m1.small"});
    api.rest.post(&groups, &group).await?.expect(202)?;
    api.rest
        .wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    wait::until("the group to be built", PATIENCE, async || {
        let nodes = plugin.nodes(&cluster)?;
        ensure!(nodes == 6, "{nodes} nodes");
        Ok(())
    })
    .await?;
    deployment.settled(PATIENCE).await?;
    api.rest.delete(&format!("{groups}/pool")).await?.expect(204)?;
    wait::until("the group to be gone", PATIENCE, async || {
        let listed = api.rest.get(&groups).await?.expect(200)?;
        let left = listed["nodegroups"].as_array().map_or(0, Vec::len);
        ensure!(left == 2, "{left} groups");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    deployment.settled(PATIENCE).await?;

    api.rest
        .delete(&format!("/clusters/{cluster}"))
        .await?
        .expect(204)?;
    api.rest.wait_gone(&cluster, PATIENCE).await?;
    ensure!(plugin.effects(&cluster)?.is_empty());
    deployment.settled(PATIENCE).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_raises_fails_the_cluster_with_its_reason_or_is_tried_again() -> Result<()> {
    let (deployment, plugin) = deployment(Backend::Sqlite).await?;
    let one = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("small", DRIVER).await?;
    let failing = json!({"test_create": "permanent"});
    let cluster = api.rest.create_cluster(&template, "failing", failing).await?;
    let failed = api.rest.wait_status(&cluster, "CREATE_FAILED", PATIENCE).await?;
    ensure!(
        failed["status_reason"] == "the test cloud has no such flavor",
        "{failed}"
    );

    let unsaved = json!({"test_create": "unsaved"});
    let cluster = api.rest.create_cluster(&template, "unsaved", unsaved).await?;
    let failed = api.rest.wait_status(&cluster, "CREATE_FAILED", PATIENCE).await?;
    ensure!(
        failed["name"] == "unsaved" && failed["cluster_id"] == "unsaved-stack",
        "{failed}"
    );

    let trying = json!({"test_create": "transient"});
    let cluster = api.rest.create_cluster(&template, "trying", trying).await?;
    wait::until("a second attempt", PATIENCE, async || {
        let attempts = deployment.operations().await?;
        let of_it = attempts.iter().find(|one| one["cluster"] == cluster);
        let attempts = of_it.and_then(|one| one["attempts"].as_i64()).unwrap_or(0);
        ensure!(attempts > 1, "{attempts} attempts");
        Ok::<_, anyhow::Error>(())
    })
    .await?;
    one.wait_log("the test cloud is away", PATIENCE).await?;
    ensure!(plugin.nodes(&cluster)? == 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_conductor_leaves_no_process_and_the_next_one_goes_on() -> Result<()> {
    let (deployment, plugin) = deployment(Backend::Postgres).await?;
    let mut one = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("small", DRIVER).await?;
    let hang = json!({"test_update": "lock"});
    let cluster = api.rest.create_cluster(&template, "hang", hang).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    api.rest.resize(&cluster, 2).await?.expect(202)?;
    let pids = hanging(&plugin, &cluster).await?;
    one.kill().await?;
    gone(&pids).await?;
    std::fs::remove_file(plugin.built.join(format!("pids-{cluster}")))?;

    let mut two = deployment.conductor("two").await?;
    let again = hanging(&plugin, &cluster).await?;
    ensure!(again[0] != pids[0], "the next attempt is another process");
    let folders = std::fs::read_dir(&plugin.runtime)?.count();
    ensure!(
        folders == 1,
        "the folder of the killed conductor is left: {folders}"
    );
    // At its shutdown it waits for the step, and then ends it.
    ensure!(two.terminate(PATIENCE).await?.success());
    gone(&again).await?;
    ensure!(
        std::fs::read_dir(&plugin.runtime)?.count() == 0,
        "its own folder is left"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn drivers_that_are_read_again_leave_a_running_call_its_process() -> Result<()> {
    let (deployment, plugin) = deployment(Backend::Sqlite).await?;
    let one = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("small", DRIVER).await?;
    let slow = json!({"test_delay_ms": "1500"});
    let cluster = api.rest.create_cluster(&template, "slow", slow).await?;
    one.wait_log(&format!("driver: create of {cluster}"), PATIENCE)
        .await?;
    one.signal(Signal::SIGHUP)?;
    one.wait_log("drivers are loaded new=[] gone=[]", PATIENCE)
        .await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    let operations = deployment.operations().await?;
    ensure!(operations[0]["attempts"] == 1, "{operations:?}");
    // The look was made by the process that was started since; the other one has ended with its last call.
    let ready = one
        .log()
        .matches("environment: the plug-in host is ready")
        .count();
    ensure!(ready == 2, "{ready} starts");
    wait::until("the folder of the first to be gone", PATIENCE, async || {
        let folders = std::fs::read_dir(&plugin.runtime)?.count();
        ensure!(folders == 1, "{folders} folders");
        Ok::<_, anyhow::Error>(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_of_a_driver_have_the_span_of_its_operation() -> Result<()> {
    let (deployment, _plugin) = deployment(Backend::Sqlite).await?;
    let one = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("small", DRIVER).await?;
    let cluster = api.rest.create_cluster(&template, "logging", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    let text = format!("driver: create of {cluster}");
    one.wait_log(&text, PATIENCE).await?;
    let log = one.log();
    let line = log.lines().find(|line| line.contains(&text)).unwrap_or_default();
    ensure!(
        line.contains("operation") && line.matches(&cluster).count() > 1,
        "{line}"
    );
    Ok(())
}
