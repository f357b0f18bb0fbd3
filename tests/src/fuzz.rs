//! What is fuzzed: one function per target, which takes any bytes and must neither panic nor use memory out of
//! proportion.
//!
//! `tests/fuzz` gives them to `cargo fuzz`; `tests/it/fuzzing.rs` gives them a bounded number of mutated recordings on
//! any toolchain. To add a target: a function here and in [`TARGETS`], its seeds in `tests/it/fuzzing.rs`, and a file
//! of three lines in `tests/fuzz/fuzz_targets` with its `[[bin]]`.

use std::io::Write as _;

use magnum_common::config::{ConfigArgs, Settings};
use magnum_common::objects::VersionedObject;
use magnum_common::rpc::{RawMessage, WireReply, WireRequest, decode};

/// The limit of bodies while fuzzing: small, so that a body that grows beyond it is noticed.
pub const LIMIT: usize = 256 * 1024;

/// What a target does with an input: anything but panic.
pub type Target = fn(&[u8]);

/// Every target by its name.
pub const TARGETS: &[(&str, Target)] = &[("message", message), ("object", object), ("config", config)];

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
