//! What is fuzzed: one function per target, which takes any bytes and must neither panic nor use memory out of
//! proportion.
//!
//! `tests/fuzz` gives them to `cargo fuzz`; `tests/it/wire/fuzzing.rs` gives them a bounded number of mutated recordings in
//! the ordinary tests. To add a target: a function here and in [`TARGETS`], its seeds in `tests/src/fuzz_seeds.rs`, and
//! a file of three lines in `tests/fuzz/fuzz_targets` with its `[[bin]]`. This file is compiled there too, so it names
//! no other module of the harness.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use std::io::Write as _;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use magnum_common::error::Fault;
use magnum_config::value::Keyword as _;
use magnum_config::{ConfigArgs, Settings, X509Extension, X509KeyUsage};
use magnum_objects::VersionedObject;
use magnum_rpc::{RawMessage, WireReply, WireRequest, decode};
use magnum_x509::authority::Authority;
use magnum_x509::extensions::Rules;
use magnum_x509::key::{KeyKind, PrivateKey};
use magnum_x509::signing::sign;
use x509_cert::Certificate;
use x509_cert::der::{Decode as _, DecodePem as _};
use x509_cert::ext::pkix::BasicConstraints;

/// The limit of bodies while fuzzing: small, so that a body that grows beyond it is noticed.
pub const LIMIT: usize = 256 * 1024;

/// What a target does with an input: anything but panic.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: &[(&str, Target)] = &[
    ("message", message),
    ("object", object),
    ("csr", csr),
    ("config", config),
];

/// A message from the wire. The first byte says how it is labelled, the rest is the body.
pub fn message(data: &[u8]) {
    let Some((label, body)) = data.split_first() else {
        return;
    };
    let message = RawMessage {
        content_type: match label & 3 {
            0 => None,
            1 => Some("application/json".to_owned()),
            2 => Some("application/x-msgpack".to_owned()),
            _ => Some("text/plain".to_owned()),
        },
        compression: match (label >> 2) & 3 {
            0 | 3 => None,
            1 => Some("application/x-gzip".to_owned()),
            _ => Some("application/x-bz2".to_owned()),
        },
        body: body.to_vec().into(),
        ..RawMessage::default()
    };
    if let Ok((wire, format)) = decode::<WireRequest>(&message, LIMIT)
        && let Ok(request) = wire.check(format)
    {
        // What was read can be written, and is no larger than what may be read; six bytes is the longest escape.
        let written = serde_json::to_vec(&request).unwrap_or_default();
        assert!(!written.is_empty(), "a request that was read cannot be written");
        assert!(written.len() <= 6 * LIMIT + 64 * 1024, "{} bytes", written.len());
    }
    if let Ok((reply, _)) = decode::<WireReply>(&message, LIMIT) {
        drop(reply.answer());
    }
}

/// A versioned object, as JSON.
pub fn object(data: &[u8]) {
    if let Ok(value) = serde_json::from_slice(data)
        && let Ok(object) = VersionedObject::decode(&value)
    {
        let encoded = object.encode();
        let again = VersionedObject::decode(&encoded).map(|object| object.encode());
        assert_eq!(
            again.ok(),
            Some(encoded),
            "what was read reads the same when it was written"
        );
    }
}

/// A configuration file.
pub fn config(data: &[u8]) {
    let Ok(mut file) = tempfile::NamedTempFile::new() else {
        return;
    };
    if file.write_all(data).is_err() {
        return;
    }
    let args = ConfigArgs {
        files: vec![file.path().to_owned()],
        dirs: Vec::new(),
    };
    match Settings::load(&args) {
        Ok(loaded) => drop(
            loaded
                .warnings
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>(),
        ),
        Err(errors) => assert!(!errors.to_string().is_empty(), "an error without a text"),
    }
}

/// When requests are signed: always at the same time, so that an input does the same whenever it is tried.
const NOW: SystemTime = SystemTime::UNIX_EPOCH;

/// Longest text of an error: it may name what is wrong, but not quote it.
const LONGEST_ERROR: usize = 1024;

/// An Ed25519 key as a `SubjectPublicKeyInfo` holds it, without the key.
const ED25519: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
/// The attribute "extension request", 1.2.840.113549.1.9.14.
const EXTENSION_REQUEST: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
/// Identifiers of extensions: all that can be allowed, and one that cannot.
pub const EXTENSIONS: &[&[u8]] = &[
    &[0x55, 0x1d, 14],
    &[0x55, 0x1d, 15],
    &[0x55, 0x1d, 17],
    &[0x55, 0x1d, 18],
    &[0x55, 0x1d, 19],
    &[0x55, 0x1d, 30],
    &[0x55, 0x1d, 31],
    &[0x55, 0x1d, 32],
    &[0x55, 0x1d, 35],
    &[0x55, 0x1d, 37],
    &[0x55, 0x1d, 54],
    &[0x55, 0x1d, 99],
    &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x01, 0x01],
    &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x05],
];

/// Who signs and by which rules: the defaults, and everything allowed.
struct Office {
    ca: Authority,
    rules: [Rules; 2],
    /// Signs requests that are made here.
    requester: Ed25519KeyPair,
}

#[expect(clippy::expect_used, reason = "without a CA there is nothing to fuzz")]
static OFFICE: LazyLock<Office> = LazyLock::new(|| {
    let defaults = Rules::from(&Settings::default().x509);
    let everything = Rules {
        allow_ca: true,
        extensions: X509Extension::WORDS.iter().map(|(word, _)| *word).collect(),
        usages: X509KeyUsage::WORDS.iter().map(|(word, _)| *word).collect(),
        days: defaults.days,
    };
    Office {
        ca: Authority::new(
            "fuzz",
            PrivateKey::generate(KeyKind::EcdsaP256).expect("a key"),
            10_000,
            NOW,
        )
        .expect("a CA")
        .0,
        rules: [defaults, everything],
        requester: Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a key"),
    }
});

/// A certificate request. The first byte says how much of it the rest is: the text as it comes; the part that the
/// requester signs; the extensions that it asks for; or the value of one extension, which the second byte names.
/// What is missing is put around it, signature included: no search would find one.
pub fn csr(data: &[u8]) {
    let Some((label, rest)) = data.split_first() else {
        return;
    };
    let text = match label & 3 {
        0 => String::from_utf8_lossy(rest).into_owned(),
        1 => signed_request(rest),
        2 => signed_request(&asking_for(rest)),
        _ => {
            let Some((which, value)) = rest.split_first() else {
                return;
            };
            let oid = EXTENSIONS[usize::from(which & 0x7f) % EXTENSIONS.len()];
            let critical: &[u8] = if which & 0x80 == 0 { &[] } else { &[1, 1, 0xff] };
            let extension = tlv(0x30, &[&tlv(6, &[oid]), critical, &tlv(4, &[value])]);
            signed_request(&asking_for(&tlv(0x30, &[&extension])))
        }
    };
    for rules in &OFFICE.rules {
        match sign(&text, &OFFICE.ca, rules, NOW + Duration::from_secs(60)) {
            Ok(pem) => {
                assert!(pem.len() <= 2 * text.len() + 2048, "{} bytes", pem.len());
                check(&pem, rules);
            }
            Err(error) => {
                let message = Fault::from(error).message;
                assert!(!message.is_empty(), "an error without a text");
                assert!(message.len() <= LONGEST_ERROR, "{} bytes", message.len());
            }
        }
    }
}

/// What was signed can be read by others, and is a CA only where that is allowed.
fn check(pem: &str, rules: &Rules) {
    let read = Certificate::from_pem(pem).map_err(|error| error.to_string());
    let certificate = match read {
        Ok(certificate) => certificate.tbs_certificate,
        Err(error) => unreachable!("a certificate that cannot be read: {error}: {pem}"),
    };
    let extensions = certificate.extensions.unwrap_or_default();
    let is_ca = extensions
        .iter()
        .filter(|extension| extension.extn_id.as_bytes() == [0x55, 0x1d, 19])
        .any(|extension| {
            BasicConstraints::from_der(extension.extn_value.as_bytes()).map_or(true, |value| value.ca)
        });
    assert!(
        rules.allow_ca || !is_ca,
        "a certificate that may sign others: {pem}"
    );
}

/// The signed part of a request that asks for these extensions.
fn asking_for(extensions: &[u8]) -> Vec<u8> {
    let key = OFFICE.requester.public_key();
    let key = tlv(0x30, &[ED25519, &tlv(3, &[&[0], key.as_ref()])]);
    let attribute = tlv(0x30, &[EXTENSION_REQUEST, &tlv(0x31, &[extensions])]);
    tlv(0x30, &[&[2, 1, 0], &[0x30, 0], &key, &tlv(0xa0, &[&attribute])])
}

/// A request around its signed part.
fn signed_request(info: &[u8]) -> String {
    let signature = OFFICE.requester.sign(info);
    let der = tlv(0x30, &[info, ED25519, &tlv(3, &[&[0], signature.as_ref()])]);
    let body = STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n")
}

/// A DER value of this tag.
fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let mut all = vec![tag];
    match u8::try_from(body.len()) {
        Ok(short) if short < 0x80 => all.push(short),
        _ => {
            let length = body.len().to_be_bytes();
            let zeros = length.iter().take_while(|byte| **byte == 0).count();
            all.push(0x80 | u8::try_from(length.len() - zeros).unwrap_or_default());
            all.extend_from_slice(&length[zeros..]);
        }
    }
    all.extend(body);
    all
}
