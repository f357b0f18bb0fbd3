//! The double of `helm`, which keeps releases in a real API server as helm 3 does, and can be held in the middle of its work.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::Result;

use crate::management_cluster::testbed;
use crate::run_dir::run_dir;

/// The double of `helm`, for the programs that are given [`Helm::environment`].
#[derive(Debug)]
pub struct Helm {
    folder: PathBuf,
}

/// A helm that waits between "this revision is pending" and the first object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its process.
    pub pid: i32,
    /// The release.
    pub release: String,
}

impl Helm {
    /// One that nothing holds.
    pub fn new() -> Result<Self> {
        Ok(Self {
            folder: run_dir()?.folder("helm")?,
        })
    }

    /// Variables of a program that calls `helm`; `path` is the PATH that it would have else.
    pub fn environment(&self, path: &str) -> [(&'static str, String); 2] {
        let helm = testbed().join("bin");
        [
            ("PATH", format!("{}:{path}", helm.display())),
            ("HELM_HOLD", self.folder.display().to_string()),
        ]
    }

    /// From now on every helm stops before its first object.
    pub fn hold(&self) -> Result<()> {
        Ok(fs::write(self.folder.join("hold"), "")?)
    }

    /// Those that wait, and those that were killed while they did.
    pub fn held(&self) -> Result<Vec<Held>> {
        let mut held = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if let Some(Ok(pid)) = name.strip_prefix("held-").map(str::parse) {
                // It may have gone on meanwhile.
                if let Ok(release) = fs::read_to_string(self.folder.join(name)) {
                    held.push(Held { pid, release });
                }
            }
        }
        Ok(held)
    }

    /// Those that wait go on, and nothing holds the next.
    pub fn let_go(&self) -> Result<()> {
        Ok(fs::remove_file(self.folder.join("hold"))?)
    }

    /// Processes that have [`Self::environment`]: those that call helm, what they have started, and every helm.
    pub fn callers(&self) -> Result<Vec<u32>> {
        let variable = format!("HELM_HOLD={}\0", self.folder.display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc")? {
            let entry = entry?;
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
                continue;
            };
            // One may end while it is looked at; one that has ended, and whose parent does not know yet, has no environment.
            let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
            if String::from_utf8_lossy(&environment).contains(&variable) {
                found.push(pid);
            }
        }
        Ok(found)
    }

    /// A command line of this `helm`.
    pub fn command(&self, kubeconfig: &Path) -> Command {
        let mut command = Command::new(testbed().join("bin/helm"));
        let path = env::var("PATH").unwrap_or_default();
        command
            .envs(self.environment(&path))
            .env("KUBECONFIG", kubeconfig);
        command
    }
}
