//! Our API and one conductor in the tests' cloud, with the Heat driver of Magnum 22, adopted as an operator would.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use tokio::sync::OnceCell;

use crate::databases::{Backend, TestDatabase};
use crate::deployment::{Api, Deployment};
use crate::heat_cloud::{HeatCloud, environment};
use crate::keystone_people::Person;
use crate::process::{Launch, Program};
use crate::rabbitmq;
use crate::rest::Rest;
use crate::run_dir::run_dir;

/// Both programs.
#[derive(Debug)]
pub struct HeatDeployment {
    /// The cloud in which they make clusters.
    pub cloud: &'static HeatCloud,
    /// Their database, vhost and options.
    pub deployment: Deployment,
    /// The region in which the catalog has the API.
    pub region: String,
    /// The API.
    pub api: Api,
    /// The conductor.
    pub conductor: Program,
}

impl HeatDeployment {
    /// On a database of its own.
    pub async fn start() -> Result<Self> {
        Self::on(TestDatabase::empty(Backend::Mariadb).await?).await
    }

    /// On this database, which is empty or another Magnum's: `magnum-db-manage upgrade` comes first.
    pub async fn on(database: TestDatabase) -> Result<Self> {
        let cloud = HeatCloud::shared().await?;
        let mut deployment = Deployment::on(database, rabbitmq::vhost().await?).await?;
        deployment.give_conductors_processors();
        deployment.set("drivers", "driver_path", adopted().await?.display());
        // A look asks Heat, which has the same processors.
        deployment.set("conductor", "status_poll_interval", 3);
        for (section, option, value) in cloud.services.options() {
            deployment.set(section, option, value);
        }
        // The machines of clusters are told where the API is, so it is there before the conductor.
        let api = deployment.api().await?;
        let port = reqwest::Url::parse(api.rest.base())?.port().context("a port")?;
        let options = cloud.options(port).await?;
        let region = options.iter().find(|(section, ..)| *section == "magnum_client");
        let region = region.context("a region")?.2.clone();
        for (section, option, value) in options {
            deployment.set(section, option, value);
        }
        let conductor = deployment.conductor("heated").await?;
        Ok(Self {
            cloud,
            deployment,
            region,
            api,
            conductor,
        })
    }

    /// A client of its API.
    pub async fn rest(&self, person: &Person) -> Result<Rest> {
        let token = self.cloud.heat.people.token(person).await?;
        Ok(self.api.rest.with_token(&token))
    }
}

/// The folder with the driver. An adoption imports Magnum, which takes seconds of a processor: once for all tests of a run.
async fn adopted() -> Result<&'static PathBuf> {
    static ADOPTED: OnceCell<PathBuf> = OnceCell::const_new();
    let adopt = async || {
        let folder = run_dir()?.folder("heat-adopted")?;
        let adopt = Launch::program("magnum-driver-manage")?
            .args(["adopt", "--python"])
            .args([environment()?, "--into".into(), folder.clone()]);
        adopt.output().await?;
        Ok(folder)
    };
    ADOPTED.get_or_try_init(adopt).await
}
