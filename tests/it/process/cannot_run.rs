//! One of two conductors cannot run the driver: its program is not here. What it claims is left to the other one, nothing
//! fails for it, and it does not attract the work of both.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::{self, Deployment};
use magnum_tests::files::copy_folder;
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(120);
const CREATES: usize = 40;

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_that_cannot_run_the_driver_fails_nothing() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Mariadb).await?;
    deployment.set("quotas", "max_clusters_per_project", CREATES);
    let folder = deployment.folder.join("broken-drivers");
    copy_folder(&deployment::drivers(), &folder)?;
    let launch = deployment.conductor_launch("broken").await?;
    let broken = launch.env("OS_DRIVERS__DRIVER_PATH", &folder).start().await?;
    let program = folder.join("scripted").join("driver.py");
    fs::set_permissions(&program, Permissions::from_mode(0o644))
        .with_context(|| program.display().to_string())?;
    let _well = deployment.conductor("well").await?;
    let api = deployment.api().await?;
    let rest = &api.rest;
    let template = rest.create_template("t").await?;
    for number in 0..CREATES {
        rest.create_cluster(&template, &format!("c-{number}"), json!({}))
            .await?;
    }
    let operations = deployment.settled_with(CREATES, PATIENCE).await?;
    for operation in &operations {
        ensure!(operation["state"] == "succeeded", "{operation}");
        ensure!(
            operation["failures"] == 0 && operation["attempts"] == 1,
            "{operation}"
        );
    }
    let log = broken.log();
    let left = log.matches("cannot run the driver").count();
    ensure!(left > 0, "it took nothing, so nothing is shown:\n{log}");
    ensure!(
        left < CREATES / 2,
        "{left} of {CREATES} operations were claimed for nothing"
    );
    Ok(())
}
