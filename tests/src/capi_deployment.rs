//! A deployment with a driver for Cluster API, on the real management cluster, with a double of the cloud: our programs, which
//! have adopted a package as an operator would, or have the driver of `deploy/drivers`; or Python's conductor in the package's own
//! environment.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::databases::Backend;
use crate::deployment::{Api, Deployment, path_with_python};
use crate::helm::Helm;
use crate::kubernetes_front::KubernetesFront;
use crate::management_cluster::ManagementCluster;
use crate::openstack_command::OpenstackCommand;
use crate::plugin_world::{PluginWorld, adopted, environment, shipped};
use crate::process::Program;
use crate::python_magnum::PythonMagnum;

/// Where the driver of our conductors comes from. All have drivers for the same clusters, so a deployment has one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The package magnum-capi-helm.
    CapiHelm,
    /// The package magnum-cluster-api.
    ClusterApi,
    /// `deploy/drivers`: ours, for clusters as magnum-capi-helm has them. Python's conductor has that package.
    Shipped,
}

impl Origin {
    /// Where clusters of the double's tenants are in the management cluster.
    pub fn namespace(self) -> String {
        match self {
            Self::CapiHelm | Self::Shipped => format!("magnum-{PROJECT}"),
            Self::ClusterApi => NAMESPACE.to_owned(),
        }
    }

    /// Drivers of the other package for the same clusters.
    const fn disabled(self) -> &'static str {
        match self {
            Self::CapiHelm | Self::Shipped => "k8s_cluster_api_ubuntu,k8s_cluster_api_flatcar",
            Self::ClusterApi => "k8s_capi_helm_v1",
        }
    }
}

/// The project of the tenants.
const PROJECT: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
/// Where magnum-cluster-api has all clusters. It does not make it.
const NAMESPACE: &str = "magnum-system";

/// What programs talk to, and their options.
#[derive(Debug)]
pub struct CapiDeployment {
    /// The double of the cloud.
    pub world: PluginWorld,
    /// Where clusters are made.
    pub management: &'static ManagementCluster,
    /// The conductors' helm.
    pub helm: Helm,
    /// Their database, vhost and options.
    pub deployment: Deployment,
    /// What conductors need in their environment.
    environment: Vec<(&'static str, String)>,
}

impl CapiDeployment {
    /// With the drivers of one origin.
    pub async fn new(origin: Origin) -> Result<Self> {
        let mut deployment = Deployment::new(Backend::Mariadb).await?;
        let world = PluginWorld::start(&mut deployment).await?;
        let (management, helm) = (ManagementCluster::controlled().await?, Helm::new()?);
        management.namespace(NAMESPACE).await?;
        let kubeconfig = match origin {
            Origin::CapiHelm | Origin::Shipped => management.kubeconfig_of("magnum-capi-helm").await?,
            Origin::ClusterApi => management.kubeconfig.clone(),
        };
        let kubeconfig = kubeconfig.to_str().context("a path that is no text")?;
        let drivers = match origin {
            Origin::CapiHelm | Origin::ClusterApi => adopted(&world).await?.to_owned(),
            Origin::Shipped => shipped(&deployment.folder)?,
        };
        let drivers = drivers.display().to_string();
        let runtime = deployment.folder.display().to_string();
        for (section, option, value) in [
            ("capi_helm", "kubeconfig_file", kubeconfig),
            ("drivers", "driver_path", &drivers),
            ("drivers", "disabled_drivers", origin.disabled()),
            ("python", "runtime_directory", &runtime),
            // Rounds are ten times as often.
            ("kubernetes", "health_polling_interval", "5"),
            ("api", "auth_strategy", "keystone"),
            ("keystone_authtoken", "auth_type", "password"),
            ("keystone_authtoken", "username", "magnum"),
            ("keystone_authtoken", "password", "secret"),
            ("keystone_authtoken", "project_name", "service"),
            ("keystone_authtoken", "user_domain_id", "default"),
            ("keystone_authtoken", "project_domain_id", "default"),
        ] {
            deployment.set(section, option, value);
        }
        let mut environment = vec![("KUBECONFIG", kubeconfig.to_owned())];
        environment.extend(helm.environment(path_with_python().await?));
        for (name, value) in &environment {
            deployment.set_environment(name, value);
        }
        Ok(Self {
            world,
            management,
            helm,
            deployment,
            environment,
        })
    }

    /// With our driver, for which the management cluster is behind a line that a test controls.
    pub async fn behind_a_front() -> Result<(Self, KubernetesFront)> {
        let mut capi = Self::new(Origin::Shipped).await?;
        let front = KubernetesFront::start(capi.management.kubernetes).await?;
        let own = capi.management.kubeconfig_of("magnum-capi-helm").await?;
        let mut kubeconfig: Value = serde_json::from_slice(&fs::read(own)?)?;
        kubeconfig["clusters"][0]["cluster"]["server"] = format!("https://{}", front.address()).into();
        let file = capi.deployment.folder.join("kubeconfig");
        fs::write(&file, kubeconfig.to_string())?;
        let file = file.to_str().context("a path that is no text")?;
        capi.deployment.set("capi_helm", "kubeconfig_file", file);
        capi.deployment.set_environment("KUBECONFIG", file);
        Ok((capi, front))
    }

    /// Our API, which the cloud's catalog lists.
    pub async fn api(&mut self) -> Result<Api> {
        let api = self.deployment.api().await?;
        self.world
            .list_service("container-infra", api.rest.base())
            .await?;
        Ok(api)
    }

    /// Our conductor.
    pub async fn conductor(&self) -> Result<Program> {
        self.deployment.conductor("ours").await
    }

    /// Python's conductor, in the environment in which the package is installed.
    pub async fn python_conductor(&self) -> Result<Program> {
        let mut python = PythonMagnum::installed_in(&environment()?, self.deployment.config())?;
        for (name, value) in &self.environment {
            python.set_environment(name, value);
        }
        python.conductor(&self.deployment.vhost).await
    }

    /// The command of one of the double's people.
    pub async fn tenant(&self, user: &str) -> Result<OpenstackCommand> {
        let url = format!("{}/identity/v3", self.world.urls.cloud);
        OpenstackCommand::start(&url, "RegionOne", user, "p", &self.deployment).await
    }
}
