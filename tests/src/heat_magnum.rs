//! A Python Magnum 22 with the Heat driver that it brings, in the tests' cloud: what a conductor that runs the same driver
//! is compared with.

use anyhow::Result;

use crate::builders::ConfigFile;
use crate::databases::{Backend, TestDatabase};
use crate::heat_cloud::HeatCloud;
use crate::keystone_people::Person;
use crate::process::Program;
use crate::python_magnum::{PythonApi, PythonMagnum, Release, Served};
use crate::rabbitmq;
use crate::rest::Rest;
use crate::run_dir::run_dir;

/// One that takes requests, on a database (MariaDB, with the tables of its time) and a vhost of its own. It looks at
/// clusters every ten seconds, which no option changes.
#[derive(Debug)]
pub struct HeatMagnum {
    /// The cloud in which it makes clusters.
    pub cloud: &'static HeatCloud,
    /// Its database.
    pub database: TestDatabase,
    /// Its conductor.
    pub conductor: Program,
    /// Its API.
    pub api: PythonApi,
}

impl HeatMagnum {
    /// Starts API and conductor.
    pub async fn start() -> Result<Self> {
        let cloud = HeatCloud::shared().await?;
        let database = TestDatabase::empty(Backend::Mariadb).await?;
        let vhost = rabbitmq::vhost().await?;
        let folder = run_dir()?.folder("heat-magnum")?;
        let config = ConfigFile::for_test(&database.url(), &vhost.transport_url(), &folder);
        let python = PythonMagnum::in_cloud(Release::Magnum22, &config, cloud).await?;
        python.manage(&["upgrade"]).await?;
        let conductor = python.conductor(&vhost).await?;
        let api = python.api(Served::Wsgi).await?;
        Ok(Self {
            cloud,
            database,
            conductor,
            api,
        })
    }

    /// A client of its API.
    pub async fn rest(&self, person: &Person) -> Result<Rest> {
        let token = self.cloud.heat.people.token(person).await?;
        Ok(self.api.rest.with_token(&token))
    }
}
