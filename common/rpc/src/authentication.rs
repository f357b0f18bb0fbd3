//! Messages that only holders of a key can make: HMAC-SHA256 in a header, for deployments in which every program is ours.
//!
//! What is signed: where the message is sent, when, its body as it is sent, and what says how to read that (content type,
//! encoding, compression). What is not: other headers (trace context, the reason of a dead letter).
//!
//! **Guaranteed.** With `require`, a message that a stranger on the broker made or changed, or took from another queue, is
//! neither decoded nor answered. **Not guaranteed.** That a message comes once: somebody who can read and write a queue can
//! put a signed message into it again; the journal recognises that for as long as it remembers (`operation_history`), and
//! older messages are refused. Nor secrecy: bodies are signed, not encrypted.
//!
//! Python's programs neither sign nor check; they ignore the header.

mod seldom;

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::{digest, hmac};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use magnum_common::clock::utc_now;
use magnum_config::key_file::{self, KeyFileError};
use magnum_config::{ConductorSection, MessageAuthentication};

use super::message::{OutgoingMessage, RawMessage};
use super::target::Route;

pub use self::seldom::Seldom;

/// The header: layout, key id, seconds since 1970, and the code as base64, with spaces between.
pub const SIGNATURE: &str = "x-magnum-signature";

const LAYOUT: &str = "v1";
/// How far ahead of ours a sender's clock may be.
const CLOCKS: Duration = Duration::from_secs(15 * 60);

/// Signs and checks, as `[conductor] message_authentication` says. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Authentication {
    mode: MessageAuthentication,
    keys: Arc<Vec<MessageKey>>,
    /// Older messages are refused: nobody would recognise one that comes again.
    oldest: Option<Duration>,
}

/// One key of the file.
struct MessageKey {
    /// Derived from the key, to find it by; tells nothing of it.
    id: String,
    key: hmac::Key,
}

/// By its id, which stands for the key.
impl PartialEq for MessageKey {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl std::fmt::Debug for MessageKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.id)
    }
}

/// Why a message is not taken for one of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAuthentic {
    /// No header.
    #[error("the message is not signed ([conductor] message_authentication = require)")]
    Unsigned,
    /// The header makes no sense.
    #[error("the message's signature cannot be read ([conductor] message_authentication = require)")]
    Unreadable,
    /// Signed with a key that we do not have.
    #[error("the message is signed with key {0}, which is not in [conductor] message_key_file")]
    UnknownKey(String),
    /// Changed, sent to another queue, or made by somebody without the key.
    #[error("the message's signature is wrong: it was changed, or sent to another queue")]
    Wrong,
    /// From too long ago, or from the future.
    #[error("the message was signed at a time that is not accepted: {0}")]
    Time(&'static str),
}

/// A checked message's place in the change to `require`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nobody asked, or it is signed by one of ours.
    Trusted,
    /// It is not, and is let in until signatures are required.
    Unknown,
}

impl Default for Authentication {
    fn default() -> Self {
        Self::off()
    }
}

impl Authentication {
    /// Signs nothing and takes everything.
    pub fn off() -> Self {
        Self {
            mode: MessageAuthentication::Off,
            keys: Arc::default(),
            oldest: None,
        }
    }

    /// By `[conductor]`; reads the key file, unless it is off.
    ///
    /// # Errors
    /// The key file cannot be used.
    pub fn load(options: &ConductorSection) -> Result<Self, KeyFileError> {
        let (mode, Some(path)) = (options.message_authentication, &options.message_key_file) else {
            return Ok(Self::off());
        };
        if mode == MessageAuthentication::Off {
            return Ok(Self::off());
        }
        let oldest = Some(options.operation_history).filter(|history| !history.is_zero());
        Ok(Self::with_keys(mode, &key_file::read(path)?, oldest))
    }

    /// With these keys, of which the first signs. Messages older than `oldest` are not accepted.
    pub fn with_keys(
        mode: MessageAuthentication,
        keys: &[[u8; key_file::KEY_LENGTH]],
        oldest: Option<Duration>,
    ) -> Self {
        let keys = keys.iter().map(|bytes| MessageKey {
            id: key_id(bytes),
            key: hmac::Key::new(hmac::HMAC_SHA256, bytes),
        });
        Self {
            mode,
            keys: Arc::new(keys.collect()),
            oldest,
        }
    }

    /// Whether messages have to be signed.
    pub fn is_required(&self) -> bool {
        self.mode == MessageAuthentication::Require
    }

    /// The ids of the keys; the first signs. Empty when it is off.
    pub fn key_ids(&self) -> Vec<&str> {
        self.keys.iter().map(|key| key.id.as_str()).collect()
    }

    /// Adds the header, in place of another one. The message must not be changed after that, but for its other headers.
    pub fn sign(&self, message: &mut OutgoingMessage) {
        self.sign_at(message, now());
    }

    fn sign_at(&self, message: &mut OutgoingMessage, seconds: u64) {
        let Some(key) = self.keys.first() else { return };
        message.headers.retain(|(name, _)| name != SIGNATURE);
        let compression = message.headers.iter().find(|(name, _)| name == "compression");
        let signed = Signed {
            key_id: &key.id,
            seconds,
            destination: destination(&message.route),
            content_type: message.content_type.as_deref(),
            content_encoding: message.content_encoding.as_deref(),
            compression: compression.map(|(_, label)| label.as_str()),
            body: &message.body,
        };
        let code = signed.code(&key.key);
        let header = format!("{LAYOUT} {} {seconds} {}", key.id, STANDARD.encode(code));
        message.headers.push((SIGNATURE.to_owned(), header));
    }

    /// Whether a message may be decoded.
    ///
    /// # Errors
    /// It is not signed by a holder of the key, for the queue it came from, and that is required.
    pub fn check(&self, message: &RawMessage) -> Result<Origin, NotAuthentic> {
        if self.mode == MessageAuthentication::Off {
            return Ok(Origin::Trusted);
        }
        match self.verify_at(message, now()) {
            Ok(()) => Ok(Origin::Trusted),
            Err(_) if !self.is_required() => Ok(Origin::Unknown),
            Err(error) => Err(error),
        }
    }

    fn verify_at(&self, message: &RawMessage, now: u64) -> Result<(), NotAuthentic> {
        let header = message.signature.as_deref().ok_or(NotAuthentic::Unsigned)?;
        let mut parts = header.split(' ');
        let (Some(LAYOUT), Some(id), Some(seconds), Some(code), None) = (
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
            parts.next(),
        ) else {
            return Err(NotAuthentic::Unreadable);
        };
        let seconds: u64 = seconds.parse().map_err(|_| NotAuthentic::Unreadable)?;
        let code = STANDARD.decode(code).map_err(|_| NotAuthentic::Unreadable)?;
        let key = self.keys.iter().find(|key| key.id == id).ok_or_else(|| {
            // A stranger wrote it: into logs and headers goes what can be an id.
            let id: String = id.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
            NotAuthentic::UnknownKey(id)
        })?;
        let is_ours = destinations(&message.queue)
            .into_iter()
            .flatten()
            .any(|destination| {
                let signed = Signed {
                    key_id: id,
                    seconds,
                    destination,
                    content_type: message.content_type.as_deref(),
                    content_encoding: message.content_encoding.as_deref(),
                    compression: message.compression.as_deref(),
                    body: &message.body,
                };
                hmac::verify(&key.key, &signed.text(), &code).is_ok()
            });
        if !is_ours {
            return Err(NotAuthentic::Wrong);
        }
        if seconds > now.saturating_add(CLOCKS.as_secs()) {
            return Err(NotAuthentic::Time(
                "it is in the future; do the hosts' clocks agree?",
            ));
        }
        if self
            .oldest
            .is_some_and(|oldest| seconds.saturating_add(oldest.as_secs()) < now)
        {
            return Err(NotAuthentic::Time("the journal would not recognise it any more"));
        }
        Ok(())
    }
}

/// What a code is made of.
struct Signed<'a> {
    key_id: &'a str,
    seconds: u64,
    destination: &'a str,
    content_type: Option<&'a str>,
    content_encoding: Option<&'a str>,
    compression: Option<&'a str>,
    body: &'a [u8],
}

impl Signed<'_> {
    fn code(&self, key: &hmac::Key) -> Vec<u8> {
        hmac::sign(key, &self.text()).as_ref().to_vec()
    }

    /// Each part with its length before it, so that no two messages have the same text.
    fn text(&self) -> Vec<u8> {
        let seconds = self.seconds.to_string();
        let mut text = Vec::with_capacity(self.body.len() + 256);
        for part in [
            b"magnum message v1".as_slice(),
            self.key_id.as_bytes(),
            seconds.as_bytes(),
            self.destination.as_bytes(),
            self.content_type.unwrap_or_default().as_bytes(),
            self.content_encoding.unwrap_or_default().as_bytes(),
            self.compression.unwrap_or_default().as_bytes(),
            self.body,
        ] {
            text.extend_from_slice(&(part.len() as u64).to_be_bytes());
            text.extend_from_slice(part);
        }
        text
    }
}

/// Where a message is sent, as both ends know it: the queue, which is its own routing key; for all servers, the exchange.
fn destination(route: &Route) -> &str {
    if route.routing_key.is_empty() {
        &route.exchange
    } else {
        &route.routing_key
    }
}

/// What a message in this queue may have been sent to: see [`super::target::Names`].
fn destinations(queue: &str) -> [Option<&str>; 2] {
    const FANOUT: &str = "_fanout";
    let exchange = queue.rfind("_fanout_").map(|at| &queue[..at + FANOUT.len()]);
    [Some(queue), exchange]
}

fn key_id(key: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, key);
    digest
        .as_ref()
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Seconds since 1970 by this host's clock; messages wait for as long as it takes, so it need not be exact.
fn now() -> u64 {
    u64::try_from(utc_now().timestamp()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::target::{Names, Target, direct};
    use super::super::wire_format::WireFormat;
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn with(keys: &[u8]) -> Authentication {
        let keys: Vec<[u8; 32]> = keys.iter().map(|byte| [*byte; 32]).collect();
        Authentication::with_keys(
            MessageAuthentication::Require,
            &keys,
            Some(Duration::from_secs(3600)),
        )
    }

    fn sent(by: &Authentication, target: &Target) -> OutgoingMessage {
        let names = Names {
            exchange: "magnum".into(),
            topic: "magnum-conductor".into(),
        };
        let mut message = OutgoingMessage::new(names.route(target), WireFormat::Json, "{}");
        by.sign_at(&mut message, NOW);
        message
    }

    fn came(message: &OutgoingMessage, queue: &str) -> RawMessage {
        let header = |name: &str| {
            let found = message.headers.iter().find(|(header, _)| header == name);
            found.map(|(_, value)| value.clone())
        };
        RawMessage {
            queue: queue.to_owned(),
            content_type: message.content_type.clone(),
            content_encoding: message.content_encoding.clone(),
            compression: header("compression"),
            signature: header(SIGNATURE),
            body: message.body.clone(),
            ..RawMessage::default()
        }
    }

    #[test]
    fn a_message_is_accepted_from_the_queue_that_it_was_sent_to_and_from_no_other() {
        let ours = with(&[1]);
        for (target, queue) in [
            (Target::AnyServer, "magnum-conductor"),
            (Target::Server("one".into()), "magnum-conductor.one"),
            (Target::AllServers, "magnum-conductor_fanout_0a1b"),
            (Target::AllServers, "magnum-conductor_fanout"),
        ] {
            let message = sent(&ours, &target);
            assert_eq!(ours.verify_at(&came(&message, queue), NOW), Ok(()), "{queue}");
            for other in ["reply_1", "magnum-conductor.two", "x_fanout_0a1b"] {
                let moved = ours.verify_at(&came(&message, other), NOW);
                assert_eq!(moved, Err(NotAuthentic::Wrong), "{queue} to {other}");
            }
        }
        let mut reply = OutgoingMessage::new(direct("reply_1"), WireFormat::Json, "{}");
        ours.sign_at(&mut reply, NOW);
        assert_eq!(ours.verify_at(&came(&reply, "reply_1"), NOW), Ok(()));
        assert!(ours.verify_at(&came(&reply, "magnum-conductor"), NOW).is_err());
    }

    #[test]
    fn a_changed_message_or_header_fails_verification() {
        let ours = with(&[1]);
        let whole = came(&sent(&ours, &Target::AnyServer), "magnum-conductor");
        let changes: [fn(&mut RawMessage); 6] = [
            |message| message.body = "{ }".into(),
            |message| message.content_type = Some("application/msgpack".into()),
            |message| message.content_encoding = None,
            |message| message.compression = Some("gzip".into()),
            |message| {
                let later = message
                    .signature
                    .as_deref()
                    .map(|text| text.replace(" 18", " 19"));
                message.signature = later;
            },
            |message| message.signature = Some("v1 a b c d".into()),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut changed = whole.clone();
            change(&mut changed);
            assert!(ours.verify_at(&changed, NOW).is_err(), "{number}");
        }
    }

    #[test]
    fn old_keys_check_until_they_are_removed() {
        let (old, both, new) = (with(&[1]), with(&[2, 1]), with(&[2]));
        let message = came(&sent(&old, &Target::AnyServer), "magnum-conductor");
        assert_eq!(both.verify_at(&message, NOW), Ok(()));
        assert_eq!(
            new.verify_at(&message, NOW),
            Err(NotAuthentic::UnknownKey(old.key_ids()[0].to_owned()))
        );
        let message = came(&sent(&both, &Target::AnyServer), "magnum-conductor");
        assert_eq!(new.verify_at(&message, NOW), Ok(()), "the first signs");
    }

    #[test]
    fn a_message_that_the_journal_would_not_recognise_is_refused() {
        let ours = with(&[1]);
        let message = came(&sent(&ours, &Target::AnyServer), "magnum-conductor");
        assert_eq!(ours.verify_at(&message, NOW + 3600), Ok(()));
        assert!(matches!(
            ours.verify_at(&message, NOW + 3601),
            Err(NotAuthentic::Time(_))
        ));
        assert!(matches!(
            ours.verify_at(&message, NOW - 3600),
            Err(NotAuthentic::Time(_))
        ));
    }

    #[test]
    fn off_adds_nothing_and_signing_lets_strangers_in_until_it_is_required() {
        let off = Authentication::off();
        assert!(sent(&off, &Target::AnyServer).headers.is_empty());
        let stranger = came(&sent(&off, &Target::AnyServer), "magnum-conductor");
        assert_eq!(off.check(&stranger), Ok(Origin::Trusted));
        let sign = Authentication::with_keys(MessageAuthentication::Sign, &[[1; 32]], None);
        assert_eq!(sign.check(&stranger), Ok(Origin::Unknown));
        assert_eq!(with(&[1]).check(&stranger), Err(NotAuthentic::Unsigned));
    }
}
