//! Sealing secrets at rest: the Keystone tokens in journalled request contexts, and private keys of clusters
//! where `[certificates] seal_private_keys` asks for it.
//!
//! XChaCha20-Poly1305 with a key from a file that all conductors share. The file is text, one base64 key of 32
//! bytes per line, `#` starts a comment; the first key seals, every key opens. To rotate: put a new line on top,
//! restart the conductors, and remove the old line when no operation from before is left open. A line that has
//! sealed private keys stays for as long as their clusters.
//!
//! Guarantees: with the database but without the key file, nothing can be read, nothing changed unnoticed, and nothing
//! that is sealed be put in another place ([`Place`]).
//! Not guaranteed: anything against somebody who can read the key file, which is why it must belong to one
//! user and be readable by nobody else (checked at every load). Nor that a value is the last one that was in its place: an
//! older one of the same place can be put back.
//!
//! Values of the first layout are not all bound to their place. How long they are accepted is in [`Begun`].

mod begun;
mod place;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use magnum_config::key_file::{self, KeyFileError};

pub use self::begun::{ALWAYS, Beginning, Begun};
pub use self::place::Place;
use self::place::{FORMER, LAYOUT};

const NONCE_LENGTH: usize = 24;

/// The keys of one key file.
#[derive(Clone)]
pub struct JournalKey {
    /// The first seals.
    opens: Vec<XChaCha20Poly1305>,
    /// What the deployment has agreed on, shared by all clones.
    begun: Arc<Begun>,
}

impl std::fmt::Debug for JournalKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JournalKey({} keys)", self.opens.len())
    }
}

/// Why something could not be sealed or opened, or a key file not be used.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// No key file there.
    #[error(
        "the journal key file {path} does not exist; run `magnum-db-manage upgrade` to make one, and copy it \
         to every conductor host ([conductor] journal_key_file)"
    )]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read or used.
    #[error("the journal key file {0}")]
    File(#[from] KeyFileError),
    /// It cannot be written.
    #[error("the journal key file {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// None of the keys opens it, or it was changed.
    #[error(
        "a sealed value cannot be opened with any key of the journal key file: it was sealed with another \
         key, or was changed; all conductors must share one key file, and a key must stay in it until no \
         operation from its time is open"
    )]
    WrongKey,
    /// Too short, or of a later layout.
    #[error("a sealed value has an unknown layout; was it written by a newer release?")]
    UnknownLayout,
    /// Of the first layout, in a row from after its end.
    #[error(
        "a sealed value is not bound to its row, and the row is newer than the time from which on all are: it was put \
         there, or a conductor of an older release still runs (see `magnum-db-manage reseal`)"
    )]
    Former,
    /// The system has no random numbers.
    #[error("the system gave no random numbers for sealing")]
    NoRandomness,
}

impl JournalKey {
    /// Reads a key file.
    ///
    /// # Errors
    /// The file cannot be read, others than its owner may read it, or a line is not a key.
    pub fn load(path: &Path) -> Result<Self, SealError> {
        match key_file::read(path) {
            Ok(keys) => Ok(Self::new(&keys)),
            Err(KeyFileError::Io {
                path,
                kind: io::ErrorKind::NotFound,
                ..
            }) => Err(SealError::Missing { path }),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates a key file with one random key and mode 0600, unless it exists; returns whether it did. Several
    /// processes may do this at once: one of them creates the file, all use it.
    ///
    /// # Errors
    /// The file or its folder cannot be written.
    pub fn create_if_missing(path: &Path) -> Result<bool, SealError> {
        let failed = |source| SealError::Io {
            path: path.to_owned(),
            source,
        };
        if path.exists() {
            return Ok(false);
        }
        let key = Key::try_generate().map_err(|_| SealError::NoRandomness)?;
        let text = format!(
            "# Seals credentials in the conductors' journal. Same file on every conductor host; keep it secret.\n\
             # The first key seals, all keys open: to rotate, add a line on top, remove the old one later.\n{}\n",
            STANDARD.encode(key)
        );
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        // Written beside and linked into place, so that nobody ever reads half a key.
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let draft = path.with_file_name(format!(".journal-key-{unique}"));
        let written = write_private(&draft, &text).and_then(|()| {
            belong_to_folder(&draft)?;
            fs::hard_link(&draft, path)
        });
        let removed = fs::remove_file(&draft);
        match written {
            Ok(()) => removed.map(|()| true).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Reads the key file, and creates one first if there is none.
    ///
    /// # Errors
    /// As [`Self::load`] and [`Self::create_if_missing`].
    pub fn load_or_create(path: &Path) -> Result<Self, SealError> {
        Self::create_if_missing(path)?;
        Self::load(path)
    }

    /// With these keys, of which there is at least one: the first seals.
    fn new(keys: &[[u8; key_file::KEY_LENGTH]]) -> Self {
        let opens: Vec<_> = keys
            .iter()
            .map(|bytes| XChaCha20Poly1305::new(&Key::from(*bytes)))
            .collect();
        Self {
            opens,
            begun: Arc::default(),
        }
    }

    /// What the deployment has agreed on.
    pub fn begun(&self) -> &Begun {
        &self.begun
    }

    /// Encrypts bytes for one place with the first key: of the first layout until the deployment has agreed on the second,
    /// since conductors of the release before read no other.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn seal(&self, place: Place<'_>, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        if self.begun.since(Beginning::BoundValues).is_some() {
            return self.seal_bound(place, plain);
        }
        self.encrypt(FORMER, &place.former(), plain)
    }

    /// [`Self::seal`], of the second layout in any case.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn seal_bound(&self, place: Place<'_>, plain: &[u8]) -> Result<Vec<u8>, SealError> {
        self.encrypt(LAYOUT, &place.bound(), plain)
    }

    /// Decrypts bytes that any of the keys has encrypted for this place. `made_ms`: when their row was made, by its own
    /// account.
    ///
    /// # Errors
    /// None of the keys fits, they were sealed for another place or changed; or they are of the first layout, and the row
    /// is too new for that.
    pub fn open(&self, place: Place<'_>, made_ms: i64, sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let bound = match sealed.first() {
            Some(&LAYOUT) => place.bound(),
            Some(&FORMER)
                if !place.is_bound_by_former() && self.begun.is_after(Beginning::BoundValues, made_ms) =>
            {
                return Err(SealError::Former);
            }
            Some(&FORMER) => place.former(),
            _ => return Err(SealError::UnknownLayout),
        };
        Self::decrypt(self.opens.iter(), &bound, sealed)
    }

    /// Whether bytes are of the second layout, and sealed with the first key: nothing is to be renewed.
    pub fn is_current(&self, place: Place<'_>, sealed: &[u8]) -> bool {
        let first = self.opens.iter().take(1);
        sealed.first() == Some(&LAYOUT) && Self::decrypt(first, &place.bound(), sealed).is_ok()
    }

    fn encrypt(&self, layout: u8, bound: &[u8], plain: &[u8]) -> Result<Vec<u8>, SealError> {
        let nonce = XNonce::try_generate().map_err(|_| SealError::NoRandomness)?;
        let payload = Payload {
            msg: plain,
            aad: bound,
        };
        // The cipher only refuses texts of more than 256 GiB.
        let sealed = self
            .opens
            .first()
            .ok_or(SealError::WrongKey)?
            .encrypt(&nonce, payload)
            .map_err(|_| SealError::UnknownLayout)?;
        let mut whole = Vec::with_capacity(1 + NONCE_LENGTH + sealed.len());
        whole.push(layout);
        whole.extend_from_slice(&nonce);
        whole.extend_from_slice(&sealed);
        Ok(whole)
    }

    fn decrypt<'a>(
        mut keys: impl Iterator<Item = &'a XChaCha20Poly1305>,
        bound: &[u8],
        sealed: &[u8],
    ) -> Result<Vec<u8>, SealError> {
        let rest = sealed.get(1..).filter(|rest| rest.len() > NONCE_LENGTH);
        let (nonce, text) = rest.ok_or(SealError::UnknownLayout)?.split_at(NONCE_LENGTH);
        let nonce: [u8; NONCE_LENGTH] = nonce.try_into().map_err(|_| SealError::UnknownLayout)?;
        let nonce = XNonce::from(nonce);
        keys.find_map(|key| {
            let payload = Payload {
                msg: text,
                aad: bound,
            };
            key.decrypt(&nonce, payload).ok()
        })
        .ok_or(SealError::WrongKey)
    }
}

/// Made by root in the service user's folder, the file has to be the service user's: nobody else may read it.
fn belong_to_folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    let (file, folder) = (fs::metadata(path)?, fs::metadata(folder)?);
    if file.uid() == 0 && folder.uid() != 0 {
        std::os::unix::fs::chown(path, Some(folder.uid()), Some(folder.gid()))?;
    }
    Ok(())
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn key_line() -> String {
        STANDARD.encode(Key::generate())
    }

    fn keys(lines: &[&str]) -> JournalKey {
        JournalKey::new(&key_file::parse(&lines.join("\n"), Path::new("k")).unwrap())
    }

    const HERE: Place<'_> = Place::Context("operation-1");
    const THERE: Place<'_> = Place::Context("operation-2");
    const OLD: i64 = 1_000;

    #[test]
    fn values_of_one_place_open_in_no_other_once_that_is_agreed_on() {
        let key = keys(&[&key_line()]);
        let former = key.seal(HERE, b"x").unwrap();
        assert_eq!(former[0], FORMER);
        // What the release before wrote, and reads.
        assert_eq!(key.open(THERE, OLD, &former).unwrap(), b"x");

        key.begun().begin(Beginning::BoundValues, OLD + 1);
        let sealed = key.seal(HERE, b"y").unwrap();
        assert_eq!(sealed[0], LAYOUT);
        assert_eq!(key.open(HERE, OLD, &sealed).unwrap(), b"y");
        assert!(matches!(key.open(THERE, OLD, &sealed), Err(SealError::WrongKey)));
        assert!(matches!(
            key.open(Place::TrustPassword("operation-1"), OLD, &sealed),
            Err(SealError::WrongKey)
        ));
        // The layout is authenticated, too.
        let mut relabelled = sealed;
        relabelled[0] = FORMER;
        assert!(key.open(HERE, OLD, &relabelled).is_err());
        // A former value counts in rows from before only.
        assert_eq!(key.open(HERE, OLD, &former).unwrap(), b"x");
        assert!(matches!(key.open(HERE, OLD + 1, &former), Err(SealError::Former)));
    }

    #[test]
    fn private_keys_were_bound_before_and_stay_readable() {
        let key = keys(&[&key_line()]);
        let (here, there) = (Place::PrivateKey("a"), Place::PrivateKey("b"));
        let former = key.seal(here, b"x").unwrap();
        key.begun().begin(Beginning::BoundValues, 0);
        assert_eq!(key.open(here, OLD, &former).unwrap(), b"x");
        assert!(key.open(there, OLD, &former).is_err());
        assert!(!key.is_current(here, &former));
        assert!(key.is_current(here, &key.seal(here, b"x").unwrap()));
    }

    #[test]
    fn sealed_text_opens_again_and_is_not_readable() {
        let key = keys(&[&key_line()]);
        let sealed = key.seal(HERE, b"auth_token=tok-1").unwrap();
        assert!(!sealed.windows(5).any(|w| w == b"tok-1"));
        assert_ne!(
            sealed,
            key.seal(HERE, b"auth_token=tok-1").unwrap(),
            "every nonce is fresh"
        );
        assert_eq!(key.open(HERE, OLD, &sealed).unwrap(), b"auth_token=tok-1");
    }

    #[test]
    fn after_a_rotation_the_old_key_still_opens_until_its_line_is_removed() {
        let (old, new) = (key_line(), key_line());
        let sealed = keys(&[&old]).seal(HERE, b"x").unwrap();
        let both = keys(&[&new, "# the old one:", &old]);
        assert_eq!(both.open(HERE, OLD, &sealed).unwrap(), b"x");
        assert!(matches!(
            keys(&[&new]).open(HERE, OLD, &sealed),
            Err(SealError::WrongKey)
        ));
        assert!(
            keys(&[&new])
                .open(HERE, OLD, &both.seal(HERE, b"y").unwrap())
                .is_ok(),
            "the first line seals"
        );
    }

    #[test]
    fn a_changed_or_cut_value_is_refused() {
        let key = keys(&[&key_line()]);
        let mut sealed = key.seal(HERE, b"text").unwrap();
        assert!(matches!(
            key.open(HERE, OLD, &sealed[..20]),
            Err(SealError::UnknownLayout)
        ));
        assert!(matches!(key.open(HERE, OLD, &[]), Err(SealError::UnknownLayout)));
        *sealed.last_mut().unwrap() ^= 1;
        assert!(matches!(key.open(HERE, OLD, &sealed), Err(SealError::WrongKey)));
    }

    #[test]
    fn a_made_file_is_private_and_stays_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/journal.key");
        assert!(matches!(JournalKey::load(&path), Err(SealError::Missing { .. })));
        assert!(JournalKey::create_if_missing(&path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let sealed = JournalKey::load(&path).unwrap().seal(HERE, b"x").unwrap();
        assert!(!JournalKey::create_if_missing(&path).unwrap());
        assert_eq!(
            JournalKey::load_or_create(&path)
                .unwrap()
                .open(HERE, OLD, &sealed)
                .unwrap(),
            b"x"
        );
        assert_eq!(
            fs::read_dir(path.parent().unwrap()).unwrap().count(),
            1,
            "no draft is left behind"
        );
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_with_the_command_to_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.key");
        JournalKey::create_if_missing(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = JournalKey::load(&path).unwrap_err().to_string();
        assert!(
            error.contains("mode 640") && error.contains("chmod 600"),
            "{error}"
        );
    }
}
