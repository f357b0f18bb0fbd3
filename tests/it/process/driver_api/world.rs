//! A deployment with the disk driver, whose own API is open.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use magnum_tests::Backend;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::process::Program;
use magnum_tests::rest::{Answer, IMAGE, Rest};
use reqwest::Method;
use serde_json::{Value, json};

pub const PATIENCE: Duration = Duration::from_secs(90);

/// A running deployment.
pub struct World {
    pub deployment: Deployment,
    pub conductor: Program,
    pub api: Api,
    template: String,
    root: PathBuf,
    folder: PathBuf,
}

/// An answer with its headers.
pub struct Seen {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

impl World {
    /// On this database; `change` sets what else the test wants.
    pub async fn start(backend: Backend, change: impl FnOnce(&mut Deployment)) -> Result<Self> {
        let mut deployment = Deployment::new(backend).await?;
        let root = deployment.folder.join("built");
        let drivers = deployment.folder.join("drivers");
        let folder = drivers.join("disk");
        fs::create_dir_all(&folder)?;
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/drivers/disk");
        for name in ["driver.py", "driver.toml"] {
            fs::copy(shipped.join(name), folder.join(name))?;
        }
        fs::set_permissions(folder.join("driver.py"), fs::Permissions::from_mode(0o755))?;
        edit(
            &folder.join("driver.toml"),
            "root = \"/var/lib/magnum/disk\"",
            &format!("root = {:?}", root.display().to_string()),
        )?;
        edit(
            &folder.join("driver.toml"),
            "obey_labels = false",
            "obey_labels = true",
        )?;
        deployment.set("drivers", "driver_path", drivers.display());
        deployment.set("drivers", "custom_api", "disk");
        change(&mut deployment);
        let conductor = deployment.conductor("one").await?;
        let api = deployment.api().await?;
        let body = json!({
            "name": "t", "image_id": IMAGE, "coe": "kubernetes", "external_network_id": "public",
            "keypair_id": "key", "flavor_id": "m1.small", "master_flavor_id": "m1.small", "driver": "disk",
            "public": true,
        });
        let template = api.rest.post("/clustertemplates", &body).await?.expect(201)?;
        Ok(Self {
            template: template["uuid"].as_str().context("no uuid")?.to_owned(),
            deployment,
            conductor,
            api,
            root,
            folder,
        })
    }

    /// The project of the clusters.
    pub fn rest(&self) -> Rest {
        self.api.rest.as_somebody("home", "user")
    }

    /// A cluster that is built; the driver behaves as its labels say.
    pub async fn cluster(&self, name: &str, labels: Value) -> Result<String> {
        let rest = self.rest();
        let cluster = rest.create_cluster(&self.template, name, labels).await?;
        rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
        self.deployment.settled(PATIENCE).await?;
        Ok(cluster)
    }

    /// Sends a request below `driver/` of a cluster, as the project of the cluster.
    pub async fn ask(
        &self,
        method: Method,
        cluster: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer> {
        let path = format!("/clusters/{cluster}/driver/{path}");
        self.rest().send(method, &path, body).await
    }

    /// The same, with the answer's headers.
    pub async fn look(&self, method: Method, cluster: &str, path: &str) -> Result<Seen> {
        let url = format!("{}/clusters/{cluster}/driver/{path}", self.api.rest.base());
        let request = reqwest::Client::new()
            .request(method, url)
            .header("OpenStack-API-Version", "container-infra 1.16")
            .header("X-Project-Id", "home")
            .header("X-User-Id", "user");
        let response = request.timeout(PATIENCE).send().await?;
        let headers = response.headers().iter();
        Ok(Seen {
            status: response.status().as_u16(),
            headers: headers
                .map(|(name, value)| {
                    (
                        name.to_string(),
                        String::from_utf8_lossy(value.as_bytes()).into_owned(),
                    )
                })
                .collect(),
            body: serde_json::from_str(&response.text().await?).unwrap_or_default(),
        })
    }

    /// Changes a line of the driver's manifest. Nobody reads it before a SIGHUP.
    pub fn change_manifest(&self, from: &str, to: &str) -> Result<()> {
        edit(&self.folder.join("driver.toml"), from, to)
    }

    /// The journal of the driver's program: what its calls with this event did.
    pub fn driver_journal(&self, event: &str) -> Result<Vec<Value>> {
        let lines = fs::read_to_string(self.root.join("journal.log"))?;
        let lines: Vec<Value> = lines
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        Ok(lines.into_iter().filter(|line| line["event"] == event).collect())
    }

    /// The process ids of the program's calls of its own API.
    pub fn own_api_calls(&self) -> Result<Vec<u32>> {
        let begun = self.driver_journal("begin")?;
        let of_api = begun.iter().filter(|line| line["call"] == "api");
        of_api
            .map(|line| {
                let pid = line["pid"].as_u64().context("a process id")?;
                Ok(u32::try_from(pid)?)
            })
            .collect()
    }

    /// The entries of calls in the conductors' journal.
    pub async fn entries(&self) -> Result<Vec<Value>> {
        let operations = self.deployment.operations().await?;
        let entries = operations.into_iter();
        Ok(entries
            .filter(|one| one["kind"] == "cluster_driver_call")
            .collect())
    }
}

fn edit(file: &Path, from: &str, to: &str) -> Result<()> {
    let text = fs::read_to_string(file)?;
    anyhow::ensure!(text.contains(from), "{} has no `{from}`", file.display());
    fs::write(file, text.replace(from, to))?;
    Ok(())
}
