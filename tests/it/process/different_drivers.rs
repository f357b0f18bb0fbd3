//! Two conductors with different drivers, and templates of an older release, which name none: whoever takes a request, it is
//! carried out by the driver that provides the cluster's type, on the conductor that has it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_tests::Backend;
use magnum_tests::deployment::{self, Deployment};
use serde_json::json;

const PATIENCE: Duration = Duration::from_secs(120);

/// A folder with the scripted driver under another name, for clusters of `os`.
fn driver_for(os: &str, folder: &Path) -> Result<PathBuf> {
    let (from, to) = (deployment::drivers().join("scripted"), folder.join(os).join(os));
    fs::create_dir_all(&to)?;
    fs::copy(from.join("driver.py"), to.join("driver.py"))?;
    let manifest = fs::read_to_string(from.join("driver.toml"))?;
    let manifest = manifest
        .replace("name = \"scripted\"", &format!("name = \"{os}\""))
        .replace("os = \"ubuntu\"", &format!("os = \"{os}\""));
    fs::write(to.join("driver.toml"), manifest)?;
    Ok(folder.join(os))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_driver_is_the_same_whichever_conductor_claims_the_request() -> Result<()> {
    let deployment = Deployment::new(Backend::Mariadb).await?;
    let mut conductors = Vec::new();
    for os in ["flatcar", "ubuntu"] {
        let folder = driver_for(os, &deployment.folder)?;
        let launch = deployment.conductor_launch(os).await?;
        conductors.push(launch.env("OS_DRIVERS__DRIVER_PATH", &folder).start().await?);
    }
    let api = deployment.api().await?;
    let rest = &api.rest;
    let mut wanted = Vec::new();
    for os in ["flatcar", "ubuntu"] {
        let template = rest.create_template_for(os, "ubuntu").await?;
        let older = format!(
            "UPDATE cluster_template SET driver = NULL, cluster_distro = '{os}' WHERE uuid = '{template}'"
        );
        deployment.database.execute(&older).await?;
        wanted.push((os, template));
    }
    let mut clusters = Vec::new();
    for number in 0..8 {
        for (os, template) in &wanted {
            clusters.push((
                os,
                rest.create_cluster(template, &format!("{os}-{number}"), json!({}))
                    .await?,
            ));
        }
    }
    let operations = deployment.settled_with(clusters.len(), PATIENCE).await?;
    for (os, cluster) in clusters {
        let operation = operations.iter().find(|one| one["cluster"] == cluster.as_str());
        let operation = operation.with_context(|| cluster.clone())?;
        ensure!(
            operation["state"] == "succeeded" && operation["driver"] == *os,
            "{os}: {operation}"
        );
    }
    Ok(())
}
