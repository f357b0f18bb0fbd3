//! Private keys at rest, in the stores that are ours: as Magnum writes them, or sealed as well.
//!
//! Magnum's form is an encrypted key with its passphrase beside it, which protects nothing from readers of
//! the store. With `[certificates] seal_private_keys` what is kept in the key's place is sealed with the
//! conductors' key file and tied to its reference, so that one key cannot be put in another's place.
//!
//! Sealed keys are read whatever the option is now. While it is on, a key that is not sealed is read from a row that is older
//! than that, or wherever `[certificates] unsealed_keys` says so. A row says itself how old it is; `magnum-db-manage reseal`
//! ends the exception, by sealing what is left. Files of this host have no such limit: who can write them can read the key
//! file.

use std::sync::Arc;

use crate::seal::{Beginning, JournalKey, Place, SealError};
use crate::store::key_pairs::SEALED as MARK;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use magnum_common::model::Timestamp;
use magnum_common::secret::Secret;
use magnum_config::{CertificatesSection, UnsealedKeys};

use super::ManagerError;

/// Seals and opens private keys.
#[derive(Debug, Clone)]
pub(crate) struct Sealing {
    key: Arc<JournalKey>,
    is_on: bool,
    unsealed: UnsealedKeys,
}

/// Where a key is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kept {
    /// In a row that was made then, by its own account.
    Row(Option<Timestamp>),
    /// In a file of this host.
    File,
}

impl Sealing {
    pub(crate) fn new(key: Arc<JournalKey>, options: &CertificatesSection) -> Self {
        Self {
            key,
            is_on: options.seal_private_keys,
            unsealed: options.unsealed_keys,
        }
    }

    /// A key as it is stored: sealed, if that is configured and it is not yet.
    pub(crate) fn close(&self, reference: &str, key: &Secret) -> Result<Secret, ManagerError> {
        if !self.is_on || key.expose().starts_with(MARK) {
            return Ok(key.clone());
        }
        let sealed = self
            .key
            .seal(Place::PrivateKey(reference), key.expose().as_bytes())
            .map_err(|source| failed(reference, source))?;
        Ok(Secret::new(format!("{MARK}{}", STANDARD.encode(sealed))))
    }

    /// Opens a stored key, sealed or not.
    ///
    /// # Errors
    /// [`ManagerError::Seal`]: it is sealed for another reference, or with a key that is not in the key file.
    /// [`ManagerError::NotSealed`]: it should be.
    pub(crate) fn open(&self, reference: &str, key: &str, kept: Kept) -> Result<Secret, ManagerError> {
        let Some(sealed) = key.trim().strip_prefix(MARK) else {
            return if self.accepts_plain(kept) {
                Ok(Secret::new(key))
            } else {
                Err(ManagerError::NotSealed(reference.to_owned()))
            };
        };
        let sealed = STANDARD
            .decode(sealed)
            .map_err(|_| failed(reference, SealError::UnknownLayout))?;
        // Of either layout: both bind a key to its reference.
        let opened = self
            .key
            .open(Place::PrivateKey(reference), 0, &sealed)
            .map_err(|source| failed(reference, source))?;
        String::from_utf8(opened)
            .map(Secret::new)
            .map_err(|_| failed(reference, SealError::UnknownLayout))
    }

    /// Whether a stored key has the form that a new one gets.
    pub(crate) fn is_current(&self, reference: &str, key: &str) -> bool {
        match key
            .trim()
            .strip_prefix(MARK)
            .map(|sealed| STANDARD.decode(sealed))
        {
            Some(Ok(sealed)) => self.key.is_current(Place::PrivateKey(reference), &sealed),
            Some(Err(_)) => false,
            None => !self.is_on,
        }
    }

    fn accepts_plain(&self, kept: Kept) -> bool {
        let Kept::Row(made) = kept else {
            return true;
        };
        let made = made.map(|made| made.and_utc().timestamp_millis());
        match self.unsealed {
            _ if !self.is_on => true,
            UnsealedKeys::Accept => true,
            UnsealedKeys::Refuse => false,
            UnsealedKeys::BeforeSealing => {
                made.is_some_and(|made| !self.key.begun().is_after(Beginning::SealedKeys, made))
            }
        }
    }
}

fn failed(reference: &str, source: SealError) -> ManagerError {
    ManagerError::Seal {
        reference: reference.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    const PEM: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==";

    fn sealing(key: &Arc<JournalKey>, is_on: bool, unsealed: UnsealedKeys) -> Sealing {
        let options = CertificatesSection {
            seal_private_keys: is_on,
            unsealed_keys: unsealed,
            ..CertificatesSection::default()
        };
        Sealing::new(Arc::clone(key), &options)
    }

    fn row(ms: i64) -> Kept {
        Kept::Row(Some(DateTime::from_timestamp_millis(ms).unwrap().naive_utc()))
    }

    #[test]
    fn a_sealed_key_opens_in_its_own_place_only_and_a_plain_one_stays_readable() {
        let folder = tempfile::tempdir().unwrap();
        let key = Arc::new(JournalKey::load_or_create(&folder.path().join("k")).unwrap());
        let before = UnsealedKeys::BeforeSealing;
        let (on, off) = (sealing(&key, true, before), sealing(&key, false, before));
        let pem = Secret::new(PEM);

        let sealed = on.close("a", &pem).unwrap();
        assert!(!sealed.expose().contains("PRIVATE"));
        assert_eq!(off.open("a", sealed.expose(), row(1)).unwrap(), pem);
        assert!(
            on.open("b", sealed.expose(), row(1)).is_err(),
            "moved to another place"
        );
        assert_eq!(on.close("a", &sealed).unwrap(), sealed, "sealed once");

        assert_eq!(off.close("a", &pem).unwrap(), pem);
        assert_eq!(on.open("a", PEM, row(1)).unwrap(), pem);
    }

    #[test]
    fn a_plain_key_in_a_row_newer_than_sealing_is_refused_unless_it_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let key = Arc::new(JournalKey::load_or_create(&folder.path().join("k")).unwrap());
        key.begun().begin(Beginning::SealedKeys, 1_000);
        let on = |unsealed| sealing(&key, true, unsealed);
        let default = on(UnsealedKeys::BeforeSealing);
        assert!(default.open("a", PEM, row(999)).is_ok());
        assert!(default.open("a", PEM, Kept::File).is_ok());
        for kept in [row(1_000), Kept::Row(None)] {
            let error = default.open("a", PEM, kept).unwrap_err().to_string();
            assert!(
                error.contains("certificate a") && error.contains("unsealed_keys"),
                "{error}"
            );
            assert!(on(UnsealedKeys::Accept).open("a", PEM, kept).is_ok());
            assert!(
                sealing(&key, false, UnsealedKeys::BeforeSealing)
                    .open("a", PEM, kept)
                    .is_ok()
            );
        }
        assert!(on(UnsealedKeys::Refuse).open("a", PEM, row(1)).is_err());
    }
}
