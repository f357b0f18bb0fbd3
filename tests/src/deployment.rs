//! A whole deployment: a database, a vhost, a configuration, and the programs as processes.
//!
//! Each test has its own. Conductors and APIs share everything but their names and ports, as on several hosts;
//! the scripted driver writes down what they have it do.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::builders::ConfigFile;
use crate::databases::{Backend, TestDatabase};
use crate::driver_record::DriverRecord;
use crate::ports::free_port;
use crate::process::{Launch, Program, Ready};
use crate::rabbitmq::{self, Vhost};
use crate::rest::{IMAGE, Rest};
use crate::run_dir::run_dir;
use crate::wait;

/// One deployment.
#[derive(Debug)]
pub struct Deployment {
    /// Its files.
    pub folder: PathBuf,
    /// Its database, with all tables.
    pub database: TestDatabase,
    /// Its part of the broker.
    pub vhost: Vhost,
    /// What its driver did.
    pub record: DriverRecord,
    config: ConfigFile,
    environment: Vec<(String, String)>,
    like_servers: bool,
}

/// A running API and a client for it.
#[derive(Debug)]
pub struct Api {
    /// The process.
    pub program: Program,
    /// A client.
    pub rest: Rest,
}

impl Deployment {
    /// On the shared servers.
    pub async fn new(backend: Backend) -> Result<Self> {
        Self::on(TestDatabase::empty(backend).await?, rabbitmq::vhost().await?).await
    }

    /// On this empty database and this vhost.
    pub async fn on(database: TestDatabase, vhost: Vhost) -> Result<Self> {
        let folder = run_dir()?.folder("deployment")?;
        let record = DriverRecord::new(folder.join("record"));
        fs::create_dir_all(record.folder())?;
        let images = folder.join("images.json");
        let catalog = json!([{"id": "0c6bd6d8-4ac2-4e5e-9f24-0d5d1e4f8d6f", "name": IMAGE, "properties": {"magnum_distro": "ubuntu"}}]);
        fs::write(&images, catalog.to_string())?;
        let config = ConfigFile::for_test(&database.url(), &vhost.transport_url(), &folder)
            .set("api", "image_catalog_file", images.display())
            .set("drivers", "driver_path", drivers().display())
            .set("certificates", "cert_manager_type", "x509keypair")
            .set("certificates", "key_type", "ecdsa-p256");
        let deployment = Self {
            folder,
            database,
            vhost,
            record,
            config,
            environment: Vec::new(),
            like_servers: false,
        };
        deployment.manage(&["upgrade"]).await?;
        Ok(deployment)
    }

    /// The options of programs started from now on.
    pub fn config(&self) -> &ConfigFile {
        &self.config
    }

    /// Sets an option for the programs started from now on.
    pub fn set(&mut self, section: &str, option: &str, value: impl ToString) {
        self.config = std::mem::take(&mut self.config).set(section, option, value);
    }

    /// Has programs started from now on go through other addresses, such as chaos proxies'.
    pub fn connect_via(&mut self, broker: Option<SocketAddr>, database: Option<SocketAddr>) {
        if let Some(address) = broker {
            self.set("DEFAULT", "transport_url", self.vhost.transport_url_via(address));
        }
        if let Some(address) = database {
            self.set("database", "connection", self.database.url_via(address));
        }
    }

    /// How long each call of the driver takes, for conductors started from now on.
    pub fn set_driver_delay(&mut self, delay: Duration) {
        self.set_environment("MAGNUM_TEST_DELAY", &delay.as_secs_f64().to_string());
    }

    /// Has conductors started from now on have as much of the processors as servers. Libraries of drivers in Python compute
    /// for seconds when they are loaded, which beside busy servers would be minutes.
    pub fn give_conductors_processors(&mut self) {
        self.like_servers = true;
    }

    /// Sets an environment variable of conductors started from now on.
    pub fn set_environment(&mut self, name: &str, value: &str) {
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    /// The configuration file of a program called `name`.
    pub fn config_file(&self, name: &str) -> Result<PathBuf> {
        self.config
            .clone()
            .set("DEFAULT", "host", name)
            .write(&self.folder.join(format!("{name}.conf")))
    }

    /// A conductor about to be started.
    pub async fn conductor_launch(&self, name: &str) -> Result<Launch> {
        self.conductor_launch_with(name, |config| config).await
    }

    /// The same with options of its own.
    pub async fn conductor_launch_with(
        &self,
        name: &str,
        change: impl FnOnce(ConfigFile) -> ConfigFile,
    ) -> Result<Launch> {
        let launch = match self.like_servers {
            true => Launch::program_like_servers("magnum-conductor")?,
            false => Launch::program("magnum-conductor")?,
        };
        self.launched_as(name, launch, change).await
    }

    /// A conductor of the release before that takes requests.
    pub async fn conductor_of_the_release_before(&self, name: &str) -> Result<Program> {
        let launch = Launch::of_the_release_before("magnum-conductor")?;
        self.launched_as(name, launch, |config| config)
            .await?
            .start()
            .await
    }

    async fn launched_as(
        &self,
        name: &str,
        launch: Launch,
        change: impl FnOnce(ConfigFile) -> ConfigFile,
    ) -> Result<Launch> {
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let config =
            change(self.config.clone())
                .set("DEFAULT", "host", name)
                .set("conductor", "admin_listen", admin);
        let config = config.write(&self.folder.join(format!("{name}.conf")))?;
        let mut launch = launch
            .config(&config)
            .env("PATH", path_with_python().await?)
            .env("MAGNUM_TEST_RECORD", self.record.folder())
            .env("MAGNUM_TEST_CONDUCTOR", name)
            .ready_when(Ready::Http(format!("http://{admin}/readiness")));
        for (name, value) in &self.environment {
            launch = launch.env(name, value);
        }
        Ok(launch)
    }

    /// A conductor that takes requests.
    pub async fn conductor(&self, name: &str) -> Result<Program> {
        self.conductor_launch(name).await?.start().await
    }

    /// The metrics of the conductor `name`, as its administrator's port shows them.
    pub async fn metrics(&self, name: &str) -> Result<String> {
        let config = fs::read_to_string(self.folder.join(format!("{name}.conf")))?;
        let mut lines = config.lines();
        let admin = lines.find_map(|line| line.strip_prefix("admin_listen = "));
        let admin = admin.context("the admin address")?;
        let answer = reqwest::get(format!("http://{admin}/metrics")).await?;
        Ok(answer.error_for_status()?.text().await?)
    }

    /// An API that takes requests.
    pub async fn api(&self) -> Result<Api> {
        self.api_on(|launch| launch).await
    }

    /// The same, started in a way that `change` decides.
    pub async fn api_on(&self, change: impl FnOnce(Launch) -> Launch) -> Result<Api> {
        let (launch, rest) = self.api_launch(|config| config)?;
        let program = change(launch).start().await?;
        Ok(Api { program, rest })
    }

    /// An API about to be started with options of its own, and a client for it.
    pub fn api_launch(&self, change: impl FnOnce(ConfigFile) -> ConfigFile) -> Result<(Launch, Rest)> {
        let port = free_port()?;
        let config = change(self.config.clone())
            .set("api", "host", "127.0.0.1")
            .set("api", "port", port);
        let config = config.write(&self.folder.join(format!("api-{port}.conf")))?;
        let launch = Launch::program("magnum-api")?.config(&config);
        let launch = launch.ready_when(Ready::Http(format!("http://127.0.0.1:{port}/healthcheck")));
        Ok((launch, Rest::new(&format!("http://127.0.0.1:{port}/v1"))))
    }

    /// Runs `magnum-db-manage` to its end and returns what it printed.
    pub async fn manage(&self, args: &[&str]) -> Result<String> {
        Launch::program("magnum-db-manage")?
            .config(&self.config_file("manage")?)
            .args(args)
            .output()
            .await
    }

    /// All operations, as `magnum-conductor operations list` prints them.
    pub async fn operations(&self) -> Result<Vec<Value>> {
        let launch =
            Launch::program("magnum-conductor")?.args(["operations", "list", "--json", "--limit", "100000"]);
        let text = launch.config(&self.config_file("operations")?).output().await?;
        serde_json::from_str(&text).with_context(|| text)
    }

    /// Waits until no operation is open, and until the driver's record is sound.
    pub async fn settled(&self, within: Duration) -> Result<Vec<Value>> {
        self.settled_with(0, within).await
    }

    /// The same after a request that a conductor may not have recorded yet: there have to be so many operations at least.
    pub async fn settled_with(&self, least: usize, within: Duration) -> Result<Vec<Value>> {
        let operations = wait::until("every operation to end", within, async || {
            let operations = self.operations().await?;
            let count = operations.len();
            ensure!(count >= least, "{count} operations instead of {least}");
            let open: Vec<_> = operations.iter().filter(|one| !is_terminal(one)).collect();
            ensure!(open.is_empty(), "{} open, such as {}", open.len(), open[0]);
            Ok(operations)
        })
        .await?;
        self.record.assert_sound()?;
        Ok(operations)
    }
}

/// Whether an operation of [`Deployment::operations`] has ended.
pub fn is_terminal(operation: &Value) -> bool {
    matches!(
        operation["state"].as_str(),
        Some("succeeded" | "failed" | "refused" | "cancelled")
    )
}

/// The folder with the scripted driver.
pub fn drivers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("drivers")
}

/// A search path on which `python3` is the interpreter itself. Version managers put scripts in its place that
/// cost a tenth of a second at each start, and the driver starts a thousand times.
pub(crate) async fn path_with_python() -> Result<&'static str> {
    static PATH: OnceCell<String> = OnceCell::const_new();
    let path = PATH.get_or_try_init(async || {
        let ask = Launch::command("python3", Command::new("python3"))
            .args(["-c", "import sys; print(sys.executable)"]);
        let python = PathBuf::from(ask.output().await?.trim());
        let folder = python.parent().context("python3 does not know where it is")?;
        Ok::<_, anyhow::Error>(format!(
            "{}:{}",
            folder.display(),
            std::env::var("PATH").unwrap_or_default()
        ))
    });
    Ok(path.await?)
}
