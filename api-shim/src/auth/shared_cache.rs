//! Validated tokens in memcached, for all API processes that share `memcache_secret_key`.
//!
//! An entry's name and key are derived from that secret and from the token, so nobody reads or makes one without both:
//! neither who reaches memcached, nor who has a token and would like it to be an administrator's. Entries are those of
//! this program alone; Keystone's middleware derives names and keys in its own way and neither sees the other's.
//!
//! Guarantees: whatever memcached does costs at most one exchange with it, of at most
//! `memcache_pool_socket_timeout`; it is then left alone for `memcache_pool_dead_retry`, and requests go on without it.

use std::time::Duration;

use aws_lc_rs::{digest, hmac};
use chacha20poly1305::aead::{Aead, Generate, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use magnum_common::clock::utc_now;
use magnum_common::secret::Secret;
use magnum_config::KeystoneAuthtokenSection;

use super::memcached::Memcached;

const NONCE_LENGTH: usize = 24;
const WHEN_LENGTH: usize = 8;
/// Derives other keys in another release, should the layout of entries change.
const NAME: &[u8] = b"magnum-api token cache 1: name";
const SEAL: &[u8] = b"magnum-api token cache 1: seal";
/// memcached takes more seconds for a point in time.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);
/// memcached takes items up to 1 MiB.
const LARGEST: usize = 1_000_000;

/// Some servers, each with its share of the tokens.
pub struct SharedCache {
    secret: hmac::Key,
    servers: Vec<Memcached>,
}

/// What another process has found out.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The token's document, as Keystone returned it.
    pub document: String,
    /// For how long it may still be used.
    pub left: Duration,
}

impl SharedCache {
    /// `None` when the options do not ask for it, or when it would not be safe.
    pub fn new(section: &KeystoneAuthtokenSection) -> Option<Self> {
        let is_supported = !section.memcache_tls_enabled && !section.memcache_sasl_enabled;
        let secret = section.memcache_secret_key.as_ref().filter(|_| is_supported)?;
        let servers: Vec<Memcached> = section
            .memcached_servers
            .iter()
            .map(|address| Memcached::new(address, section))
            .collect();
        (!servers.is_empty()).then(|| Self {
            secret: hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes()),
            servers,
        })
    }

    /// What is known of a token.
    pub async fn get(&self, token: &Secret, expired_too: bool) -> Option<Entry> {
        let name = self.name(token, expired_too);
        let sealed = self.server(&name)?.get(&name).await?;
        let entry = open(
            &self.cipher(token, expired_too),
            &name,
            &sealed,
            utc_now().timestamp_millis(),
        );
        if entry.is_none() {
            tracing::debug!("an entry in memcached is too old, or was made with another memcache_secret_key");
        }
        entry
    }

    /// Stores the token's document.
    pub async fn put(&self, token: &Secret, expired_too: bool, document: &str, keep: Duration) {
        let keep = keep.min(LONGEST);
        // memcached counts whole seconds, and 0 means for ever.
        if document.len() > LARGEST || keep < Duration::from_secs(1) {
            return;
        }
        let until = utc_now().timestamp_millis() + i64::try_from(keep.as_millis()).unwrap_or(0);
        let name = self.name(token, expired_too);
        if let Some(server) = self.server(&name)
            && let Some(sealed) = seal(&self.cipher(token, expired_too), &name, document, until)
        {
            server.set(&name, &sealed, keep.as_secs()).await;
        }
    }

    fn derive(&self, purpose: &[u8], token: &Secret, expired_too: bool) -> hmac::Tag {
        let mut mac = hmac::Context::with_key(&self.secret);
        mac.update(purpose);
        mac.update(&[u8::from(expired_too)]);
        mac.update(token.expose().as_bytes());
        mac.sign()
    }

    fn name(&self, token: &Secret, expired_too: bool) -> String {
        let tag = self.derive(NAME, token, expired_too);
        let hex: String = tag.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("magnum-api/tokens/{hex}")
    }

    fn cipher(&self, token: &Secret, expired_too: bool) -> XChaCha20Poly1305 {
        let mut key = [0; 32];
        key.copy_from_slice(self.derive(SEAL, token, expired_too).as_ref());
        XChaCha20Poly1305::new(&Key::from(key))
    }

    /// The server whose address and the name together hash highest: all processes choose alike, and one server more or
    /// less moves only its own share.
    fn server(&self, name: &str) -> Option<&Memcached> {
        self.servers.iter().max_by_key(|server| {
            let text = format!("{} {name}", server.address());
            digest::digest(&digest::SHA256, text.as_bytes()).as_ref().to_vec()
        })
    }
}

/// Layout: nonce, then sealed: until when (milliseconds since 1970, little endian), the document.
fn seal(cipher: &XChaCha20Poly1305, name: &str, document: &str, until: i64) -> Option<Vec<u8>> {
    let nonce = XNonce::try_generate().ok()?;
    let mut plain = until.to_le_bytes().to_vec();
    plain.extend_from_slice(document.as_bytes());
    let payload = Payload {
        msg: &plain,
        aad: name.as_bytes(),
    };
    let sealed = cipher.encrypt(&nonce, payload).ok()?;
    Some([&nonce[..], &sealed].concat())
}

/// `None` when it is not ours, was changed, belongs to another name, or is too old.
fn open(cipher: &XChaCha20Poly1305, name: &str, sealed: &[u8], now: i64) -> Option<Entry> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE_LENGTH)?;
    let nonce: [u8; NONCE_LENGTH] = nonce.try_into().ok()?;
    let payload = Payload {
        msg: sealed,
        aad: name.as_bytes(),
    };
    let plain = cipher.decrypt(&XNonce::from(nonce), payload).ok()?;
    let (until, document) = plain.split_at_checked(WHEN_LENGTH)?;
    let until = i64::from_le_bytes(until.try_into().ok()?);
    let left = u64::try_from(until - now).ok().filter(|left| *left > 0)?;
    Some(Entry {
        document: String::from_utf8(document.to_vec()).ok()?,
        left: Duration::from_millis(left),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(secret: &str) -> SharedCache {
        let section = KeystoneAuthtokenSection {
            memcached_servers: vec!["a:1".into(), "b:2".into(), "c:3".into()],
            memcache_secret_key: Some(Secret::new(secret)),
            ..KeystoneAuthtokenSection::default()
        };
        SharedCache::new(&section).unwrap()
    }

    #[test]
    fn an_entry_opens_for_its_token_and_secret_and_time_only() {
        let (ours, theirs) = (cache("s"), cache("x"));
        let (token, other) = (Secret::new("tok-1"), Secret::new("tok-2"));
        let name = ours.name(&token, false);
        let sealed = seal(&ours.cipher(&token, false), &name, "{document}", 1_000).unwrap();
        assert!(!sealed.windows(8).any(|part| part == b"document") && !name.contains("tok-1"));
        let expected = Entry {
            document: "{document}".into(),
            left: Duration::from_millis(1),
        };
        assert_eq!(
            open(&ours.cipher(&token, false), &name, &sealed, 999),
            Some(expected)
        );
        assert_eq!(open(&ours.cipher(&token, false), &name, &sealed, 1_000), None);
        assert_eq!(open(&ours.cipher(&token, true), &name, &sealed, 999), None);
        assert_eq!(open(&ours.cipher(&other, false), &name, &sealed, 999), None);
        assert_eq!(open(&theirs.cipher(&token, false), &name, &sealed, 999), None);
        assert_eq!(
            open(&ours.cipher(&token, false), "other name", &sealed, 999),
            None
        );
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert_eq!(
                open(&ours.cipher(&token, false), &name, &changed, 999),
                None,
                "{index}"
            );
            assert_eq!(
                open(&ours.cipher(&token, false), &name, &sealed[..index], 999),
                None
            );
        }
    }

    #[test]
    fn all_processes_choose_the_same_server_and_use_all_of_them() {
        let (one, two) = (cache("s"), cache("s"));
        let mut used = std::collections::BTreeSet::new();
        for index in 0..100 {
            let token = Secret::new(format!("tok-{index}"));
            let name = one.name(&token, false);
            assert_eq!(name, two.name(&token, false));
            assert!(name.len() < 250);
            let chosen = one.server(&name).unwrap().address().to_owned();
            assert_eq!(chosen, two.server(&name).unwrap().address());
            used.insert(chosen);
        }
        assert_eq!(used.len(), 3);
    }

    #[test]
    fn no_shared_cache_without_a_secret_or_with_unsupported_options() {
        let whole = KeystoneAuthtokenSection {
            memcached_servers: vec!["a:1".into()],
            memcache_secret_key: Some(Secret::new("s")),
            ..KeystoneAuthtokenSection::default()
        };
        let is_there = |change: fn(&mut KeystoneAuthtokenSection)| {
            let mut section = whole.clone();
            change(&mut section);
            SharedCache::new(&section).is_some()
        };
        assert!(is_there(|_| ()));
        assert!(!is_there(|section| section.memcache_secret_key = None));
        assert!(!is_there(|section| section.memcached_servers.clear()));
        assert!(!is_there(|section| section.memcache_tls_enabled = true));
        assert!(!is_there(|section| section.memcache_sasl_enabled = true));
    }
}
