//! CA material as files for the program of one call.
//!
//! Guarantees: the directory is new, has mode 0700 and belongs to this user, its files have mode 0600 (for a program of
//! another user they are that user's, and the directory lets pass who knows its random name), and it is gone
//! when [`CaFiles`] is dropped: after the call, and when the call was cancelled or its future dropped. What a conductor
//! that was killed has left is removed by [`sweep`], at the next start of one on this host. A directory in use is
//! locked by its process, so that conductors beside each other leave theirs alone.
//!
//! Not guaranteed: anything about copies that the program makes, or that the file system keeps: use one in memory.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use magnum_driver_api::CaMaterial;
use nix::unistd::{Uid, geteuid};
use uuid::Uuid;

/// How the directories' names begin.
const PREFIX: &str = "magnum-ca-";
/// The CA's certificate.
const CA: &str = "ca.crt";
/// The conductor's client certificate.
const CLIENT: &str = "client.crt";
/// Its private key.
const KEY: &str = "client.key";

/// The files of one call. Dropping it removes them.
#[derive(Debug)]
pub(crate) struct CaFiles {
    directory: PathBuf,
    /// Locked: the directory is in use.
    _lock: File,
}

impl CaFiles {
    /// Writes the files into a new directory below `root`, whose name ends with `name`, for `reader`, if that is another
    /// user. Blocks on the file system.
    ///
    /// # Errors
    /// The file system's; nothing is left behind.
    pub(crate) fn write(
        root: &Path,
        name: Uuid,
        material: &CaMaterial,
        reader: Option<Uid>,
    ) -> io::Result<Self> {
        let directory = root.join(format!("{PREFIX}{}", name.simple()));
        DirBuilder::new().mode(0o700).create(&directory)?;
        let lock = match locked(&directory) {
            Ok(Some(lock)) => lock,
            // A sweep met it before it was locked, and removes it.
            Ok(None) => return Err(io::ErrorKind::ResourceBusy.into()),
            Err(error) => {
                // Nothing is in it yet; it may be gone.
                let _ = fs::remove_dir(&directory);
                return Err(error);
            }
        };
        let files = Self {
            directory,
            _lock: lock,
        };
        for (name, text) in [
            (CA, material.ca.as_str()),
            (CLIENT, &material.client),
            (KEY, material.key.expose()),
        ] {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o600);
            let mut file = options.open(files.directory.join(name))?;
            file.write_all(text.as_bytes())?;
            if !text.ends_with('\n') {
                file.write_all(b"\n")?;
            }
            if let Some(reader) = reader {
                fchown(&file, Some(reader.as_raw()), None)?;
            }
        }
        if reader.is_some() {
            fs::set_permissions(&files.directory, Permissions::from_mode(0o711))?;
        }
        Ok(files)
    }

    /// Where they are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for CaFiles {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.directory)
            && error.kind() != io::ErrorKind::NotFound
        {
            let directory = self.directory.display();
            tracing::error!(%error, %directory, "files with a cluster's client key could not be removed");
        }
    }
}

/// The lock of a directory; `None`: another process has it.
fn locked(directory: &Path) -> io::Result<Option<File>> {
    let file = File::open(directory)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes what killed processes of this user have left below `root`. Blocks on the file system.
pub(crate) fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let directory = entry.path();
        // Of the entry itself, not of what a link points to: others may write to `root`, too.
        let is_ours = entry
            .metadata()
            .is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if !is_ours {
            continue;
        }
        if let Ok(Some(_lock)) = locked(&directory) {
            match fs::remove_dir_all(&directory) {
                Ok(()) => {
                    tracing::info!(directory = %directory.display(), "removed CA files of a call that was killed");
                }
                Err(error) => {
                    tracing::error!(%error, directory = %directory.display(), "CA files of a killed call stay");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {

    use magnum_common::secret::Secret;

    use super::*;

    fn material() -> CaMaterial {
        CaMaterial {
            ca: "the CA".into(),
            client: "the client\n".into(),
            key: Secret::new("the key"),
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn files_are_private_and_go_with_their_owner() {
        let root = tempfile::tempdir().unwrap();
        let files = CaFiles::write(root.path(), Uuid::new_v4(), &material(), None).unwrap();
        let directory = files.directory().to_owned();
        assert_eq!(mode(&directory), 0o700);
        for (name, text) in [(CA, "the CA\n"), (CLIENT, "the client\n"), (KEY, "the key\n")] {
            assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
            assert_eq!(fs::read_to_string(directory.join(name)).unwrap(), text);
        }
        drop(files);
        assert!(!directory.exists());
    }

    #[test]
    fn sweep_removes_unlocked_folders_only() {
        let root = tempfile::tempdir().unwrap();
        let used = CaFiles::write(root.path(), Uuid::new_v4(), &material(), None).unwrap();
        let left = root.path().join(format!("{PREFIX}of-a-killed-process"));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(KEY), "the key").unwrap();
        let other = root.path().join("something-else");
        fs::create_dir(&other).unwrap();
        let link = root.path().join(format!("{PREFIX}link"));
        std::os::unix::fs::symlink(&other, &link).unwrap();
        sweep(root.path());
        assert!(!left.exists());
        assert!(used.directory().join(KEY).exists());
        assert!(other.exists() && link.exists());
    }

    #[test]
    fn unwritable_root_is_an_error_and_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let missing = root.path().join("missing");
        let error = CaFiles::write(&missing, Uuid::new_v4(), &material(), None).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        sweep(&missing);
    }
}
