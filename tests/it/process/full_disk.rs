//! A full disk under the API's SQLite: writing is refused with a clear fault, reading goes on, and so does writing
//! when there is room again. A conductor that starts then waits; what one at work does is in `bad_input`.

use std::time::Duration;

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::full_disk::FullDisk;
use magnum_tests::wait;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn api_reports_a_full_disk() -> Result<()> {
    let deployment = Deployment::new(Backend::Sqlite).await?;
    let disk = FullDisk::new(&deployment.database.name)?;
    let _conductor = deployment.conductor("one").await?;
    let api = deployment.api_on(|launch| disk.hold(launch)).await?;
    let template = api.rest.create_template("before").await?;

    disk.fill()?;
    let refused = api.rest.post("/clustertemplates", &json!({"name": "x", "image_id": magnum_tests::rest::IMAGE, "coe": "kubernetes", "external_network_id": "public"})).await?;
    ensure!(
        refused.status.is_server_error(),
        "{}: {}",
        refused.status,
        refused.body
    );
    ensure!(!refused.detail().is_empty(), "without a fault: {}", refused.body);
    api.rest
        .get(&format!("/clustertemplates/{template}"))
        .await?
        .expect(200)?;

    disk.free()?;
    api.rest.create_template("after").await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conductor_that_starts_on_a_full_disk_waits_for_room() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set("database", "retry_interval", "1");
    let disk = FullDisk::new(&deployment.database.name)?;
    disk.fill()?;
    let launch = deployment.conductor_launch_with("one", |config| config).await?;
    let conductor = disk.hold(launch).spawn()?;
    let says = async |what: &'static str, words: &str| {
        wait::until(what, Duration::from_secs(60), async || {
            let log = conductor.log();
            if log.contains(words) { Ok(()) } else { Err(log) }
        })
        .await
    };
    says("it to wait", "the database does not answer yet").await?;
    disk.free()?;
    says("it to run", "the conductor runs").await
}
