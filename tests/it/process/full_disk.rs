//! A full disk under the API's SQLite: writing is refused with a clear fault, reading goes on, and so does writing
//! when there is room again. What the conductor does is in `bad_input`.

use anyhow::{Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::Deployment;
use magnum_tests::full_disk::FullDisk;
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
