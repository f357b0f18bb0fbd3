//! A real Python Magnum beside a [`Deployment`]: its API, as console script and under a WSGI server, its conductor,
//! and its command lines, on the deployment's vhost and database.
//!
//! It reads the same options as our programs do, plus where Keystone is. Keystone, Glance, Nova and Neutron are a
//! stand-in that only answers questions (`tests/peers/cloud.py`); the driver is the scripted one as a Python
//! plug-in (`tests/peers/drivers`), which keeps the same record as ours does. Or they are the real ones, and Heat with
//! them, for the driver that Magnum 22 brings ([`PythonMagnum::in_cloud`]).
//!
//! A Python conductor does not end on SIGTERM, and its worker keeps the broker's socket open when only the parent is
//! killed: what is stopped here is always the whole process group ([`Program::kill_group`]).

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::builders::ConfigFile;
use crate::deployment::Deployment;
use crate::driver_record::DriverRecord;
use crate::heat_cloud::HeatCloud;
use crate::oslo_peer::{OsloPeer, tool};
use crate::ports::free_port;
use crate::process::{Finished, Launch, Program, Ready};
use crate::python_plugin::PythonPlugin;
use crate::rabbitmq::Vhost;
use crate::rest::Rest;
use crate::run_dir::{base, run_dir};
use crate::wait;

/// Importing Magnum takes seconds, and more of them on a busy machine.
const START_WITHIN: Duration = Duration::from_secs(60);

/// Which Magnum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// The last one with Heat drivers and trusts; the head of its tables is `c0f832afc4fd`.
    Magnum22,
    /// The one that we are a drop-in for.
    Magnum23,
}

/// How Magnum's API is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// The command `magnum-api`: every object is asked of a conductor.
    Script,
    /// `magnum.wsgi.api` under gunicorn: the API reads the database itself.
    Wsgi,
    /// The same with so many processes of one thread each, gunicorn's default kind.
    Processes(u8),
}

/// A configuration for Python's programs, and the stand-in cloud unless they have the real one.
pub struct PythonMagnum {
    release: Release,
    folder: PathBuf,
    config: ConfigFile,
    record: DriverRecord,
    port: u16,
    cloud: String,
    /// Where a package with a driver is found, and where that builds.
    plugin: Option<(PathBuf, PathBuf)>,
    /// The interpreter of another virtual environment, with packages of its own.
    interpreter: Option<PathBuf>,
    environment: Vec<(&'static str, String)>,
    _stand_in: Option<Program>,
}

impl fmt::Debug for PythonMagnum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in {}", self.release, self.folder.display())
    }
}

/// A running API and who may ask it.
#[derive(Debug)]
pub struct PythonApi {
    /// The process group.
    pub program: Program,
    /// Where it listens, on this machine.
    pub port: u16,
    /// A client: `anna`, of the project [`NORTH`] of the stand-in cloud.
    pub rest: Rest,
}

/// The project of `anna` and of `chief`, in the stand-in Keystone.
pub const NORTH: &str = "11111111111111111111111111111111";
/// The image `ubuntu-24.04` of the stand-in Glance.
pub const UBUNTU: &str = "0c6bd6d8-4ac2-4e5e-9f24-0d5d1e4f8d6f";
/// The id of `anna`.
pub const ANNA: &str = "616e6e61000000000000000000000000";

impl PythonMagnum {
    /// On the deployment's database, vhost and driver record.
    pub async fn beside(deployment: &Deployment) -> Result<Self> {
        Self::on(Release::Magnum23, deployment.config(), deployment.record.clone()).await
    }

    /// With the options of `config`, which name a database and perhaps a vhost.
    pub async fn on(release: Release, config: &ConfigFile, record: DriverRecord) -> Result<Self> {
        let port = free_port()?;
        let cloud = format!("http://127.0.0.1:{port}");
        let program = Launch::command("cloud", Command::new(tool("python")?))
            .args([peers().join("cloud.py")])
            .args([port.to_string()])
            .ready_when(Ready::Http(format!("{cloud}/identity/v3")))
            .start()
            .await?;
        let identity = format!("{cloud}/identity/v3");
        let mut python = Self::new(release, config, record, identity.clone(), Some(program))?;
        for section in ["keystone_auth", "keystone_authtoken"] {
            for (option, value) in service_user(&identity) {
                python.set(section, option, value);
            }
        }
        python.set("keystone_authtoken", "www_authenticate_uri", &identity);
        Ok(python)
    }

    /// In the real cloud, with the options of `config`, which name a database and a vhost. A client of its API needs a
    /// token of one of the cloud's people.
    pub async fn in_cloud(release: Release, config: &ConfigFile, cloud: &HeatCloud) -> Result<Self> {
        let record = DriverRecord::new(run_dir()?.folder("python-record")?);
        let identity = cloud.heat.openstack.keystone_url();
        let mut python = Self::new(release, config, record, identity, None)?;
        for (section, option, value) in cloud.options(python.port).await? {
            python.set(section, option, value);
        }
        Ok(python)
    }

    /// Magnum 23 as it finds itself in a virtual environment, with the driver packages there. The options of `config` name
    /// all services that it needs.
    pub fn installed_in(environment: &Path, config: &ConfigFile) -> Result<Self> {
        let record = DriverRecord::new(run_dir()?.folder("python-record")?);
        let mut python = Self::new(Release::Magnum23, config, record, String::new(), None)?;
        python.interpreter = Some(environment.join("bin/python"));
        Ok(python)
    }

    /// Sets an environment variable of programs started from now on.
    pub fn set_environment(&mut self, name: &'static str, value: &str) {
        self.environment.push((name, value.to_owned()));
    }

    fn new(
        release: Release,
        config: &ConfigFile,
        record: DriverRecord,
        identity: String,
        stand_in: Option<Program>,
    ) -> Result<Self> {
        let folder = run_dir()?.folder("python-magnum")?;
        let paste = folder.join("api-paste.ini");
        std::fs::write(&paste, PASTE)?;
        let config = config
            .clone()
            .set("DEFAULT", "host", "python")
            .set("DEFAULT", "state_path", folder.display())
            .set("api", "api_paste_config", paste.display())
            .set("certificates", "cert_manager_type", "x509keypair")
            .set("cluster", "temp_cache_dir", folder.join("no-cache").display())
            .set("oslo_messaging_notifications", "driver", "noop")
            // A process for each, which do nothing in Magnum 23 but cost their start.
            .set("conductor", "workers", 1)
            .set("api", "workers", 4);
        Ok(Self {
            release,
            folder,
            config,
            record,
            port: free_port()?,
            cloud: identity,
            plugin: None,
            interpreter: None,
            environment: Vec::new(),
            _stand_in: stand_in,
        })
    }

    /// Has programs started from now on find the driver of this package, which builds where ours builds.
    pub fn install(&mut self, plugin: &PythonPlugin) -> Result<()> {
        let folder = plugin.package_with_this_driver_only("1.0.0")?;
        self.plugin = Some((folder, plugin.built.clone()));
        Ok(())
    }

    /// Sets an option for the programs started from now on.
    pub fn set(&mut self, section: &str, option: &str, value: impl ToString) {
        self.config = std::mem::take(&mut self.config).set(section, option, value);
    }

    /// Keystone's endpoint.
    pub fn identity(&self) -> &str {
        &self.cloud
    }

    /// The configuration file, as it is now.
    pub fn config_file(&self) -> Result<PathBuf> {
        self.config.write(&self.folder.join("magnum.conf"))
    }

    /// Runs `magnum-db-manage` to its end, whatever that is.
    pub async fn try_manage(&self, args: &[&str]) -> Result<Finished> {
        let launch = self.launch("python-db-manage", "python")?;
        // The package's own entry point, which for Magnum 22 is no program in the environment.
        let call = "import sys; from magnum.cmd.db_manage import main; sys.exit(main())";
        launch
            .args(["-W", "ignore", "-c", call, "--config-file"])
            .args([self.config_file()?.as_os_str()])
            .args(args)
            .finish()
            .await
    }

    /// Runs `magnum-db-manage`, which must succeed, and returns what it printed.
    pub async fn manage(&self, args: &[&str]) -> Result<String> {
        let finished = self.try_manage(args).await?;
        ensure!(
            finished.status.success(),
            "magnum-db-manage {args:?} of {self:?} ended with {}:\n{}{}",
            finished.status,
            finished.stdout,
            finished.stderr
        );
        Ok(finished.stdout)
    }

    /// A conductor that takes requests from this vhost.
    pub async fn conductor(&self, vhost: &Vhost) -> Result<Program> {
        let launch = self.launch("python-conductor", "magnum-conductor")?;
        self.consuming(launch, vhost).await
    }

    /// The same, which has drivers asked every second how clusters in progress are, and adds to a file, a line each, the name
    /// of each method that it has carried out, and `sync_cluster_status` for each such round.
    pub async fn conductor_that_tells(&self, vhost: &Vhost, carried_out: &Path) -> Result<Program> {
        let launch = self
            .launch("python-conductor", "python")?
            .args([peers().join("magnum_conductor.py")])
            .env("MAGNUM_TEST_CARRIED_OUT", carried_out);
        self.consuming(launch, vhost).await
    }

    async fn consuming(&self, launch: Launch, vhost: &Vhost) -> Result<Program> {
        let before = consumers(vhost).await?;
        let program = launch.config(&self.config_file()?).spawn()?;
        // Requests that come before would be dropped without a word.
        wait::until("the Python conductor to consume", START_WITHIN, async || {
            if let Some(status) = program.ended()? {
                return Ok(Err(status));
            }
            ensure!(consumers(vhost).await? > before, "not yet");
            Ok(Ok(()))
        })
        .await?
        .map_err(|status| anyhow::anyhow!("{} ended with {status}:\n{}", program.name(), program.log()))?;
        Ok(program)
    }

    /// An API that answers; one at a time, as its port stays the same.
    pub async fn api(&self, served: Served) -> Result<PythonApi> {
        let port = self.port;
        let config = self
            .config
            .clone()
            .set("api", "host", "127.0.0.1")
            .set("api", "port", port);
        let config = config.write(&self.folder.join(format!("api-{port}.conf")))?;
        let launch = match served {
            Served::Script => self.launch("python-api", "magnum-api")?.config(&config),
            Served::Wsgi => self.gunicorn(1, 4, port, &config)?,
            Served::Processes(processes) => self.gunicorn(processes, 1, port, &config)?,
        };
        let program = launch
            .ready_when(Ready::Http(format!("http://127.0.0.1:{port}/healthcheck")))
            .start()
            .await?;
        let rest = Rest::new(&format!("http://127.0.0.1:{port}/v1")).with_token("token-of-anna");
        Ok(PythonApi { program, port, rest })
    }

    fn gunicorn(&self, processes: u8, threads: u8, port: u16, config: &Path) -> Result<Launch> {
        Ok(self
            .launch("python-wsgi-api", "gunicorn")?
            .args([format!("--workers={processes}"), format!("--threads={threads}")])
            .args(["--bind".to_owned(), format!("127.0.0.1:{port}")])
            .args(["--pythonpath".as_ref(), peers().as_os_str()])
            .args(["magnum_wsgi:application"])
            .env("MAGNUM_TEST_CONFIG", config))
    }

    /// Magnum's own objects and database layer, driven by JSON lines (`tests/peers/magnum_rows.py`).
    pub async fn rows(&self) -> Result<OsloPeer> {
        let config = self.config_file()?.display().to_string();
        OsloPeer::start_with("magnum_rows.py", &[&config], &self.environment()?).await
    }

    /// A program of the Python environment, about to be started as `name`.
    fn launch(&self, name: &str, program: &str) -> Result<Launch> {
        let mut launch = match &self.interpreter {
            None => Launch::command(name, Command::new(tool(program)?)),
            // The packages are there, and Magnum; its console scripts are not.
            Some(python) => {
                let command = program.trim_start_matches("magnum-").replace('-', "_");
                let call = format!("import sys; from magnum.cmd.{command} import main; sys.exit(main())");
                Launch::command(name, Command::new(python)).args(["-B", "-c", &call])
            }
        };
        for (name, value) in self.environment()? {
            launch = launch.env(name, value);
        }
        Ok(launch)
    }

    /// What its processes need besides the configuration.
    fn environment(&self) -> Result<Vec<(&'static str, String)>> {
        if self.interpreter.is_some() {
            return Ok(self.environment.clone());
        }
        let mut path = vec![peers().join("drivers")];
        if self.release == Release::Magnum22 {
            let packages = base().join("magnum-22");
            ensure!(
                packages.exists(),
                "{} is missing: tests/run makes it",
                packages.display()
            );
            path.push(packages);
        }
        let mut environment = Vec::new();
        if let Some((package, built)) = &self.plugin {
            path.push(package.clone());
            environment.push(("MAGNUM_TEST_BUILT", built.display().to_string()));
        }
        let path = std::env::join_paths(path)?;
        environment.extend([
            (
                "PYTHONPATH",
                path.into_string().ok().context("a path that is no text")?,
            ),
            ("PYTHONUNBUFFERED", "1".to_owned()),
            ("PYTHONWARNINGS", "ignore".to_owned()),
            // Where the list of entry points is remembered; the test's driver is not the user's business.
            ("XDG_CACHE_HOME", self.folder.join("cache").display().to_string()),
            ("MAGNUM_TEST_RECORD", self.record.folder().display().to_string()),
        ]);
        Ok(environment)
    }
}

/// The options that name Magnum's own user in a stand-in Keystone.
pub fn service_user(identity: &str) -> [(&'static str, &str); 7] {
    [
        ("auth_url", identity),
        ("auth_type", "password"),
        ("username", "magnum"),
        ("password", "secret"),
        ("project_name", "service"),
        ("user_domain_name", "Default"),
        ("project_domain_name", "Default"),
    ]
}

/// Who takes requests on a vhost.
async fn consumers(vhost: &Vhost) -> Result<usize> {
    vhost.management().consumers("magnum-conductor").await
}

fn peers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// Magnum's pipeline, with a health check that asks nothing.
const PASTE: &str = "\
[composite:main]
paste.composite_factory = magnum.api:root_app_factory
/: api
/healthcheck: healthcheck

[pipeline:api]
pipeline = http_proxy_to_wsgi request_id authtoken api_v1

[app:api_v1]
paste.app_factory = magnum.api.app:app_factory

[app:healthcheck]
paste.app_factory = oslo_middleware:Healthcheck.app_factory

[filter:authtoken]
acl_public_routes = /, /v1
paste.filter_factory = magnum.api.middleware.auth_token:AuthTokenMiddleware.factory

[filter:request_id]
paste.filter_factory = oslo_middleware:RequestId.factory

[filter:http_proxy_to_wsgi]
paste.filter_factory = oslo_middleware.http_proxy_to_wsgi:HTTPProxyToWSGI.factory
oslo_config_project = magnum
";
