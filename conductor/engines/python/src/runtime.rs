//! The private folder of one zygote: the host's files, its socket, and the temporary folders of its calls.
//!
//! A conductor that dies by `kill -9` leaves its folders behind; so each holds a lock for as long as its process lives, and
//! who starts next removes those that nobody holds.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};
use tempfile::TempDir;

use super::host_files;

const PREFIX: &str = "magnum-python-";

/// The folder; removed when dropped.
pub struct RuntimeFolder {
    folder: TempDir,
    _lock: Flock<File>,
}

impl RuntimeFolder {
    /// A new folder below `root`, mode 0700, with the host's files in it.
    ///
    /// # Errors
    /// `root` cannot be written to.
    pub fn create(root: &Path) -> io::Result<Self> {
        sweep(root);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(root)?;
        let lock = lock(folder.path())?.ok_or_else(|| io::Error::other("the folder is locked already"))?;
        fs::create_dir(folder.path().join("tmp"))?;
        let host = folder.path().join("host");
        fs::create_dir(&host)?;
        host_files::write(&host)?;
        Ok(Self { folder, _lock: lock })
    }

    /// What Python is to run.
    pub fn host(&self) -> PathBuf {
        self.folder.path().join("host")
    }

    /// Where the zygote is to listen.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Where calls get temporary folders.
    pub fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }
}

fn lock(folder: &Path) -> io::Result<Option<Flock<File>>> {
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("lock"))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Some(lock)),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Ok(None),
        Err((_, error)) => Err(error.into()),
    }
}

/// Removes folders whose process has ended.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        // One without a lock is being made at this moment.
        let path = entry.path();
        if path.join("lock").exists()
            && let Ok(Some(held)) = lock(&path)
            && let Err(error) = fs::remove_dir_all(&path)
        {
            drop(held);
            tracing::debug!(folder = %path.display(), %error, "a folder of an ended process cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_ended_processes_are_removed_and_those_of_others_stay() {
        let root = tempfile::tempdir().unwrap();
        let held = RuntimeFolder::create(root.path()).unwrap();
        assert!(held.host().join("__main__.py").is_file());
        let left = root.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join("lock"), "").unwrap();
        let foreign = root.path().join("other");
        fs::create_dir(&foreign).unwrap();
        let second = RuntimeFolder::create(root.path()).unwrap();
        assert!(!left.exists());
        assert!(foreign.exists() && held.temporary().is_dir());
        let path = second.host();
        drop(second);
        assert!(!path.exists());
    }
}
