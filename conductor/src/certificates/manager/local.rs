//! Files of this host: `<uuid>.crt`, `.key`, `.pass` and, if there are any, `.int`, below `[certificates]
//! storage_path`. For one conductor on one host; Magnum's own manager of this name does not work on Python 3.
//!
//! The certificate is written last and removed first: where it is, all is. Each file is written beside its place
//! and moved there, with mode 0600 from the beginning; writers of the directory wait for each other.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use magnum_common::secret::Secret;
use uuid::Uuid;

use super::{CertificateManager, Entry, Kept, ManagerError, Sealing, Stored};
use magnum_x509::authority::KeyPair;

const LOCK: &str = ".magnum-conductor.lock";

/// The store in the file system.
#[derive(Clone)]
pub(in crate::certificates) struct Files {
    directory: PathBuf,
    sealing: Sealing,
}

impl Files {
    pub(in crate::certificates) fn new(directory: PathBuf, sealing: Sealing) -> Self {
        Self { directory, sealing }
    }

    /// Runs on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, ManagerError> + Send + 'static,
    ) -> Result<T, ManagerError> {
        let files = self.clone();
        let span = tracing::Span::current();
        tokio::task::spawn_blocking(move || span.in_scope(|| work(&files)))
            .await
            .map_err(|error| ManagerError::Interrupted(error.to_string()))?
    }

    /// A file of an entry. The reference comes from a row: only a uuid may become a path.
    fn path(&self, reference: &str, ending: &str) -> Result<PathBuf, ManagerError> {
        let uuid = Uuid::try_parse(reference).map_err(|_| ManagerError::Missing(reference.to_owned()))?;
        Ok(self.directory.join(format!("{uuid}.{ending}")))
    }

    /// Held while something is written or removed.
    fn lock(&self) -> Result<File, ManagerError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(|source| failed(&self.directory, source))?;
        let path = self.directory.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| failed(&path, source))?;
        file.lock().map_err(|source| failed(&path, source))?;
        Ok(file)
    }

    fn read(&self, reference: &str, ending: &str) -> Result<Option<String>, ManagerError> {
        let path = self.path(reference, ending)?;
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failed(&path, source)),
        }
    }

    fn write(&self, reference: &str, ending: &str, text: &str) -> Result<(), ManagerError> {
        let path = self.path(reference, ending)?;
        let draft = path.with_extension(format!("{ending}.new"));
        let written = (|| {
            // Left by a conductor that was killed: nobody else writes while we hold the lock.
            remove(&draft)?;
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&draft)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&draft, &path)
        })();
        written.map_err(|source| failed(&path, source))
    }

    fn load(&self, reference: &str) -> Result<Option<KeyPair>, ManagerError> {
        let Some(certificate) = self.read(reference, "crt")? else {
            return Ok(None);
        };
        let kept = self
            .read(reference, "key")?
            .ok_or_else(|| ManagerError::Unusable {
                reference: reference.to_owned(),
                reason: format!("{} has no key file", self.directory.display()),
            })?;
        Ok(Some(KeyPair {
            certificate,
            private_key: self.sealing.open(reference, &kept, Kept::File)?,
            passphrase: self.read(reference, "pass")?.map(Secret::new),
            intermediates: self.read(reference, "int")?,
        }))
    }

    fn save(&self, reference: &str, pair: &KeyPair) -> Result<(), ManagerError> {
        let kept = self.sealing.close(reference, &pair.private_key)?;
        self.write(reference, "key", kept.expose())?;
        for (ending, text) in [
            ("pass", pair.passphrase.as_ref().map(Secret::expose)),
            ("int", pair.intermediates.as_deref()),
            ("crt", Some(&*pair.certificate)),
        ] {
            if let Some(text) = text {
                self.write(reference, ending, text)?;
            }
        }
        self.sync()
    }

    /// Makes names last.
    fn sync(&self) -> Result<(), ManagerError> {
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| failed(&self.directory, source))
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn failed(path: &Path, source: io::Error) -> ManagerError {
    ManagerError::File {
        path: path.to_owned(),
        source,
    }
}

#[async_trait]
impl CertificateManager for Files {
    async fn find(&self, entry: &Entry) -> Result<Option<Stored>, ManagerError> {
        let reference = entry.id().to_string();
        let id = reference.clone();
        let pair = self.blocking(move |files| files.load(&id)).await?;
        Ok(pair.map(|pair| Stored { reference, pair }))
    }

    async fn store(&self, entry: &Entry, pair: KeyPair) -> Result<Stored, ManagerError> {
        let reference = entry.id().to_string();
        self.blocking(move |files| {
            let _lock = files.lock()?;
            if let Some(pair) = files.load(&reference)? {
                return Ok(Stored { reference, pair });
            }
            files.save(&reference, &pair)?;
            Ok(Stored { reference, pair })
        })
        .await
    }

    async fn get(&self, reference: &str) -> Result<KeyPair, ManagerError> {
        let reference = reference.to_owned();
        self.blocking(move |files| files.load(&reference)?.ok_or(ManagerError::Missing(reference)))
            .await
    }

    async fn delete(&self, reference: &str) -> Result<(), ManagerError> {
        if Uuid::try_parse(reference).is_err() {
            return Ok(());
        }
        let reference = reference.to_owned();
        self.blocking(move |files| {
            let _lock = files.lock()?;
            for ending in ["crt", "key", "pass", "int"] {
                let path = files.path(&reference, ending)?;
                remove(&path).map_err(|source| failed(&path, source))?;
            }
            files.sync()
        })
        .await
    }
}
