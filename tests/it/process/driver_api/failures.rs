//! Drivers that fail, talk nonsense, or never end.

use anyhow::{Result, ensure};
use magnum_tests::process::works;
use magnum_tests::{Backend, wait};
use reqwest::Method;
use serde_json::json;
use tokio::time::Instant;

use super::world::{PATIENCE, World};

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_of_a_driver_has_a_status_and_words() -> Result<()> {
    let world = World::start(Backend::Sqlite, |_| {}).await?;
    for (how, status, words) in [
        ("permanent", 500, "asks for a permanent failure"),
        ("transient", 503, "asks for a transient failure"),
        ("exit75", 503, "asks to be tried again later"),
        ("exit1", 500, "failed with exit code 1"),
        ("crash", 503, "was killed by signal"),
        ("garbage", 500, "broke the protocol"),
        ("flood", 500, "printed more than the protocol allows"),
        ("silent", 500, "without a line that holds a result or an error"),
    ] {
        let labels = json!({"disk_fail": how, "disk_fail_on": "api"});
        let cluster = world.cluster(how, labels).await?;
        let before = world.own_api_calls()?.len();
        let body = json!({"text": "x"});
        for (method, path, body) in [
            (Method::GET, "disk/usage", None),
            (Method::PUT, "notes", Some(&body)),
        ] {
            let answer = world.ask(method, &cluster, path, body).await?;
            ensure!(answer.status.as_u16() == status, "{how} {path}: {answer:?}");
            ensure!(
                answer.detail().contains(words),
                "{how} {path}: {}",
                answer.detail()
            );
        }
        // Once each: nothing was tried again.
        let calls = world.own_api_calls()?.len() - before;
        ensure!(calls == 2, "{how}: {calls} calls");
        let status = world.rest().status(&cluster).await?;
        ensure!(status.as_deref() == Some("CREATE_COMPLETE"), "{how}: {status:?}");
    }
    let entries = world.entries().await?;
    ensure!(
        entries.len() == 8 && entries.iter().all(|one| one["state"] == "failed"),
        "{entries:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_never_ends_is_a_504_and_is_gone_afterwards() -> Result<()> {
    let world = World::start(Backend::Mariadb, |deployment| {
        deployment.set("drivers", "custom_api_timeout", 2);
    })
    .await?;
    let labels = json!({"disk_fail": "hang", "disk_fail_on": "api"});
    let cluster = world.cluster("c", labels).await?;
    let body = json!({"text": "x"});
    for (method, path, body) in [
        (Method::GET, "disk/usage", None),
        (Method::PUT, "notes", Some(&body)),
    ] {
        let asked = Instant::now();
        let answer = world.ask(method, &cluster, path, body).await?;
        ensure!(answer.status.as_u16() == 504, "{path}: {answer:?}");
        ensure!(
            answer.detail().contains("within 2 seconds, and was stopped"),
            "{}",
            answer.detail()
        );
        ensure!(asked.elapsed() < PATIENCE, "{:?}", asked.elapsed());
    }
    let calls = world.own_api_calls()?;
    ensure!(calls.len() == 2, "{calls:?}");
    wait::until("the programs to be gone", PATIENCE, async || {
        for pid in &calls {
            ensure!(!works(*pid), "{pid} works on");
        }
        Ok(())
    })
    .await?;
    // The cluster is free: an operation goes through.
    world.rest().resize(&cluster, 2).await?.expect(202)?;
    world
        .rest()
        .wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE)
        .await?;
    world.deployment.settled(PATIENCE).await?;
    let entries = world.entries().await?;
    ensure!(
        entries.len() == 1 && entries[0]["state"] == "failed",
        "{entries:?}"
    );
    Ok(())
}
