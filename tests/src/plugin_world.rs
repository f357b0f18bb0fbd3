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
use crate::files::copy_folder;
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
    authority: PathBuf,
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

/// What conductors have done, counted.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct WorldProgress {
    /// Calls of helm.
    pub helm_calls: u64,
    /// Between the first that anybody asked of the world and the last call of helm, in seconds.
    pub create_seconds: f64,
    /// Looks at clusters.
    pub looks: u64,
    /// Between the first of them and the last, in seconds.
    pub look_seconds: f64,
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
        let world = Self::open(&deployment.folder).await?;
        deployment.give_conductors_processors();
        for (section, option, value) in world.options() {
            deployment.set(section, option, value);
        }
        for (name, value) in world.environment().await? {
            deployment.set_environment(name, &value);
        }
        Ok(world)
    }

    /// Starts the doubles; what conductors need to find them is in `folder`.
    pub async fn open(folder: &Path) -> Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        let mut command = Command::new(python()?);
        little_environment(&mut command)
            .arg("-B")
            .arg(testbed())
            .arg(&kubeconfig);
        let mut doubles = OsloPeer::start_command("plugin-world", command).await?;
        let urls = serde_json::from_value(doubles.ask(json!({"do": "urls"})).await??)?;
        let authority = folder.join("cloud-ca.pem");
        std::fs::write(&authority, "CA-BUNDLE-OF-THE-CLOUD\n")?;
        Ok(Self {
            doubles,
            urls,
            kubeconfig,
            authority,
        })
    }

    /// The options of the recordings: those that a deployment has to have, and defaults else.
    pub fn options(&self) -> Vec<(&'static str, &'static str, String)> {
        let keystone = format!("{}/identity/v3", self.urls.cloud);
        let kubeconfig = self.kubeconfig.display().to_string();
        let authority = self.authority.display().to_string();
        let options = [
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
            ("drivers", "openstack_ca_file", &authority),
            ("drivers", "verify_ca", "true"),
            ("capi_helm", "kubeconfig_file", &kubeconfig),
            ("capi_helm", "helm_chart_repo", "https://charts.example.test/capi"),
            ("cluster", "pre_delete_lb_timeout", "3"),
        ];
        let options = options.into_iter();
        options
            .map(|(section, option, value)| (section, option, value.to_owned()))
            .collect()
    }

    /// The variables that a conductor needs.
    pub async fn environment(&self) -> Result<[(&'static str, String); 3]> {
        let helm = testbed().join("bin");
        Ok([
            ("KUBECONFIG", self.kubeconfig.display().to_string()),
            ("HELM_DOUBLE", self.urls.helm.clone()),
            (
                "PATH",
                format!("{}:{}", helm.display(), path_with_python().await?),
            ),
        ])
    }

    /// Has the cloud's catalog say that a service is there.
    pub async fn list_service(&mut self, service: &str, url: &str) -> Result<()> {
        let request = json!({"do": "list_service", "service": service, "url": url});
        self.ask(request).await.map(drop)
    }

    /// Names of what has been made in the cloud and not been removed, by kind.
    pub async fn in_cloud(&mut self) -> Result<Value> {
        self.ask(json!({"do": "in_cloud"})).await
    }

    /// Has requests to the cloud wait whose path matches this pattern; none, if it is empty. What a held request asks for
    /// is done when it goes on, even if nobody waits for the reply any more.
    pub async fn hold_cloud(&mut self, pattern: &str) -> Result<()> {
        let request = json!({"do": "hold_cloud", "pattern": pattern});
        self.ask(request).await.map(drop)
    }

    /// How many requests to the cloud wait.
    pub async fn cloud_holds(&mut self) -> Result<u64> {
        let count = self.ask(json!({"do": "cloud_holds"})).await?;
        count.as_u64().context("no number")
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

    /// How calls of helm end from now on: `ok`, `hang`, or a failure.
    pub async fn set_helm(&mut self, mode: &str) -> Result<()> {
        self.ask(json!({"do": "set_helm", "mode": mode})).await.map(drop)
    }

    /// Adds clusters with the stacks `bench-0` and so on, of the project `project`, that are being built.
    pub async fn build(&mut self, clusters: u64, project: &str) -> Result<()> {
        let namespace = format!("magnum-{project}");
        self.ask(json!({"do": "build", "clusters": clusters, "namespace": namespace}))
            .await
            .map(drop)
    }

    /// What conductors have done since the effects were taken.
    pub async fn progress(&mut self) -> Result<WorldProgress> {
        Ok(serde_json::from_value(
            self.ask(json!({"do": "progress"})).await?,
        )?)
    }

    /// The process id of the doubles.
    pub fn pid(&self) -> u32 {
        self.doubles.pid()
    }

    async fn ask(&mut self, request: Value) -> Result<Value> {
        let what = request["do"].clone();
        let answer = self.doubles.ask(request).await?;
        answer.with_context(|| format!("the doubles: {what}"))
    }
}

/// A folder of drivers with the one of `deploy/drivers` that has the name of a package's, in `folder`.
pub fn shipped(folder: &Path) -> Result<PathBuf> {
    let drivers = folder.join("drivers");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/drivers/k8s_capi_helm_v1");
    copy_folder(&shipped, &drivers.join("k8s_capi_helm_v1"))?;
    Ok(drivers)
}

/// The folders of the packages' drivers, adopted as an operator would: once for all tests of the process.
pub async fn adopted(world: &PluginWorld) -> Result<&'static Path> {
    static FOLDER: OnceCell<PathBuf> = OnceCell::const_new();
    let folder = FOLDER.get_or_try_init(async || {
        let from = environment()?;
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

/// The virtual environment in which the packages are installed.
pub fn environment() -> Result<PathBuf> {
    let folder = base().join("plugins");
    ensure!(
        folder.join("bin/python").exists(),
        "{} is missing: tests/run makes the environment of the driver packages",
        folder.display()
    );
    Ok(folder)
}

/// A kubeconfig of a management cluster that is not asked anything: the packages read it when they are imported.
pub fn kubeconfig_of_none() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "none",
        "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
        "clusters": [{"name": "none", "cluster": {"server": "https://127.0.0.1:9"}}],
        "users": [{"name": "none", "user": {"token": "none"}}],
    })
}

fn testbed() -> PathBuf {
    base().with_file_name("testbed").join("plugins")
}
