//! Private keys at rest, in the stores that are ours: as Magnum writes them, or sealed as well.
//!
//! Magnum's form is an encrypted key with its passphrase beside it, which protects nothing from readers of
//! the store. With `[certificates] seal_private_keys` what is kept in the key's place is sealed with the
//! conductors' key file and tied to its reference, so that one key cannot be put in another's place. Both forms
//! are read, whatever the option is now.

use std::sync::Arc;

use crate::seal::{JournalKey, SealError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use magnum_common::secret::Secret;

use super::ManagerError;

/// How a sealed key begins. PEM begins otherwise.
const MARK: &str = "magnum-sealed-v1:";

/// Seals and opens private keys.
#[derive(Debug, Clone)]
pub(crate) struct Sealing {
    key: Arc<JournalKey>,
    is_on: bool,
}

impl Sealing {
    pub(crate) fn new(key: Arc<JournalKey>, is_on: bool) -> Self {
        Self { key, is_on }
    }

    /// A key as it is stored: sealed, if that is configured.
    pub(super) fn close(&self, reference: &str, key: &Secret) -> Result<Secret, ManagerError> {
        if !self.is_on {
            return Ok(key.clone());
        }
        let sealed = self
            .key
            .seal_for(&purpose(reference), key.expose().as_bytes())
            .map_err(|source| failed(reference, source))?;
        Ok(Secret::new(format!("{MARK}{}", STANDARD.encode(sealed))))
    }

    /// Opens a stored key, sealed or not.
    ///
    /// # Errors
    /// [`ManagerError::Seal`]: it is sealed for another reference, or with a key that is not in the key file.
    pub(crate) fn open(&self, reference: &str, kept: &str) -> Result<Secret, ManagerError> {
        let Some(sealed) = kept.trim().strip_prefix(MARK) else {
            return Ok(Secret::new(kept));
        };
        let sealed = STANDARD
            .decode(sealed)
            .map_err(|_| failed(reference, SealError::UnknownLayout))?;
        let opened = self
            .key
            .open_for(&purpose(reference), &sealed)
            .map_err(|source| failed(reference, source))?;
        String::from_utf8(opened)
            .map(Secret::new)
            .map_err(|_| failed(reference, SealError::UnknownLayout))
    }
}

fn purpose(reference: &str) -> Vec<u8> {
    format!("magnum private key v1 {reference}").into_bytes()
}

fn failed(reference: &str, source: SealError) -> ManagerError {
    ManagerError::Seal {
        reference: reference.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_key_opens_in_its_own_place_only_and_a_plain_one_stays_readable() {
        let folder = tempfile::tempdir().unwrap();
        let key = Arc::new(JournalKey::load_or_create(&folder.path().join("k")).unwrap());
        let (on, off) = (Sealing::new(Arc::clone(&key), true), Sealing::new(key, false));
        let pem = Secret::new("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==");

        let sealed = on.close("a", &pem).unwrap();
        assert!(!sealed.expose().contains("PRIVATE"));
        assert_eq!(off.open("a", sealed.expose()).unwrap(), pem);
        assert!(on.open("b", sealed.expose()).is_err(), "moved to another place");

        assert_eq!(off.close("a", &pem).unwrap(), pem);
        assert_eq!(on.open("a", pem.expose()).unwrap(), pem);
    }
}
