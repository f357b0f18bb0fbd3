//! The two conductors, each with the same package.

use std::fmt;
use std::path::PathBuf;

use super::super::Environment;
use super::super::measure::Server;
use super::super::site::Site;
use super::super::usage::{pss_mib, tree};
use crate::plugin_world::{PluginWorld, environment};
use crate::process::{Program, little_environment};
use crate::python_magnum::PythonMagnum;
use crate::run_dir::run_dir;
use anyhow::Result;
use magnum_config::Settings;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The driver's entry point.
pub(super) const DRIVER: &str = "k8s_capi_helm_v1";

/// Whose conductor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contestant {
    Ours,
    Magnum,
}

impl Contestant {
    /// How many keys it makes ahead of need.
    pub(super) fn default_pool(self) -> u64 {
        match self {
            Self::Ours => u64::from(Settings::default().certificates.key_pool_size),
            Self::Magnum => 0,
        }
    }

    /// How often clusters are looked at when each conductor has done what it has to.
    pub(super) fn looks(self, clusters: u64, conductors: u64) -> u64 {
        match self {
            Self::Ours => clusters,
            Self::Magnum => clusters * conductors,
        }
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Magnum => "magnum 23",
        })
    }
}

/// A conductor that consumes.
pub(super) struct Running {
    program: Kind,
}

enum Kind {
    Ours(Box<Server>),
    Magnum(Program),
}

impl Running {
    pub(super) async fn start(
        contestant: Contestant,
        bench: &Environment<'_>,
        site: &Site,
        world: &PluginWorld,
        pool: u64,
    ) -> Result<Self> {
        let variables = world.environment().await?;
        let program = match contestant {
            Contestant::Ours => {
                let mut command = site.ours(bench, "bench", "rsa-2048", pool)?;
                little_environment(command.as_std_mut()).envs(variables);
                Kind::Ours(Box::new(Server::start(command, &site.vhost).await?))
            }
            Contestant::Magnum => {
                let mut python = PythonMagnum::installed_in(&environment()?, site.config())?;
                // Its default, which the configuration of the tests does not have.
                python.set("conductor", "workers", std::thread::available_parallelism()?);
                for (name, value) in variables {
                    python.set_environment(name, &value);
                }
                Kind::Magnum(python.conductor(&site.vhost).await?)
            }
        };
        Ok(Self { program })
    }

    pub(super) fn pid(&self) -> u32 {
        match &self.program {
            Kind::Ours(server) => server.pid,
            Kind::Magnum(program) => program.pid(),
        }
    }

    /// The memory of its processes in MiB, without helm, and the processes of helm.
    pub(super) fn at_work(&self) -> Result<(f64, Vec<u32>)> {
        let is_helm = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word| word.ends_with(b"/helm"))
        };
        let (helms, others): (Vec<u32>, Vec<u32>) = tree(self.pid()).into_iter().partition(is_helm);
        let mib = others.into_iter().map(pss_mib).sum::<Result<f64>>()?;
        Ok((mib, helms))
    }

    /// Sends a signal to the conductor alone.
    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(i32::try_from(self.pid())?), signal)?)
    }

    /// Ends it and what it has started, at once.
    pub(super) async fn kill(self) -> Result<()> {
        match self.program {
            Kind::Ours(server) => server.kill().await,
            Kind::Magnum(mut program) => program.kill_group().await,
        }
    }
}

/// A folder of our drivers, with the package as `magnum-driver-manage adopt` describes it.
pub(super) fn adopted() -> Result<PathBuf> {
    let folder = run_dir()?.folder("bench-drivers")?;
    let driver = folder.join(DRIVER);
    std::fs::create_dir_all(&driver)?;
    let interpreter = environment()?.join("bin/python");
    let manifest = format!(
        r#"[driver]
name = "{DRIVER}"
version = "1.4.0"
engine = "python"

[[provides]]
server_type = "vm"
os = "ubuntu"
coe = "kubernetes"

[masters]
sizes = "odd"

[python]
interpreter = "{}"
"#,
        interpreter.display()
    );
    std::fs::write(driver.join("driver.toml"), manifest)?;
    Ok(folder)
}
