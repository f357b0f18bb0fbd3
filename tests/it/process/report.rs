//! SIGUSR2: a service says what it uses and works on, and goes on.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::{Backend, wait};
use nix::sys::signal::Signal;
use serde_json::json;

use crate::conductor::example_drivers::install_disk;

const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_service_says_what_it_uses_and_works_on_and_goes_on() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    install_disk(&mut deployment)?;
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template_for("t", "disk").await?;
    let labels = json!({"disk_delay_ms": "2000"});
    let uuid = api.rest.create_cluster(&template, "c", labels).await?;
    let running = async || {
        let operations = deployment.operations().await?;
        let one = operations
            .iter()
            .find(|one| one["state"] == "running")
            .context("none runs")?;
        Ok::<_, anyhow::Error>(one["uuid"].as_str().unwrap_or_default().to_owned())
    };
    let operation = wait::until("the driver to work", PATIENCE, running).await?;

    conductor.signal(Signal::SIGUSR2)?;
    conductor
        .wait_log("report: operations at work here", PATIENCE)
        .await?;
    let log = conductor.log();
    let line = |words: &str| {
        log.lines()
            .find(|line| line.contains(words))
            .context(words.to_owned())
    };
    let at_work = line("report: at work")?;
    ensure!(
        at_work.contains(&operation) && at_work.contains(&uuid),
        "{at_work}"
    );
    let process = line("report: the process")?;
    ensure!(
        process.contains("threads=") && process.contains("memory_is_private=true"),
        "{process}"
    );
    ensure!(line("report: parts of the conductor")?.contains("sweep"), "{log}");

    api.program.signal(Signal::SIGUSR2)?;
    api.program.wait_log("report: the process", PATIENCE).await?;
    api.program.wait_log("memory_is_private=true", PATIENCE).await?;

    // Both go on.
    api.rest.wait_status(&uuid, "CREATE_COMPLETE", PATIENCE).await?;
    conductor.signal(Signal::SIGUSR2)?;
    conductor.wait_log("operations=0", PATIENCE).await?;
    Ok(())
}
