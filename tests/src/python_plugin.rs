//! A driver that is a Python package: the tests' own, in the environment of the Python peers, adopted as an operator would.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tokio::sync::OnceCell;

use crate::deployment::Deployment;
use crate::oslo_peer::python;
use crate::process::Launch;
use crate::run_dir::{base, run_dir};

/// The package's driver that builds folders.
pub const DRIVER: &str = "test_folders_v1";

/// An adoption imports the package, which takes seconds of a processor: once is enough for all tests of a run.
static ADOPTED_22: OnceCell<PathBuf> = OnceCell::const_new();
static ADOPTED_23: OnceCell<PathBuf> = OnceCell::const_new();

/// The package, with a world of its own to build in.
#[derive(Debug, Clone)]
pub struct PythonPlugin {
    /// Folders of adopted drivers, for `[drivers] driver_path`.
    pub drivers: PathBuf,
    /// What the driver builds.
    pub built: PathBuf,
    /// `[python] runtime_directory`.
    pub runtime: PathBuf,
    /// Whose library the package has.
    pub library: Library,
}

/// A release of Magnum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Library {
    /// The last one with trusts.
    Magnum22,
    /// The one of the environment.
    #[default]
    Magnum23,
}

impl PythonPlugin {
    /// In `folder`, with nothing adopted yet.
    pub fn new(folder: &Path) -> Result<Self> {
        let plugin = Self {
            drivers: folder.join("drivers"),
            built: folder.join("built"),
            runtime: folder.join("run"),
            library: Library::default(),
        };
        for folder in [&plugin.drivers, &plugin.built, &plugin.runtime] {
            fs::create_dir_all(folder)?;
        }
        Ok(plugin)
    }

    /// The same, with [`DRIVER`] adopted.
    pub async fn adopted(folder: &Path) -> Result<Self> {
        Self::adopted_with(folder, Library::default()).await
    }

    /// The same with the library of a release.
    pub async fn adopted_with(folder: &Path, library: Library) -> Result<Self> {
        let plugin = Self {
            library,
            ..Self::new(folder)?
        };
        let adopted = match library {
            Library::Magnum22 => &ADOPTED_22,
            Library::Magnum23 => &ADOPTED_23,
        };
        let adopted = adopted.get_or_try_init(async || plugin.adopt().await);
        copy_manifests(adopted.await?, &plugin.drivers)?;
        Ok(plugin)
    }

    /// Adopts the driver, and returns where it is then.
    async fn adopt(&self) -> Result<PathBuf> {
        let folder = run_dir()?.folder("adopted")?;
        let drivers = folder.display().to_string();
        let adopt = self.manage(&[
            "adopt",
            "--python",
            &venv()?,
            "--into",
            &drivers,
            "--driver",
            DRIVER,
        ])?;
        let finished = adopt.finish().await?;
        anyhow::ensure!(finished.status.success(), "{finished:?}");
        Ok(folder)
    }

    /// The same in a deployment, which has this driver only. Its record is the deployment's: `built` is what it built.
    pub async fn in_deployment(deployment: &mut Deployment, library: Library) -> Result<Self> {
        let mut plugin = Self::adopted_with(&deployment.folder, library).await?;
        plugin.built = deployment.record.folder().join("built");
        fs::create_dir_all(&plugin.built)?;
        deployment.set("drivers", "driver_path", plugin.drivers.display());
        deployment.set("python", "runtime_directory", plugin.runtime.display());
        for (name, value) in plugin.environment() {
            deployment.set_environment(name, &value);
        }
        Ok(plugin)
    }

    /// `magnum-driver-manage` with these arguments, about to be run where the package is found.
    pub fn manage(&self, args: &[&str]) -> Result<Launch> {
        let mut launch = Launch::program("magnum-driver-manage")?.args(args);
        for (name, value) in self.environment() {
            launch = launch.env(name, value);
        }
        Ok(launch)
    }

    /// Variables that a conductor needs, so that its plug-in host finds the package and this world.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        let mut path = package().display().to_string();
        if self.library == Library::Magnum22 {
            path = format!("{path}:{}", base().join("magnum-22").display());
        }
        [
            ("PYTHONPATH", path),
            ("MAGNUM_TEST_BUILT", self.built.display().to_string()),
        ]
    }

    /// An environment with Magnum 23 and this version of the package, which finds them whatever its parent's environment is.
    pub fn environment_of_version(&self, version: &str) -> Result<PathBuf> {
        let folder = self.package_with_this_driver_only(version)?;
        fs::create_dir(folder.join("bin"))?;
        let text = format!("#!/bin/sh\nPYTHONPATH={folder:?} exec {:?} \"$@\"\n", python()?);
        write_program(&folder.join("bin/python"), &text)?;
        Ok(folder)
    }

    /// A folder that has this version of the package with this driver as the only one. Magnum's conductor imports all drivers
    /// that it finds, and ends with one that ends its process.
    pub fn package_with_this_driver_only(&self, version: &str) -> Result<PathBuf> {
        let package = package();
        let folder = run_dir()?.folder("package")?;
        std::os::unix::fs::symlink(
            package.join("magnum_test_drivers"),
            folder.join("magnum_test_drivers"),
        )?;
        let about = "magnum_test_drivers-1.0.0.dist-info";
        fs::create_dir(folder.join(about))?;
        let metadata = fs::read_to_string(package.join(about).join("METADATA"))?;
        let metadata = metadata.replace("Version: 1.0.0", &format!("Version: {version}"));
        fs::write(folder.join(about).join("METADATA"), metadata)?;
        let all = fs::read_to_string(package.join(about).join("entry_points.txt"))?;
        let kept = all
            .lines()
            .filter(|line| line.starts_with('[') || line.starts_with(DRIVER));
        let kept = kept.collect::<Vec<_>>().join("\n");
        fs::write(folder.join(about).join("entry_points.txt"), kept + "\n")?;
        Ok(folder)
    }

    /// An interpreter that finds the package whatever environment its parent has: for engines inside of a test.
    pub fn interpreter(&self) -> Result<PathBuf> {
        let [package, built] = self.environment();
        let path = self.drivers.with_file_name("python");
        let text = format!(
            "#!/bin/sh\n{}={:?} {}={:?} exec {:?} \"$@\"\n",
            package.0,
            package.1,
            built.0,
            built.1,
            python()?
        );
        write_program(&path, &text)?;
        Ok(path)
    }

    /// The files of a cluster, by name, with their content.
    pub fn effects(&self, cluster: &str) -> Result<BTreeMap<String, String>> {
        let mut found = BTreeMap::new();
        read(&self.built.join(cluster), "", &mut found)?;
        Ok(found)
    }

    /// How many nodes a cluster has.
    pub fn nodes(&self, cluster: &str) -> Result<usize> {
        let effects = self.effects(cluster)?;
        Ok(effects.keys().filter(|name| name.contains("/node-")).count())
    }

    /// The processes of a call that hangs, once it does.
    pub fn pids(&self, cluster: &str) -> Result<Vec<u32>> {
        let path = self.built.join(format!("pids-{cluster}"));
        let text = fs::read_to_string(&path).with_context(|| format!("no {}", path.display()))?;
        text.split(' ').map(|pid| Ok(pid.parse()?)).collect()
    }
}

fn copy_manifests(from: &Path, to: &Path) -> Result<()> {
    for folder in fs::read_dir(from)? {
        let folder = folder?;
        let copy = to.join(folder.file_name());
        fs::create_dir_all(&copy)?;
        fs::copy(folder.path().join("driver.toml"), copy.join("driver.toml"))?;
    }
    Ok(())
}

fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("python_drivers")
}

fn write_program(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    // What is being written cannot be run.
    let draft = path.with_extension("new");
    fs::write(&draft, text)?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755))?;
    Ok(fs::rename(draft, path)?)
}

/// The environment of the Python peers.
pub fn venv() -> Result<String> {
    let python = python()?;
    let folder = python.parent().and_then(Path::parent).context("bin/python")?;
    Ok(folder.display().to_string())
}

fn read(folder: &Path, name: &str, found: &mut BTreeMap<String, String>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for entry in entries {
        let entry = entry?;
        let name = format!("{name}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read(&entry.path(), &name, found)?;
        } else {
            found.insert(name, fs::read_to_string(entry.path())?);
        }
    }
    Ok(())
}
