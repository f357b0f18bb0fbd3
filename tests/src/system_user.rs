//! Servers that refuse to run as root, or whose helpers do: under root they run as the user of their package, and their data
//! lie where that user may go. Run by anybody else they run as that one.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::run_dir::run_dir;

/// A user that comes with a package.
#[derive(Debug, Clone, Copy)]
pub struct SystemUser(pub &'static str);

impl SystemUser {
    /// Whether servers run as this user, since we are root.
    pub fn is_needed() -> bool {
        nix::unistd::geteuid().is_root()
    }

    /// A new folder of this user's, in the run's folder if it may go there.
    pub fn folder(self, topic: &str) -> Result<PathBuf> {
        let run = run_dir()?;
        let inside = run.folder(topic)?;
        let folder = if self.may_enter(&inside) {
            inside
        } else {
            run.outside_folder(topic)?
        };
        self.own(&folder)?;
        Ok(folder)
    }

    /// Gives a folder, and all that is in it, to this user.
    pub fn own(self, folder: &Path) -> Result<()> {
        if !Self::is_needed() {
            return Ok(());
        }
        let name = self.0;
        let user = nix::unistd::User::from_name(name)?
            .with_context(|| format!("there is no user {name}, although its package is installed"))?;
        chown(folder, Some(user.uid.as_raw()), Some(user.gid.as_raw()))?;
        let all = Command::new("chown")
            .arg("-R")
            .arg(format!("{name}:"))
            .arg(folder)
            .status()?;
        ensure!(all.success(), "chown of {}: {all}", folder.display());
        Ok(())
    }

    /// Whether the user can enter a folder: every folder on the way must let it pass.
    fn may_enter(self, folder: &Path) -> bool {
        self.command(Path::new("test"))
            .arg("-x")
            .arg(folder)
            .current_dir("/")
            .status()
            .is_ok_and(|status| status.success())
    }

    /// A program that runs as this user when we are root, and as ourselves otherwise.
    pub fn command(self, program: &Path) -> Command {
        self.change(&Command::new(program))
    }

    /// The same for a program with arguments. What else the command has is not kept.
    pub fn change(self, wanted: &Command) -> Command {
        if !Self::is_needed() {
            let mut command = Command::new(wanted.get_program());
            command.args(wanted.get_args());
            return command;
        }
        let mut command = Command::new("setpriv");
        command
            .args([
                &format!("--reuid={}", self.0),
                &format!("--regid={}", self.0),
                "--init-groups",
                "--",
            ])
            .arg(wanted.get_program())
            .args(wanted.get_args());
        command
    }
}
