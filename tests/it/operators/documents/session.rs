//! What the reader of a document has: a shell, the programs, a configuration, the checkout's drivers.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use magnum_tests::builders::ConfigFile;
use magnum_tests::files::copy_folder;
use magnum_tests::management_cluster::ManagementCluster;
use magnum_tests::ports::free_port;
use magnum_tests::process::{Launch, Program, Ready, built};
use magnum_tests::python_plugin;
use magnum_tests::run_dir::run_dir;
use magnum_tests::{TestDatabase, heat_cloud, plugin_world, rabbitmq};

use super::How;

const PROGRAMS: [&str; 8] = [
    "bench",
    "magnum-api",
    "magnum-conductor",
    "magnum-db-manage",
    "magnum-dev",
    "magnum-driver-manage",
    "magnum-policy",
    "magnum-status",
];

/// Documents write to these; a session has its own.
const FOLDERS_OF_THE_MACHINE: [&str; 3] = ["/tmp/", "/etc/magnum/", "/opt/"];

/// One reader.
pub struct Session {
    folder: PathBuf,
    /// Where the shell is now.
    place: PathBuf,
    api: u16,
    admin: u16,
    services: Vec<(String, Program)>,
    _database: TestDatabase,
}

impl Session {
    /// A reader in a fresh checkout, on a machine where Magnum is configured.
    pub async fn new() -> Result<Self> {
        let folder = run_dir()?.folder("documents")?;
        let database = TestDatabase::sqlite()?;
        let vhost = rabbitmq::vhost().await?;
        let (api, admin) = (free_port()?, free_port()?);
        let checkout = folder.join("checkout");
        let drivers = folder.join("etc/magnum/drivers");
        for made in [
            "bin",
            "home/.magnum",
            "tmp",
            "opt",
            "etc/magnum/drivers",
            "checkout",
        ] {
            fs::create_dir_all(folder.join(made))?;
        }
        for program in PROGRAMS {
            symlink(built(program)?, folder.join("bin").join(program))?;
        }
        // An environment with Magnum's library, and beside it the tests' own package.
        symlink(python_plugin::venv()?, folder.join("opt/magnum"))?;
        symlink(heat_cloud::environment()?, folder.join("opt/magnum-22"))?;
        for package in ["opt/magnum-capi-helm", "opt/magnum-cluster-api"] {
            symlink(plugin_world::environment()?, folder.join(package))?;
        }
        let kubeconfig = plugin_world::kubeconfig_of_none().to_string();
        fs::write(folder.join("etc/magnum/kubeconfig"), kubeconfig)?;
        // The shell finds `~/.magnum/magnum.conf` as an operator's finds `/etc/magnum/magnum.conf`.
        ConfigFile::for_test(&database.url(), &vhost.transport_url(), &folder)
            .set("api", "port", api)
            .set("conductor", "admin_listen", format!("127.0.0.1:{admin}"))
            .set("drivers", "driver_path", drivers.display())
            .write(&folder.join("home/.magnum/magnum.conf"))?;
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        // What commands write to is a copy, what they only read is the checkout's own.
        copy_folder(&sources.join("deploy"), &checkout.join("deploy"))?;
        for read in [
            "Cargo.toml",
            "Cargo.lock",
            "api-shim",
            "common",
            "conductor",
            "migrations",
            "tests",
        ] {
            symlink(sources.join(read), checkout.join(read))?;
        }
        let session = Self {
            place: checkout,
            folder,
            api,
            admin,
            services: Vec::new(),
            _database: database,
        };
        session.command_of_ours(
            "systemctl",
            "[ \"$1 $2\" = 'reload magnum-conductor' ] && kill -HUP $(cat ../magnum-conductor.pid)",
        )?;
        let control = rabbitmq::Rabbitmq::shared().await?.control_words();
        session.command_of_ours("rabbitmqctl", &format!("exec {control} \"$@\""))?;
        let tests = std::env::current_exe()?;
        let list = format!("{} --list \"$1\" | grep -q ': test$'", tests.display());
        session.command_of_ours("has_test", &list)?;
        Ok(session)
    }

    fn command_of_ours(&self, name: &str, text: &str) -> Result<()> {
        let path = self.folder.join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\ncd \"$(dirname \"$0\")\"\n{text}\n"))?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
    }

    /// From now on there is a management cluster, and a kubeconfig with the account that `deploy/kubernetes` has for it.
    pub async fn has_management_cluster(&self) -> Result<()> {
        let cluster = ManagementCluster::shared().await?;
        let kubeconfig = cluster.kubeconfig_of("magnum-capi-helm").await?;
        symlink(kubeconfig, self.folder.join("etc/magnum/management-cluster"))?;
        Ok(())
    }

    /// Where the shell is.
    pub fn place(&self) -> PathBuf {
        self.place.clone()
    }

    /// Puts the shell there.
    pub fn return_to(&mut self, place: PathBuf) {
        self.place = place;
    }

    /// Runs a command of a document; `shown` is what the document says that it prints.
    pub async fn command(&mut self, text: &str, how: How, shown: &[String]) -> Result<()> {
        let printed = match how {
            How::AsWritten => self.shell(text).await?,
            How::As(text) => self.shell(text).await?,
            How::Service => return self.serve(super::blocks::without_comment(text)).await,
        };
        let mut rest = printed.as_str();
        for line in shown {
            let found = rest
                .lines()
                .find(|printed| is_like(line, printed))
                .with_context(|| format!("the document shows {line:?}, it prints\n{printed}"))?;
            let at = rest.find(found).unwrap_or_default();
            rest = &rest[at + found.len()..];
        }
        Ok(())
    }

    /// Runs a command in the shell and returns what it printed. An error when it fails.
    pub async fn shell(&mut self, text: &str) -> Result<String> {
        // Documents write to folders of the machine, tests to those of their own.
        let own = |folder: &str| format!("{}{folder}", self.folder.display());
        let mut text = text.to_owned();
        for folder in FOLDERS_OF_THE_MACHINE {
            text = text.replace(folder, &own(folder));
        }
        let here = self.folder.join("here");
        let script = format!(
            "exec 2>&1\n{text}\nended=$?\npwd > {}\nexit $ended",
            here.display()
        );
        let shell = self.start("bash", "bash").args(["-o", "pipefail", "-c", &script]);
        let printed = shell.output().await?;
        self.place = PathBuf::from(fs::read_to_string(&here)?.trim_end());
        let back = |printed: String, folder: &&str| printed.replace(&own(folder), folder);
        Ok(FOLDERS_OF_THE_MACHINE.iter().fold(printed, back))
    }

    /// A program about to be started as the shell would start it.
    fn start(&self, name: &str, program: &str) -> Launch {
        let mut command = Command::new(program);
        command.current_dir(&self.place);
        let path = std::env::var("PATH").unwrap_or_default();
        let mut launch = Launch::command(name, command)
            .env("PATH", format!("{}:{path}", self.folder.join("bin").display()));
        // cargo and rustup live in the real home.
        if let Ok(home) = std::env::var("HOME") {
            for (variable, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
                let given = std::env::var(variable).unwrap_or_else(|_| format!("{home}/{folder}"));
                launch = launch.env(variable, given);
            }
        }
        let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("python_drivers");
        launch
            .env("PYTHONPATH", package)
            .env("KUBECONFIG", self.folder.join("etc/magnum/kubeconfig"))
            .env("HOME", self.folder.join("home"))
    }

    /// Starts a service and waits until it is ready. One that runs already ends first, as its ports are taken.
    pub async fn serve(&mut self, text: &str) -> Result<()> {
        self.services.retain(|(program, _)| program != text);
        let http = |port: u16, path: &str| Ready::Http(format!("http://127.0.0.1:{port}/{path}"));
        let (program, args, ready): (_, &[&str], _) = match text {
            "magnum-conductor" => ("magnum-conductor", &[], http(self.admin, "readiness")),
            "magnum-api" => ("magnum-api", &[], http(self.api, "healthcheck")),
            // The port of the document may be taken on this machine.
            "cargo run --profile demo --bin magnum-dev -- serve" => (
                "magnum-dev",
                &["serve", "--port", "0"],
                Ready::Log("stop with Ctrl-C".into()),
            ),
            other => bail!("no service {other}"),
        };
        let path = self.folder.join("bin").join(program);
        let launch = self.start(program, &path.to_string_lossy());
        let running = launch.args(args).ready_when(ready).start().await?;
        fs::write(
            self.folder.join(format!("{program}.pid")),
            running.pid().to_string(),
        )?;
        if program == "magnum-dev" {
            let state = self.place.join("magnum-dev-state/magnum.sqlite");
            ensure!(state.is_file(), "its state is not in ./magnum-dev-state");
        }
        self.services.push((program.to_owned(), running));
        Ok(())
    }

    /// Puts a program into a new driver in the place of the one that is there, and has it make a cluster.
    pub async fn try_driver(&mut self, program: &str) -> Result<()> {
        let folder = self.folder.join("tmp/tried");
        fs::create_dir_all(&folder)?;
        let file = folder.join("driver.sh");
        fs::write(&file, program)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755))?;
        let call =
            "echo '{\"protocol\": 1}' | MAGNUM_CALL=create MAGNUM_CLUSTER_UUID=c-1 /tmp/tried/driver.sh";
        let printed = self.shell(call).await?;
        let last = printed.lines().last().unwrap_or_default();
        let answer: serde_json::Value = serde_json::from_str(last).with_context(|| printed.clone())?;
        ensure!(answer["result"].is_object(), "{printed}");
        Ok(())
    }
}

/// Whether a printed line is what the document shows; `…` stands for any rest.
fn is_like(shown: &str, printed: &str) -> bool {
    match shown.split_once('…') {
        Some((start, _)) => printed.starts_with(start),
        None => printed.trim_end() == shown.trim_end(),
    }
}
