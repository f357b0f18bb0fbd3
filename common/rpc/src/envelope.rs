//! The outer layer of a body: envelope 2.0, bare JSON, MessagePack.
//!
//! Sent is always envelope 2.0 in JSON, or bare MessagePack where the peer used MessagePack first. Accepted are
//! both formats with and without the envelope. The inner message is parsed straight from the text inside
//! the envelope, once.
//!
//! Strictness is oslo.messaging's: only version `2.0` passes, and inside JSON the inner message must be a string.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::compression::{CompressionError, decompress};
use super::message::RawMessage;
use super::wire_format::WireFormat;

/// The only envelope version there is.
pub const VERSION: &str = "2.0";

/// Deepest nesting accepted in MessagePack; serde_json has the same limit for JSON.
const MAX_DEPTH: usize = 128;

/// Why a body is not a message.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The body is empty.
    #[error("the body is empty")]
    Empty,
    /// The body is larger than the limit.
    #[error("the body has {size} bytes, more than the limit of {limit}")]
    TooLarge {
        /// Size of the body, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A content type that is neither JSON nor MessagePack.
    #[error("content type `{0}` is not supported; use application/json")]
    ContentType(String),
    /// The body cannot be decompressed.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// The body is not a message of its format.
    #[error("the body is not a message in {format:?}: {reason}")]
    Outer {
        /// The format, by the content type.
        format: WireFormat,
        /// What the parser said.
        reason: String,
    },
    /// An envelope that is not version 2.0.
    #[error("envelope version `{0}` is not supported; only `2.0` is")]
    Version(String),
    /// The message inside of the envelope cannot be decoded.
    #[error("the message inside the envelope is not valid: {0}")]
    Inner(String),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(rename = "oslo.version", borrow, default)]
    version: Option<Cow<'a, str>>,
    #[serde(rename = "oslo.message", borrow, default)]
    message: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct OutgoingEnvelope<'a> {
    #[serde(rename = "oslo.version")]
    version: &'static str,
    #[serde(rename = "oslo.message")]
    message: &'a str,
}

/// Decodes the inner message of `message` as a `T`, and returns the format it came in.
///
/// # Errors
/// The body is larger than `limit` bytes, is malformed, or has an unknown content type or envelope version.
pub fn decode<T: DeserializeOwned>(
    message: &RawMessage,
    limit: usize,
) -> Result<(T, WireFormat), DecodeError> {
    if message.body.is_empty() {
        return Err(DecodeError::Empty);
    }
    if message.body.len() > limit {
        return Err(DecodeError::TooLarge {
            size: message.body.len(),
            limit,
        });
    }
    let format = WireFormat::of_content_type(message.content_type.as_deref())
        .ok_or_else(|| DecodeError::ContentType(message.content_type.clone().unwrap_or_default()))?;
    let body = decompress(message.body.clone(), message.compression.as_deref(), limit)?;
    let inner = match format {
        WireFormat::Json => decode_json(&body),
        WireFormat::MessagePack => decode_message_pack(&body),
    }?;
    Ok((inner, format))
}

fn decode_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    let outer = |error: serde_json::Error| DecodeError::Outer {
        format: WireFormat::Json,
        reason: describe(&error),
    };
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(outer)?;
    match (envelope.version, envelope.message) {
        (None, _) => serde_json::from_slice(body).map_err(outer),
        (Some(version), _) if version != VERSION => Err(DecodeError::Version(version.into_owned())),
        (Some(_), None) => Err(DecodeError::Inner("`oslo.message` is missing".to_owned())),
        (Some(_), Some(text)) => {
            serde_json::from_str(&text).map_err(|error| DecodeError::Inner(describe(&error)))
        }
    }
}

fn decode_message_pack<T: DeserializeOwned>(body: &[u8]) -> Result<T, DecodeError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(body);
    reader.set_max_depth(MAX_DEPTH);
    let outer = Value::deserialize(&mut reader).map_err(|error| DecodeError::Outer {
        format: WireFormat::MessagePack,
        reason: error.to_string(),
    })?;
    let inner_error = |error: serde_json::Error| DecodeError::Inner(describe(&error));
    match outer.get("oslo.version") {
        None => serde_json::from_value(outer).map_err(inner_error),
        Some(Value::String(version)) if version == VERSION => match outer.get("oslo.message") {
            Some(Value::String(text)) => serde_json::from_str(text).map_err(inner_error),
            Some(message) => serde_json::from_value(message.clone()).map_err(inner_error),
            None => Err(DecodeError::Inner("`oslo.message` is missing".to_owned())),
        },
        Some(version) => Err(DecodeError::Version(version.to_string())),
    }
}

/// Encodes `inner` as a body of `format`.
///
/// # Errors
/// A value cannot be expressed in the format.
pub fn encode<T: Serialize>(inner: &T, format: WireFormat) -> Result<Bytes, DecodeError> {
    match format {
        WireFormat::Json => {
            let text = serde_json::to_string(inner).map_err(|error| DecodeError::Inner(describe(&error)))?;
            let envelope = OutgoingEnvelope {
                version: VERSION,
                message: &text,
            };
            // Escaping doubles the quotes of the inner text; 5/4 fits what Magnum sends without growing.
            let mut body = Vec::with_capacity(text.len() + text.len() / 4 + 64);
            serde_json::to_writer(&mut body, &envelope)
                .map_err(|error| DecodeError::Inner(describe(&error)))?;
            Ok(body.into())
        }
        WireFormat::MessagePack => rmp_serde::to_vec_named(inner)
            .map(Bytes::from)
            .map_err(|error| DecodeError::Inner(error.to_string())),
    }
}

/// A parser's message without the input: bodies hold tokens. serde quotes mistyped scalars, so those are cut.
fn describe(error: &serde_json::Error) -> String {
    match error.classify() {
        serde_json::error::Category::Data => {
            let text = error.to_string();
            let kept = text.split(": string \"").next().unwrap_or_default();
            format!("{kept} (line {}, column {})", error.line(), error.column())
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(body: impl Into<Bytes>) -> RawMessage {
        RawMessage {
            content_type: Some("application/json".into()),
            body: body.into(),
            ..RawMessage::default()
        }
    }

    fn read(body: &str) -> Result<Value, DecodeError> {
        decode::<Value>(&raw(body.to_owned()), 10_000).map(|(value, _)| value)
    }

    #[test]
    fn the_envelope_is_optional_and_spacing_is_free() {
        for body in [
            r#"{"oslo.version": "2.0", "oslo.message": "{\"method\": \"m\"}"}"#,
            r#"{"oslo.message":"{\"method\":\"m\"}","oslo.version":"2.0"}"#,
            r#"{ "method" : "m" }"#,
        ] {
            assert_eq!(read(body).unwrap(), json!({"method": "m"}), "{body}");
        }
    }

    #[test]
    fn malformed_envelope_is_refused_with_a_reason() {
        for (body, needle) in [
            (r#"{"oslo.version": "1.0", "oslo.message": "{}"}"#, "`1.0`"),
            (r#"{"oslo.version": "2.0.1", "oslo.message": "{}"}"#, "`2.0.1`"),
            (r#"{"oslo.version": "2.0"}"#, "missing"),
            (
                r#"{"oslo.version": "2.0", "oslo.message": {}}"#,
                "invalid type: map",
            ),
            (
                r#"{"oslo.version": "2.0", "oslo.message": "{"}"#,
                "inside the envelope",
            ),
            ("null", "null"),
            ("{\"method", "EOF"),
        ] {
            let text = decode::<serde_json::Map<String, Value>>(&raw(body), 10_000)
                .unwrap_err()
                .to_string();
            assert!(text.contains(needle), "{body}: {text}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_an_error() {
        assert!(decode::<Value>(&raw(&b"{\"a\": \"\xff\xfe\"}"[..]), 100).is_err());
    }

    #[test]
    fn size_and_type_are_checked_before_parsing() {
        assert!(matches!(
            decode::<Value>(&raw("{}".repeat(10)), 10),
            Err(DecodeError::TooLarge { size: 20, limit: 10 })
        ));
        assert!(matches!(decode::<Value>(&raw(""), 10), Err(DecodeError::Empty)));
        let text = RawMessage {
            content_type: Some("text/plain".into()),
            ..raw("{}")
        };
        assert!(matches!(
            decode::<Value>(&text, 10),
            Err(DecodeError::ContentType(_))
        ));
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_an_overflow() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(decode::<Value>(&raw(deep), 1 << 20).is_err());
        let mut packed = vec![0x91; 100_000];
        packed.push(0xc0);
        let message = RawMessage {
            content_type: Some("application/x-msgpack".into()),
            ..raw(packed)
        };
        assert!(decode::<Value>(&message, 1 << 20).is_err());
    }

    #[test]
    fn a_length_that_is_not_there_is_an_error_and_takes_no_memory() {
        // Binary, extension, text, list and map of 4,294,967,295: as much memory ends the process.
        for kind in [0xc6, 0xc9, 0xdb, 0xdd, 0xdf] {
            for before in [&[][..], b"\x81\xa6method"] {
                let message = RawMessage {
                    content_type: Some("application/x-msgpack".into()),
                    ..raw([before, &[kind, 0xff, 0xff, 0xff, 0xff], &[0xc0; 16]].concat())
                };
                assert!(decode::<Value>(&message, 1000).is_err(), "{kind:#x}");
            }
        }
    }

    #[test]
    fn message_pack_is_read_with_and_without_the_envelope() {
        let inner = json!({"method": "m", "args": {"a": [1, null]}});
        for outer in [
            inner.clone(),
            json!({"oslo.version": "2.0", "oslo.message": inner.to_string()}),
            json!({"oslo.version": "2.0", "oslo.message": inner}),
        ] {
            let message = RawMessage {
                content_type: Some("application/x-msgpack".into()),
                ..raw(rmp_serde::to_vec_named(&outer).unwrap())
            };
            let (value, format) = decode::<Value>(&message, 10_000).unwrap();
            assert_eq!((value, format), (inner.clone(), WireFormat::MessagePack));
        }
    }

    #[test]
    fn both_formats_round_trip() {
        let inner = json!({"text": "ü\"\\\n", "n": 1.5});
        for format in [WireFormat::Json, WireFormat::MessagePack] {
            let message = RawMessage {
                content_type: Some(format.content_type().into()),
                ..raw(encode(&inner, format).unwrap())
            };
            assert_eq!(decode::<Value>(&message, 10_000).unwrap().0, inner);
        }
    }

    #[test]
    fn an_error_does_not_quote_the_body() {
        let error = decode::<u32>(&raw(r#""gAAAA-secret-token""#), 100).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
