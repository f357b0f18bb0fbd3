//! Drivers that hang, crash, flood, talk nonsense or say nothing: the cluster ends as failed with a reason that
//! quotes them, nothing of them is left running, and other clusters do not notice.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::{Deployment, drivers};
use magnum_tests::{Backend, wait};
use serde_json::json;

use super::{SOON, api_with_template, is_unharmed, operations_of};

/// The scripted driver in a folder of its own, where a call may take so many seconds.
fn with_timeout(deployment: &mut Deployment, seconds: u32) -> Result<()> {
    let (from, to) = (
        drivers().join("scripted"),
        deployment.folder.join("drivers/scripted"),
    );
    fs::create_dir_all(&to)?;
    let manifest = fs::read_to_string(from.join("driver.toml"))?;
    ensure!(manifest.contains("\ntimeout = 20\n"));
    fs::write(
        to.join("driver.toml"),
        manifest.replace("\ntimeout = 20\n", &format!("\ntimeout = {seconds}\n")),
    )?;
    fs::copy(from.join("driver.py"), to.join("driver.py"))?;
    deployment.set(
        "drivers",
        "driver_path",
        deployment.folder.join("drivers").display(),
    );
    Ok(())
}

/// Whether a process exists and is more than a remainder nobody has waited for yet.
fn runs(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().starts_with(" Z"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_misbehaves_fails_its_cluster_with_a_reason_that_quotes_it() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    // On a busy machine a flood takes longer than a driver that is stopped for its time may.
    with_timeout(&mut deployment, 600)?;
    deployment.set("conductor", "operation_retry_max_attempts", 2);
    let mut conductor = deployment.conductor("c1").await?;
    let (api, template) = api_with_template(&deployment).await?;
    let rest = &api.rest;

    let mut failing = Vec::new();
    for (behaviour, attempts, reason) in [
        ("crash", 2, "was killed by signal 11"),
        (
            "flood",
            1,
            "printed more than the protocol allows (16 MiB, 1 MiB in a line)",
        ),
        ("flood_line", 1, "printed more than the protocol allows"),
        ("garbage", 1, "broke the protocol"),
        ("silent", 1, "without a line that holds a result or an error"),
        ("permanent", 1, "no such flavor: m1.nano"),
        ("transient:9", 2, "the cloud is busy"),
        ("exit75:9", 2, "asks to be tried again later"),
    ] {
        let name = behaviour.replace([':', '_'], "-");
        let cluster = rest
            .create_cluster(&template, &name, json!({"scripted_create": behaviour}))
            .await?;
        failing.push((cluster, behaviour, attempts, reason));
    }
    let good = rest.create_cluster(&template, "good", json!({})).await?;
    rest.wait_status(&good, "CREATE_COMPLETE", SOON).await?;

    for (cluster, behaviour, attempts, reason) in &failing {
        let seen = rest.wait_status(cluster, "CREATE_FAILED", SOON).await?;
        let told = seen["status_reason"].as_str().unwrap_or_default();
        ensure!(
            told.contains(reason),
            "{behaviour}: {told:?} does not say {reason:?}"
        );
        let begun = deployment.record.begun("create", cluster)?.len();
        ensure!(begun == *attempts, "{behaviour}: {begun} attempts");
        let operations = operations_of(&deployment, cluster).await?;
        ensure!(
            operations.len() == 1 && operations[0]["state"] == "failed",
            "{operations:?}"
        );
    }

    // A failed cluster can be deleted, and an update that fails leaves the old count.
    for (cluster, ..) in &failing {
        rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    }
    let updated = rest
        .create_cluster(&template, "updated", json!({"scripted_update": "garbage"}))
        .await?;
    rest.wait_status(&updated, "CREATE_COMPLETE", SOON).await?;
    rest.resize(&updated, 3).await?.expect(202)?;
    let seen = rest.wait_status(&updated, "UPDATE_FAILED", SOON).await?;
    ensure!(seen["node_count"] == 1, "{seen}");
    ensure!(
        seen["status_reason"]
            .as_str()
            .is_some_and(|told| told.contains("broke the protocol") && !told.contains("this is not")),
        "{seen}"
    );
    // What it printed may name what tenants must not read: administrators find it in the log, and in `operations show`.
    ensure!(conductor.log().contains("Traceback: this is not an answer"));
    for (cluster, ..) in &failing {
        rest.wait_gone(cluster, SOON).await?;
    }
    deployment.settled(SOON).await?;
    is_unharmed(&mut conductor)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_driver_that_does_not_end_is_stopped_with_all_that_it_has_started() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    with_timeout(&mut deployment, 10)?;
    let mut conductor = deployment.conductor("c1").await?;
    let (api, template) = api_with_template(&deployment).await?;
    let rest = &api.rest;

    let labels = json!({"scripted_create": "stubborn"});
    let stubborn = rest.create_cluster(&template, "stubborn", labels).await?;
    let seen = rest.wait_status(&stubborn, "CREATE_FAILED", SOON).await?;
    let told = seen["status_reason"].as_str().unwrap_or_default();
    ensure!(told.contains("did not end within 10 seconds"), "{told:?}");
    let begun = deployment.record.begun("create", &stubborn)?.len();
    ensure!(begun == 1, "{begun} attempts");
    let pids = fs::read_to_string(deployment.record.folder().join(format!("pids-{stubborn}")))?;
    for pid in pids.split(' ') {
        wait::until("the driver's processes to end", SOON, async || {
            ensure!(!runs(pid), "{pid} runs");
            Ok::<_, anyhow::Error>(())
        })
        .await?;
    }
    rest.delete(&format!("/clusters/{stubborn}")).await?.expect(204)?;
    rest.wait_gone(&stubborn, SOON).await?;
    deployment.settled(SOON).await?;
    is_unharmed(&mut conductor)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_waits_for_a_missing_driver_program_until_it_is_restored() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    with_timeout(&mut deployment, 20)?;
    deployment.set("conductor", "operation_retry_max_attempts", 2);
    let mut conductor = deployment.conductor("c1").await?;
    let (api, template) = api_with_template(&deployment).await?;
    let program = deployment.folder.join("drivers/scripted/driver.py");
    let aside = program.with_extension("aside");

    fs::rename(&program, &aside)?;
    let waiting = api.rest.create_cluster(&template, "gone", json!({})).await?;
    wait::until("the reason why it waits", SOON, async || {
        let operations = operations_of(&deployment, &waiting).await?;
        let reason = operations[0]["reason"].as_str().unwrap_or_default().to_owned();
        ensure!(
            reason.contains("cannot start") && reason.contains("driver.py"),
            "{operations:?}"
        );
        Ok::<_, anyhow::Error>(())
    })
    .await?;

    symlink(Path::new("driver.aside"), &program).context("put it back")?;
    api.rest.wait_status(&waiting, "CREATE_COMPLETE", SOON).await?;
    let built = api.rest.create_cluster(&template, "back", json!({})).await?;
    api.rest.wait_status(&built, "CREATE_COMPLETE", SOON).await?;
    deployment.settled(SOON).await?;
    is_unharmed(&mut conductor)
}
