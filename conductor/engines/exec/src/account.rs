//! `run_as`: the user that a driver's program runs as.
//!
//! As the conductor's own user a program can read what the conductor can: keys, `magnum.conf`, other drivers' private
//! files. As a user of its own it cannot, nor end or trace a process of the conductor. The guard turns into that user, with
//! its groups and no capabilities, before it starts the program, so it can still end it.
//!
//! Only root can give a process to another user without leaving it the right to do the same.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use magnum_drivers::Problem;
use nix::unistd::{Uid, User, geteuid};

/// A user that programs run as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: Uid,
    /// Its home.
    pub home: PathBuf,
}

impl Account {
    /// The user `name`, for the driver in `dir`.
    ///
    /// # Errors
    /// There is none, this process is not root, or the user could change the driver.
    pub fn of(name: &str, dir: &Path) -> Result<Self, Problem> {
        let user = User::from_name(name).map_err(|error| refusal(name, &error.to_string()))?;
        let owner = fs::metadata(dir).map(|found| found.uid()).ok();
        Self::checked(name, user, geteuid(), owner).map_err(|why| refusal(name, &why))
    }

    fn checked(name: &str, user: Option<User>, conductor: Uid, owner: Option<u32>) -> Result<Self, String> {
        let user = user.ok_or("there is no such user on this host")?;
        if !conductor.is_root() {
            return Err(format!(
                "the conductor has to be root for that, and is user {conductor}"
            ));
        }
        if owner == Some(user.uid.as_raw()) {
            return Err(
                "the driver's folder is that user's, who could change what is run: give it to root"
                    .to_owned(),
            );
        }
        Ok(Self {
            name: name.to_owned(),
            uid: user.uid,
            home: user.dir,
        })
    }
}

fn refusal(name: &str, why: &str) -> Problem {
    Problem::of_folder(format!("run_as = \"{name}\" in [exec] cannot be done: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_runs_programs_as_another_user_who_cannot_change_them() {
        let nobody = || User::from_name("nobody").unwrap();
        let uid = nobody().unwrap().uid;
        let root = Uid::from_raw(0);
        let account = Account::checked("nobody", nobody(), root, Some(0)).unwrap();
        assert_eq!((account.name.as_str(), account.uid), ("nobody", uid));
        for (user, conductor, owner, why) in [
            (None, root, 0, "no such user"),
            (
                nobody(),
                Uid::from_raw(64_000),
                0,
                "has to be root for that, and is user 64000",
            ),
            (nobody(), root, uid.as_raw(), "give it to root"),
        ] {
            let refused = Account::checked("nobody", user, conductor, Some(owner)).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
