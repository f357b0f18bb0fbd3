//! The worlds of clusters, as files that the driver's doubles read and write (`tests/testbed/heat_replay`), and the driver,
//! adopted as an operator would.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use magnum_tests::deployment::Deployment;
use magnum_tests::heat_cloud::environment;
use magnum_tests::process::Launch;
use magnum_tests::run_dir::{base, run_dir};
use serde_json::Value;
use tokio::sync::OnceCell;

use super::rows::DRIVER;

/// The worlds of a deployment's clusters.
pub struct Worlds {
    folder: PathBuf,
}

impl Worlds {
    /// Has the deployment's conductors find the driver, and the driver its worlds.
    pub async fn in_deployment(deployment: &mut Deployment) -> Result<Self> {
        let folder = deployment.folder.join("worlds");
        std::fs::create_dir(&folder)?;
        deployment.set("drivers", "driver_path", adopted().await?.display());
        deployment.set(
            "python",
            "runtime_directory",
            deployment.folder.display().to_string(),
        );
        deployment.set_environment("PYTHONPATH", &package().display().to_string());
        deployment.set_environment("MAGNUM_TEST_WORLDS", &folder.display().to_string());
        Ok(Self { folder })
    }

    /// Describes the world of a cluster.
    pub fn put(&self, cluster: &str, world: &Value) -> Result<()> {
        Ok(std::fs::write(
            self.folder.join(format!("{cluster}.json")),
            world.to_string(),
        )?)
    }

    /// What the cluster's driver has asked the cloud for.
    pub fn calls(&self, cluster: &str) -> Result<Vec<Value>> {
        let path = self.folder.join(format!("{cluster}.calls"));
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = std::fs::read_to_string(&path)?;
        text.lines()
            .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
            .collect()
    }
}

/// The folder with the driver. An adoption imports Magnum, which takes seconds of a processor: once for all tests of a run.
async fn adopted() -> Result<&'static Path> {
    static ADOPTED: OnceCell<PathBuf> = OnceCell::const_new();
    let adopt = async || {
        let folder = run_dir()?.folder("replay-adopted")?;
        let adopt = Launch::program("magnum-driver-manage")?
            .args(["adopt", "--driver", DRIVER, "--python"])
            .args([environment()?, "--into".into(), folder.clone()])
            .env("PYTHONPATH", package());
        adopt.output().await?;
        Ok::<_, anyhow::Error>(folder)
    };
    Ok(ADOPTED.get_or_try_init(adopt).await?)
}

/// Where Python finds the package with the driver.
fn package() -> PathBuf {
    base().with_file_name("testbed").join("heat_replay")
}
