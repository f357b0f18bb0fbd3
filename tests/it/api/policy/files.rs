//! Policy files as an operator uses them with a running API: read at start, read again when they change and on SIGHUP,
//! never half, and never lost by accident.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::{Backend, wait};
use nix::sys::signal::Signal;

const PATIENCE: Duration = Duration::from_secs(30);
const NOBODY: &str = "\"cluster:get_all\": \"!\"\n";
const REFUSAL: &str = "Policy doesn't allow cluster:get_all to be performed.";

/// Writes a file so that it appears whole, as configuration management does.
fn write(path: &Path, text: &str) -> Result<()> {
    let next = path.with_extension("next");
    fs::write(&next, text)?;
    fs::rename(next, path)?;
    Ok(())
}

async fn wait_for(api: &Api, status: u16) -> Result<()> {
    wait::until(&format!("status {status}"), PATIENCE, async || {
        let answer = api.rest.get("/clusters").await?;
        ensure!(
            answer.status.as_u16() == status,
            "{} {}",
            answer.status,
            answer.body
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn files_beside_the_configuration_decide_and_a_change_needs_no_restart() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let file = deployment.folder.join("policy.yaml");
    write(&file, NOBODY)?;
    let mut api = deployment.api().await?;
    let refused = api.rest.get("/clusters").await?;
    ensure!(
        refused.status.as_u16() == 403 && refused.detail() == REFUSAL,
        "{refused:?}"
    );
    let other = api.rest.get("/clustertemplates").await?;
    ensure!(other.status.as_u16() == 200, "{other:?}");

    write(&file, "# nothing\n")?;
    wait_for(&api, 200).await?;

    // A directory's files come after the file, and hidden ones do not count.
    let folder = deployment.folder.join("policy.d");
    fs::create_dir(&folder)?;
    write(&folder.join("20-last.yaml"), NOBODY)?;
    write(&folder.join("10-first.json"), "{\"cluster:get_all\": \"@\"}")?;
    write(&folder.join(".hidden.yaml"), "\"cluster:get_all\": \"@\"\n")?;
    wait_for(&api, 403).await?;

    // A file that goes away opens nothing, until an operator says that it shall.
    fs::remove_dir_all(&folder)?;
    fs::remove_file(&file)?;
    api.program
        .wait_log("a file that is gone opens nothing", PATIENCE)
        .await?;
    wait_for(&api, 403).await?;
    api.program.signal(Signal::SIGHUP)?;
    wait_for(&api, 200).await?;

    let ended = api.program.terminate(PATIENCE).await?;
    ensure!(ended.success(), "{ended}");
    Ok(())
}

#[tokio::test]
async fn a_file_that_is_named_has_to_be_there_and_one_that_cannot_be_reached_stops_a_start() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let misspelt = deployment.folder.join("polcy.yaml");
    // A loop of links: whether the file is there cannot be told, whoever asks.
    let unreachable = deployment.folder.join("loop.yaml");
    std::os::unix::fs::symlink(&unreachable, &unreachable)?;
    for file in [misspelt, unreachable] {
        deployment.set("oslo_policy", "policy_file", file.display());
        let Err(refused) = deployment.api().await else {
            anyhow::bail!("the API has started without {}", file.display());
        };
        let refused = format!("{refused:#}");
        ensure!(
            refused.contains(&format!("{}: cannot be read", file.display())),
            "{refused}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_broken_file_stops_a_start_and_leaves_a_running_api_as_it_was() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let file = deployment.folder.join("policy.yaml");
    write(&file, NOBODY)?;
    let api = deployment.api().await?;
    wait_for(&api, 403).await?;

    write(&file, "# one\n\"cluster:get_all\": role:reader or\n")?;
    let told = format!(
        "{}:2: rule \\\"cluster:get_all\\\": a check is missing at its end",
        file.display()
    );
    let plain = told.replace('\\', "");
    let logged = wait::until("the mistake in the log", PATIENCE, async || {
        let log = api.program.log();
        ensure!(log.contains(&told) || log.contains(&plain), "{log}");
        Ok(log)
    })
    .await?;
    ensure!(logged.contains("the rules stay as they were"), "{logged}");
    wait_for(&api, 403).await?;

    // At once, by the signal, although the file did not change again.
    let before = api.program.log().matches("the rules stay as they were").count();
    api.program.signal(Signal::SIGHUP)?;
    wait::until("another attempt", PATIENCE, async || {
        let now = api.program.log().matches("the rules stay as they were").count();
        ensure!(now > before, "{now}");
        Ok(())
    })
    .await?;
    wait_for(&api, 403).await?;

    let Err(refused) = deployment.api().await else {
        anyhow::bail!("the API has started with a broken policy file");
    };
    let refused = format!("{refused:#}");
    ensure!(refused.contains(&plain), "{refused}");
    Ok(())
}
