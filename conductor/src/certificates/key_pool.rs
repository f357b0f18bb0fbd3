//! Private keys made ahead of need, so that no create waits for a prime: at most `[certificates] key_pool_size` of
//! them, in the database, shared by all conductors.
//!
//! Guarantees: a key is handed out at most once, by whichever conductor, whatever crashes in between; one that was
//! taken and not used is lost. Keys lie there sealed with the journal key, each tied to its type. What cannot be opened
//! any more, since its line has left the key file, is discarded. Only keys of the configured type are handed out, and
//! none that is older than a day. Nothing depends on the pool: without a key in it, or without an answer of the
//! database, the caller makes its own.
//!
//! Not guaranteed: anything against a database that loses a commit. A backup of today that is put back, or a replica
//! that takes over and had not received the last deletions, offers keys again that were taken since.

use std::sync::Arc;

use crate::seal::{JournalKey, Place, SealError};
use magnum_config::Settings;
use magnum_db::{Database, DbError};
use magnum_x509::key::{KeyError, KeyKind, PrivateKey};

use crate::metric_definitions as metric;
use crate::store::key_pool as table;

/// The pool, as one conductor sees it. Cheap to clone.
#[derive(Clone)]
pub struct KeyPool {
    db: Database,
    seal: Arc<JournalKey>,
    kind: KeyKind,
    size: u32,
}

/// Why a key did not get into the pool.
#[derive(Debug, thiserror::Error)]
pub enum KeyPoolError {
    /// It cannot be made or written.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// It cannot be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
}

impl KeyPool {
    /// The pool of the configured kind of key. An EC key is made in less time than the pool takes to hand one out:
    /// such a pool has the size 0.
    pub fn configured(settings: &Settings, db: Database, seal: Arc<JournalKey>) -> Self {
        let kind = KeyKind::from(settings);
        let size = match kind {
            KeyKind::Rsa(_) => settings.certificates.key_pool_size,
            KeyKind::EcdsaP256 => 0,
        };
        Self::new(db, seal, kind, size)
    }

    /// A pool of at most `size` keys of this kind; 0 turns it off.
    pub fn new(db: Database, seal: Arc<JournalKey>, kind: KeyKind, size: u32) -> Self {
        Self { db, seal, kind, size }
    }

    /// The kind of its keys.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Most keys in it; 0 when it is off.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// How many keys can be taken.
    ///
    /// # Errors
    /// The database's.
    pub async fn depth(&self) -> Result<u64, DbError> {
        let key_type = self.kind.name();
        self.db.run(move |conn| table::depth(conn, &key_type)).await
    }

    /// Takes a key out. `None`: it is off, empty, or the database does not answer.
    pub async fn take(&self) -> Option<PrivateKey> {
        if self.size == 0 {
            return None;
        }
        loop {
            let key_type = self.kind.name();
            let taken = self
                .db
                .transaction(move |conn| table::take(conn, &key_type))
                .await
                .inspect_err(|error: &DbError| tracing::debug!(%error, "no key can be taken from the pool"))
                .ok()??;
            match self.open(&taken) {
                Ok(key) => {
                    metrics::counter!(metric::KEYS_FROM_POOL).increment(1);
                    return Some(key);
                }
                // Each round deletes one, so there is an end.
                Err(error) => tracing::info!(%error, "a key of the pool cannot be opened and is discarded"),
            }
        }
    }

    /// Puts a key in. Returns how many can be taken then; `None`: it is full already.
    ///
    /// # Errors
    /// See [`KeyPoolError`]; the key is not in the pool then, unless the connection was lost during the commit.
    pub async fn add(&self, key: &PrivateKey) -> Result<Option<u64>, KeyPoolError> {
        let sealed = self
            .seal
            .seal(Place::PooledKey(&self.kind.name()), &key.to_pkcs8()?)?;
        let (key_type, size) = (self.kind.name(), self.size);
        Ok(self
            .db
            .transaction(move |conn| table::add(conn, &key_type, &sealed, size))
            .await?)
    }

    /// Deletes keys of any type that are too old to be handed out. Returns how many.
    ///
    /// # Errors
    /// The database's.
    pub async fn discard_old(&self) -> Result<usize, DbError> {
        self.db.transaction(table::discard_old).await
    }

    fn open(&self, sealed: &[u8]) -> Result<PrivateKey, KeyPoolError> {
        let key_type = self.kind.name();
        // Of either layout: both bind a key to its type.
        let plain = zeroize::Zeroizing::new(self.seal.open(Place::PooledKey(&key_type), 0, sealed)?);
        Ok(PrivateKey::from_pkcs8(&plain)?)
    }
}
