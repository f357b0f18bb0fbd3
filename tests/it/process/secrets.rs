//! A user's token goes to the driver and nowhere else in clear: no table, no file of the database, no log of a
//! program (at debug level), not while the operation runs and not afterwards. Nor is it in the log when a message
//! cannot be delivered.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::deployment::Deployment;
use magnum_tests::{Backend, wait};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(60);
const TOKEN: &str = "gAAAAABtoken-that-nobody-may-read";

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            files(&entry.path(), found)?;
        } else if entry.file_type()?.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The files below `folder` that contain `text`.
fn containing(folder: &Path, text: &str) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    files(folder, &mut all)?;
    let wanted = text.as_bytes();
    let has = |path: &PathBuf| {
        fs::read(path)
            .unwrap_or_default()
            .windows(wanted.len())
            .any(|part| part == wanted)
    };
    Ok(all.into_iter().filter(has).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_reaches_the_driver_and_no_disk_and_no_log() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    let rest = api.rest.with_token(TOKEN);
    let labels = json!({"scripted_create": "wait"});
    let cluster = rest.create_cluster(&template, "c", labels).await?;
    let begun = wait::until("the driver to begin", PATIENCE, async || {
        let begun = deployment.record.begun("create", &cluster)?;
        begun.into_iter().next().ok_or_else(|| anyhow::anyhow!("not yet"))
    })
    .await?;
    ensure!(
        begun.token.as_deref() == Some(TOKEN),
        "the driver acts without the user's token: {begun:?}"
    );
    // The driver's own record is the one place that has it: it was told to write it there.
    let leaks = |when: &str| {
        let mut found = containing(&deployment.folder, TOKEN)?;
        found.retain(|path| !path.starts_with(deployment.record.folder()));
        ensure!(found.is_empty(), "{when}, the token is in {found:?}");
        for program in [&conductor, &api.program] {
            ensure!(
                !program.log().contains(TOKEN),
                "{when}, the token is in the log of {}",
                program.name()
            );
        }
        Ok(())
    };
    leaks("while the operation runs")?;
    deployment.record.let_go(&cluster)?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    rest.resize(&cluster, 2).await?.expect(202)?;
    rest.wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE).await?;
    rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    rest.wait_gone(&cluster, PATIENCE).await?;
    deployment.settled(PATIENCE).await?;
    leaks("afterwards")
}

/// A token as a library prints the bytes of a message: as numbers.
fn as_numbers(text: &str) -> String {
    let numbers: Vec<String> = text.bytes().map(|byte| byte.to_string()).collect();
    numbers.join(", ")
}

/// RabbitMQ gives a message that no queue takes back to its sender, and the AMQP library writes what it was given
/// back into the log, unless it is kept from that.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_back_is_not_in_the_log_at_any_level() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set(
        "DEFAULT",
        "default_log_levels",
        "lapin=TRACE,lapin.returned_messages=TRACE,amq_protocol=TRACE,magnum_rpc=TRACE,magnum_db=TRACE,magnum_openstack=TRACE,magnum_common=TRACE",
    );
    deployment.set("api", "publish_timeout", 3);
    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("small").await?;
    let rest = api.rest.with_token(TOKEN);
    // One that arrives, so that its frames go out, and one that does not.
    let cluster = rest.create_cluster(&template, "c", json!({})).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    deployment.settled(PATIENCE).await?;
    ensure!(conductor.terminate(PATIENCE).await?.success());
    deployment
        .vhost
        .management()
        .delete_queue("magnum-conductor")
        .await?;
    let refused = rest.delete(&format!("/clusters/{cluster}")).await?;
    ensure!(
        refused.status.as_u16() == 503,
        "{}: {}",
        refused.status,
        refused.body
    );

    for program in [&conductor, &api.program] {
        let log = program.log();
        ensure!(
            log.contains("DEBUG"),
            "{} logs too little to prove it",
            program.name()
        );
        for leak in [TOKEN.to_owned(), as_numbers(TOKEN)] {
            ensure!(
                !log.contains(&leak),
                "the token is in the log of {}",
                program.name()
            );
        }
    }
    ensure!(api.program.log().contains("no queue takes the message"));
    Ok(())
}
