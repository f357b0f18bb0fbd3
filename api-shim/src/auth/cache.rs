//! What is known about tokens: asked once, remembered for a while.
//!
//! Guarantees: requests that come at once with the same token ask Keystone once; a valid token is remembered for
//! `token_cache_time` (counted from Keystone's answer, also where that came to another process and was found in
//! memcached), never longer than it is valid; that Keystone could not be asked is not remembered at all. Memory is
//! bounded by [`REMEMBERED_BYTES`]; the token itself is not kept, only a hash of it. Not guaranteed: that a revoked
//! token is refused before it is forgotten here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aws_lc_rs::digest;
use magnum_common::clock::utc_now;
use magnum_common::secret::Secret;
use magnum_config::KeystoneAuthtokenSection;
use magnum_openstack::{Keystone, ServiceError};
use moka::Expiry;
use moka::future::Cache;
use tokio::time::timeout;

use crate::metric_definitions::{self as metrics, Validation};

use super::identity::Identity;
use super::shared_cache::{Entry, SharedCache};
use super::strangers::Strangers;

/// All documents together. A catalog of 30 services is about 10 kB.
const REMEMBERED_BYTES: u64 = 64 * 1024 * 1024;
/// What an entry takes besides its document.
const OVERHEAD: usize = 512;
/// How long it is remembered that a token is not valid: enough that a client in a loop does not reach Keystone.
const INVALID_FOR: Duration = Duration::from_secs(5);
/// How long a token that has expired is remembered when the option says "until it expires".
const EXPIRED_FOR: Duration = Duration::from_secs(300);

/// A hash of a token, and whether an expired one will do.
type Key = [u8; 32];

/// For how long answers are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// Not at all; who asks at the same time gets the same answer.
    Off,
    UntilExpiry,
    For(Duration),
}

impl From<i64> for Memory {
    fn from(seconds: i64) -> Self {
        match u64::try_from(seconds) {
            Err(_) => Self::Off,
            Ok(0) => Self::UntilExpiry,
            Ok(seconds) => Self::For(Duration::from_secs(seconds)),
        }
    }
}

impl Memory {
    fn of_valid(self, left: Option<Duration>) -> Duration {
        match (self, left) {
            (Self::Off, _) => Duration::ZERO,
            (Self::UntilExpiry, left) => left.unwrap_or(EXPIRED_FOR),
            (Self::For(limit), left) => left.map_or(limit, |left| left.min(limit)),
        }
    }

    fn of_invalid(self) -> Duration {
        match self {
            Self::Off => Duration::ZERO,
            Self::UntilExpiry => INVALID_FOR,
            Self::For(limit) => limit.min(INVALID_FOR),
        }
    }
}

#[derive(Clone)]
struct CachedToken {
    identity: Option<Arc<Identity>>,
    keep: Duration,
}

struct KeepAsSaid;

impl Expiry<Key, CachedToken> for KeepAsSaid {
    fn expire_after_create(&self, _: &Key, known: &CachedToken, _: Instant) -> Option<Duration> {
        Some(known.keep)
    }

    fn expire_after_update(
        &self,
        _: &Key,
        known: &CachedToken,
        _: Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(known.keep)
    }
}

/// Nothing is known about the token. The reason is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotKnown;

/// The tokens that have been seen, and Keystone behind them.
pub struct Tokens {
    keystone: Keystone,
    memory: Memory,
    cache: Cache<Key, CachedToken>,
    shared: Option<SharedCache>,
    strangers: Strangers,
    is_away: AtomicBool,
}

impl Tokens {
    /// An empty cache in front of Keystone.
    pub fn new(keystone: Keystone, section: &KeystoneAuthtokenSection) -> Self {
        let memory = Memory::from(section.token_cache_time);
        Self {
            keystone,
            memory,
            cache: Cache::builder()
                .max_capacity(REMEMBERED_BYTES)
                .weigher(|_, known: &CachedToken| {
                    let document = known.identity.as_ref().map_or(0, |identity| identity.size());
                    u32::try_from(document + OVERHEAD).unwrap_or(u32::MAX)
                })
                .expire_after(KeepAsSaid)
                .build(),
            shared: SharedCache::new(section).filter(|_| memory != Memory::Off),
            strangers: Strangers::new(),
            is_away: AtomicBool::new(false),
        }
    }

    /// As whom Keystone is asked about tokens, and where it is.
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user in.
    pub async fn service_user(&self) -> Result<String, ServiceError> {
        self.keystone.identity().await
    }

    /// Asks Keystone now, and says the same as [`Tokens::service_user`].
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user in.
    pub async fn reach_keystone(&self) -> Result<String, ServiceError> {
        self.keystone.reach().await
    }

    /// The identity that the token stands for; `None` when it is not valid. With `expired_too` a token that was valid
    /// until it expired is. `address` is where the token comes from.
    ///
    /// # Errors
    /// Neither this process nor memcached knows the token, and Keystone cannot be asked or gives an answer
    /// that cannot be used.
    pub async fn look_up(
        &self,
        token: &Secret,
        expired_too: bool,
        address: &str,
    ) -> Result<Option<Arc<Identity>>, NotKnown> {
        if expired_too {
            // One that has not expired is as good, and is probably known already.
            let known = self.cache.get(&key(token, false)).await;
            if let Some(CachedToken {
                identity: Some(identity),
                ..
            }) = known
            {
                metrics::token_was_remembered("process");
                return Ok(Some(identity));
            }
        }
        let question = self.cache.entry(key(token, expired_too));
        let found = question
            .or_try_insert_with(Box::pin(self.ask(token, expired_too, address)))
            .await
            .map_err(|error| *error)?;
        if !found.is_fresh() {
            metrics::token_was_remembered("process");
        }
        let identity = found.into_value().identity;
        Ok(identity.filter(|identity| expired_too || utc_now() < identity.expires_at))
    }

    /// From another process, or from Keystone.
    async fn ask(&self, token: &Secret, expired_too: bool, address: &str) -> Result<CachedToken, NotKnown> {
        if let Some(shared) = &self.shared
            && let Some(Entry { document, left }) = shared.get(token, expired_too).await
            && let Ok(identity) = Identity::parse(&document)
        {
            metrics::token_was_remembered("memcached");
            let keep = self.keep(&identity, expired_too).min(left);
            return Ok(CachedToken {
                identity: Some(Arc::new(identity)),
                keep,
            });
        }
        let Ok(_turn) = timeout(self.keystone.within(), self.strangers.turn(address)).await else {
            tracing::warn!(
                address,
                "tokens of an address that sends invalid ones wait for Keystone too long"
            );
            return Err(NotKnown);
        };
        let started = Instant::now();
        let answer = self.keystone.validate(token, expired_too).await;
        let answer = answer.and_then(|document| document.as_deref().map(parse).transpose());
        metrics::token_was_validated(
            match &answer {
                Ok(Some(_)) => Validation::Valid,
                Ok(None) => Validation::Invalid,
                Err(_) => Validation::Failed,
            },
            started.elapsed(),
        );
        match answer {
            Ok(Some(identity)) => {
                self.is_back();
                let keep = self.keep(&identity, expired_too);
                if let Some(shared) = &self.shared {
                    shared.put(token, expired_too, identity.document(), keep).await;
                }
                Ok(CachedToken {
                    identity: Some(Arc::new(identity)),
                    keep,
                })
            }
            Ok(None) => {
                self.is_back();
                self.strangers.sent_invalid(address).await;
                Ok(CachedToken {
                    identity: None,
                    keep: self.memory.of_invalid(),
                })
            }
            Err(error) => {
                self.failed(&error);
                Err(NotKnown)
            }
        }
    }

    fn keep(&self, identity: &Identity, expired_too: bool) -> Duration {
        let left = (identity.expires_at - utc_now())
            .to_std()
            .unwrap_or(Duration::ZERO);
        self.memory.of_valid((!expired_too).then_some(left))
    }

    /// Told once for as long as it lasts: with Keystone away, every request fails.
    fn failed(&self, error: &ServiceError) {
        if self.is_away.swap(true, Ordering::Relaxed) {
            tracing::debug!(error = %error, "a token was not validated");
        } else {
            tracing::error!(
                error = %error,
                "tokens cannot be validated: requests with tokens that are not remembered get a 503 until they can"
            );
        }
    }

    fn is_back(&self) {
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("tokens are validated again");
        }
    }
}

fn parse(document: &str) -> Result<Identity, ServiceError> {
    Identity::parse(document).map_err(|place| ServiceError::Answer {
        service: "Keystone",
        what: "the validation of a token".to_owned(),
        reason: format!("it is not a token's document ({place})"),
    })
}

fn key(token: &Secret, expired_too: bool) -> Key {
    let mut hash = digest::Context::new(&digest::SHA256);
    hash.update(&[u8::from(expired_too)]);
    hash.update(token.expose().as_bytes());
    let mut key = Key::default();
    key.copy_from_slice(hash.finish().as_ref());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_lasts_by_the_option_and_never_longer_than_the_token() {
        let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
        for (option, left, valid, invalid) in [
            (300, Some(hour), Duration::from_secs(300), INVALID_FOR),
            (300, Some(minute), minute, INVALID_FOR),
            (300, None, Duration::from_secs(300), INVALID_FOR),
            (2, Some(minute), Duration::from_secs(2), Duration::from_secs(2)),
            (0, Some(hour), hour, INVALID_FOR),
            (0, None, EXPIRED_FOR, INVALID_FOR),
            (-1, Some(hour), Duration::ZERO, Duration::ZERO),
        ] {
            let memory = Memory::from(option);
            assert_eq!(
                (memory.of_valid(left), memory.of_invalid()),
                (valid, invalid),
                "{option} {left:?}"
            );
        }
    }

    #[test]
    fn expired_token_has_a_cache_entry_of_its_own() {
        let token = Secret::new("t");
        assert_ne!(key(&token, false), key(&token, true));
        assert_eq!(key(&token, false), key(&Secret::new("t"), false));
        assert_ne!(key(&token, false), key(&Secret::new("u"), false));
    }
}
