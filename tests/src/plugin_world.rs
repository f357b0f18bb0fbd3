//! The world of the Cluster API driver packages: doubles of a cloud, a management cluster, a workload cluster and `helm`
//! (`tests/testbed/plugins`), and the Python environment with the packages, which `tests/run` makes.
//!
//! The doubles are one process with one log, so that effects on all of them have one order. A world has no isolation
//! between clusters: one case at a time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::deployment::{Deployment, path_with_python};
use crate::oslo_peer::{OsloPeer, python};
use crate::process::{Launch, little_environment};
use crate::run_dir::{base, run_dir};

/// The world of one deployment.
#[derive(Debug)]
pub struct PluginWorld {
    doubles: OsloPeer,
    /// Where the doubles are.
    pub urls: Urls,
    kubeconfig: PathBuf,
}

/// Where the doubles are.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "the names are the doubles'")]
pub struct Urls {
    pub cloud: String,
    pub management: String,
    pub workload: String,
    pub helm: String,
}

/// What the doubles have seen.
#[derive(Debug, Clone, Deserialize)]
pub struct Effects {
    /// In order; reads of the clusters' APIs, and logins, are left out.
    pub steps: Vec<Value>,
    /// Reads of the cloud, counted.
    pub cloud_reads: BTreeMap<String, u64>,
}

impl PluginWorld {
    /// Starts the doubles, and has the deployment's conductors live in their world.
    pub async fn start(deployment: &mut Deployment) -> Result<Self> {
        let kubeconfig = deployment.folder.join("kubeconfig");
        let mut command = Command::new(python()?);
        little_environment(&mut command)
            .arg("-B")
            .arg(testbed())
            .arg(&kubeconfig);
        let mut doubles = OsloPeer::start_command("plugin-world", command).await?;
        let urls = serde_json::from_value(doubles.ask(json!({"do": "urls"})).await??)?;
        let world = Self {
            doubles,
            urls,
            kubeconfig,
        };
        world.configure(deployment).await?;
        Ok(world)
    }

    /// The options of the recordings: those that a deployment has to have, and defaults else.
    async fn configure(&self, deployment: &mut Deployment) -> Result<()> {
        let keystone = format!("{}/identity/v3", self.urls.cloud);
        let authority = deployment.folder.join("cloud-ca.pem");
        std::fs::write(&authority, "CA-BUNDLE-OF-THE-CLOUD\n")?;
        for (section, option, value) in [
            ("keystone_auth", "auth_type", "password"),
            ("keystone_auth", "auth_url", &keystone),
            ("keystone_auth", "username", "magnum"),
            ("keystone_auth", "password", "secret"),
            ("keystone_auth", "project_name", "service"),
            ("keystone_auth", "user_domain_id", "default"),
            ("keystone_auth", "project_domain_id", "default"),
            ("keystone_authtoken", "www_authenticate_uri", &keystone),
            ("keystone_authtoken", "auth_url", &keystone),
            ("cinder_client", "region_name", "RegionOne"),
            ("drivers", "openstack_ca_file", &authority.display().to_string()),
            ("drivers", "verify_ca", "true"),
            (
                "capi_helm",
                "kubeconfig_file",
                &self.kubeconfig.display().to_string(),
            ),
            ("capi_helm", "helm_chart_repo", "https://charts.example.test/capi"),
            ("cluster", "pre_delete_lb_timeout", "3"),
        ] {
            deployment.set(section, option, value);
        }
        deployment.set_environment("KUBECONFIG", &self.kubeconfig.display().to_string());
        deployment.set_environment("HELM_DOUBLE", &self.urls.helm);
        let helm = testbed().join("bin");
        let path = format!("{}:{}", helm.display(), path_with_python().await?);
        deployment.set_environment("PATH", &path);
        Ok(())
    }

    /// An empty world without faults.
    pub async fn reset(&mut self) -> Result<()> {
        self.ask(json!({"do": "reset"})).await.map(drop)
    }

    /// Keeps the world as it is.
    pub async fn keep(&mut self, name: &str) -> Result<()> {
        self.ask(json!({"do": "keep", "name": name})).await.map(drop)
    }

    /// The world as it was kept.
    pub async fn restore(&mut self, name: &str) -> Result<()> {
        self.ask(json!({"do": "restore", "name": name})).await.map(drop)
    }

    /// Adds what a recorded case of `package` begins with, to the world of a cluster whose stack is `stack`.
    pub async fn prepare(
        &mut self,
        case: &Value,
        package: &str,
        cluster: &str,
        stack: Option<&str>,
    ) -> Result<()> {
        let request =
            json!({"do": "prepare", "case": case, "package": package, "cluster": cluster, "stack": stack});
        self.ask(request).await.map(drop)
    }

    /// Drops the effects so far.
    pub async fn forget(&mut self) -> Result<()> {
        self.ask(json!({"do": "forget"})).await.map(drop)
    }

    /// The effects since the last time, in the form of the recordings. The end of `stacks` is random, and `certificates`
    /// are told by their names.
    pub async fn effects(
        &mut self,
        stacks: &[String],
        certificates: &BTreeMap<String, String>,
    ) -> Result<Effects> {
        let request = json!({"do": "effects", "stacks": stacks, "certificates": certificates});
        Ok(serde_json::from_value(self.ask(request).await?)?)
    }

    /// A value in the form of the recordings.
    pub async fn scrub(&mut self, value: &Value, stacks: &[String]) -> Result<Value> {
        self.ask(json!({"do": "scrub", "value": value, "stacks": stacks}))
            .await
    }

    async fn ask(&mut self, request: Value) -> Result<Value> {
        let what = request["do"].clone();
        let answer = self.doubles.ask(request).await?;
        answer.with_context(|| format!("the doubles: {what}"))
    }
}

/// The folders of the packages' drivers, adopted as an operator would: once for all tests of the process.
pub async fn adopted(world: &PluginWorld) -> Result<&'static Path> {
    static FOLDER: OnceCell<PathBuf> = OnceCell::const_new();
    let folder = FOLDER.get_or_try_init(async || {
        let from = base().join("plugins");
        ensure!(
            from.join("bin/python").exists(),
            "{} is missing: tests/run makes the environment of the driver packages",
            from.display()
        );
        let into = run_dir()?.folder("adopted")?;
        let finished = Launch::program("magnum-driver-manage")?
            .args(["adopt", "--python"])
            .args([&from])
            .args(["--into"])
            .args([&into])
            // One of the packages reads it when a driver is made.
            .env("KUBECONFIG", &world.kubeconfig)
            .finish()
            .await?;
        ensure!(finished.status.success(), "{finished:?}");
        Ok::<_, anyhow::Error>(into)
    });
    Ok(folder.await?)
}

fn testbed() -> PathBuf {
    base().with_file_name("testbed").join("plugins")
}
