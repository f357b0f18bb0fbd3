//! Messages that were set aside, for operators: what they are, why they are there, and what may be shown of them.
//!
//! A request holds its user's token, so nothing is shown as it stands: secrets are masked wherever they are in the
//! message, also inside of texts that hold JSON, and a body that cannot be parsed is not shown at all.

mod reader;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bytes::Bytes;
use serde_json::{Map, Value};

use magnum_rpc::{MAX_BODY_BYTES, RawMessage, decode, decompress};

pub use self::reader::{DeadLetterError, DeadLetters, Lent};

/// The header with the id that it got when it was set aside.
pub(super) const ID: &str = "x-id";
/// The header with the reason.
pub(super) const REASON: &str = "x-reason";
/// The header with the queue that it came from.
pub(super) const QUEUE: &str = "x-queue";
/// The header with the time, as RFC 3339 has it.
pub(super) const TIME: &str = "x-time";

/// What stands in the place of a secret.
const MASK: &str = "***";

/// Parts of the names of what is never shown.
const SECRET_NAMES: &[&str] = &[
    "token",
    "password",
    "passphrase",
    "secret",
    "private_key",
    "credential",
    "kubeconfig",
];

/// Deepest text inside of text that is looked into.
const MAX_LAYERS: usize = 4;

/// One message that was set aside.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// Its name here. Copies that somebody else put into the queue have one that is made of their content.
    pub id: String,
    /// Why it was set aside, if that is known.
    pub reason: Option<String>,
    /// When, as RFC 3339 has it, if that is known.
    pub time: Option<String>,
    /// The message, with the queue that it came from.
    pub message: RawMessage,
}

/// What a message is about, as far as it can be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// Name of the RPC method, if it can be read.
    pub method: Option<String>,
    /// Its message id, under which the journal would know it.
    pub message: Option<String>,
    /// The id of the request that it belongs to.
    pub request: Option<String>,
    /// Project of the sender, if it can be read.
    pub project: Option<String>,
    /// Whether somebody waited for an answer.
    pub is_call: bool,
}

impl DeadLetter {
    /// From a message and its text headers.
    pub(super) fn new(mut message: RawMessage, header: impl Fn(&str) -> Option<String>) -> Self {
        if let Some(queue) = header(QUEUE) {
            message.queue = queue;
        }
        Self {
            id: header(ID).unwrap_or_else(|| name_of(&message.body)),
            reason: header(REASON),
            time: header(TIME),
            message,
        }
    }

    /// What it is about.
    pub fn subject(&self) -> Subject {
        let Some(Value::Object(inner)) = self.inner() else {
            return Subject::default();
        };
        let text = |name: &str| inner.get(name).and_then(Value::as_str).map(str::to_owned);
        Subject {
            method: text("method"),
            message: text("_unique_id"),
            request: text("_context_request_id"),
            project: text("_context_project_id"),
            is_call: text("_msg_id").is_some(),
        }
    }

    /// The message with its secrets masked; none if it cannot be parsed, since it may hold some.
    pub fn masked(&self) -> Option<Value> {
        self.inner().map(|inner| masked(inner, 0))
    }

    /// The message inside of its envelope, or else whatever JSON it is.
    fn inner(&self) -> Option<Value> {
        if let Ok((inner, _)) = decode::<Value>(&self.message, MAX_BODY_BYTES) {
            return Some(inner);
        }
        let label = self.message.compression.as_deref();
        let body = decompress(self.message.body.clone(), label, MAX_BODY_BYTES).ok()?;
        (body.len() <= MAX_BODY_BYTES).then(|| serde_json::from_slice(&body).ok())?
    }
}

/// A name made of the content.
fn name_of(body: &Bytes) -> String {
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn masked(value: Value, layer: usize) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|field| masked_field(field, layer))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| masked(item, layer)).collect()),
        Value::String(text) => masked_text(text, layer),
        plain => plain,
    }
}

fn masked_field((name, value): (String, Value), layer: usize) -> (String, Value) {
    let lower = name.to_lowercase();
    let is_secret = !value.is_null() && SECRET_NAMES.iter().any(|part| lower.contains(part));
    let value = if is_secret {
        MASK.into()
    } else {
        masked(value, layer)
    };
    (name, value)
}

/// A text may hold a whole message: an envelope of another version, a failure.
fn masked_text(text: String, layer: usize) -> Value {
    let holds_more = text.trim_start().starts_with(['{', '[']);
    if !holds_more {
        return if text.contains("-----BEGIN") {
            MASK.into()
        } else {
            text.into()
        };
    }
    match serde_json::from_str::<Value>(&text) {
        Ok(inner @ (Value::Object(_) | Value::Array(_))) if layer < MAX_LAYERS => masked(inner, layer + 1),
        // Something that looks like a message and cannot be looked into.
        _ => MASK.into(),
    }
}

/// The headers that tell of a message why it was set aside.
pub(super) fn headers(reason: &str, queue: &str) -> Vec<(String, String)> {
    [
        (ID, uuid::Uuid::new_v4().simple().to_string()),
        (REASON, reason.to_owned()),
        (QUEUE, queue.to_owned()),
        (
            TIME,
            magnum_common::clock::utc_now()
                .format("%Y-%m-%dT%H:%M:%SZ")
                .to_string(),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// A map of texts only, for printing.
impl From<Subject> for Map<String, Value> {
    fn from(subject: Subject) -> Self {
        let mut map = Map::new();
        for (name, value) in [
            ("method", subject.method),
            ("message_id", subject.message),
            ("request_id", subject.request),
            ("project_id", subject.project),
        ] {
            map.insert(name.to_owned(), value.into());
        }
        map.insert("call".to_owned(), subject.is_call.into());
        map
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn letter(body: impl Into<Bytes>) -> DeadLetter {
        let message = RawMessage {
            content_type: Some("application/json".into()),
            body: body.into(),
            ..RawMessage::default()
        };
        DeadLetter::new(message, |name| (name == REASON).then(|| "why".to_owned()))
    }

    fn request() -> Value {
        json!({
            "method": "cluster_create", "_unique_id": "u", "_msg_id": "m", "_context_request_id": "req-1",
            "_context_project_id": "p", "_context_auth_token": "gAAAA", "_context_auth_token_info": {"token": "gAAAA"},
            "args": {
                "cluster": {"magnum_object.data": {"name": "c", "labels": {"registry_password": "gAAAA"}}},
                "pair": [{"private_key": "gAAAA", "private_key_passphrase": null}],
                "pem": "-----BEGIN PRIVATE KEY-----\ngAAAA",
            },
        })
    }

    #[test]
    fn request_is_summarised_and_shown_without_secrets() {
        let whole = json!({"oslo.version": "2.0", "oslo.message": request().to_string()});
        let letter = letter(whole.to_string());
        assert_eq!(letter.reason.as_deref(), Some("why"));
        let subject = letter.subject();
        assert_eq!(subject.method.as_deref(), Some("cluster_create"));
        assert_eq!((subject.message.as_deref(), subject.is_call), (Some("u"), true));
        let shown = letter.masked().unwrap();
        assert_eq!(shown["args"]["cluster"]["magnum_object.data"]["name"], "c");
        assert_eq!(shown["_context_auth_token"], "***");
        assert_eq!(shown["args"]["pair"][0]["private_key_passphrase"], Value::Null);
        assert!(!shown.to_string().contains("gAAAA"), "{shown}");
    }

    #[test]
    fn secrets_within_texts_are_masked() {
        let nested = json!({"oslo.version": "3.0", "oslo.message": request().to_string()});
        let shown = letter(nested.to_string()).masked().unwrap();
        assert_eq!(shown["oslo.message"]["method"], "cluster_create");
        assert!(!shown.to_string().contains("gAAAA"), "{shown}");
        let broken = json!({"oslo.version": "3.0", "oslo.message": "{\"_context_auth_token\": \"gAAAA"});
        assert!(
            !letter(broken.to_string())
                .masked()
                .unwrap()
                .to_string()
                .contains("gAAAA")
        );
    }

    #[test]
    fn unparsable_body_is_not_shown() {
        let letter = letter("{\"_context_auth_token\": \"gAAAA\"");
        assert_eq!(letter.masked(), None);
        assert_eq!(letter.subject(), Subject::default());
    }

    #[test]
    fn a_letter_without_an_id_has_one_of_its_content() {
        assert_eq!(letter("a").id, letter("a").id);
        assert_ne!(letter("a").id, letter("b").id);
    }
}
