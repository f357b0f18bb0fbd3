//! Bytes: what a real oslo.messaging recorded is read, written and refused as it would be there, and what carries them.
//!
//! | module | proves |
//! |---|---|
//! | `broker` | taken or told why not, delivered until settled, back after every loss: on RabbitMQ, and in one process |
//! | `frames`, `notifications`, `topology` | recorded frames and declarations, byte by byte |
//! | `fuzzing` | nothing that can be sent makes a program panic or take much memory |
//! | `objects` | versioned objects against what real Magnum sent |

mod broker;
mod frames;
mod fuzzing;
mod notifications;
mod objects;
mod topology;

use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use magnum_rpc::RawMessage;
use serde_json::Value;

/// A folder of recordings.
fn fixtures(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fixtures")
        .join(folder)
}

pub(crate) fn load(folder: &str, name: &str) -> Value {
    let path = fixtures(folder).join(format!("{name}.json"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// All recordings of a folder whose names begin with `prefix`, by name.
pub(crate) fn load_all(folder: &str, prefix: &str) -> Vec<(String, Value)> {
    let mut names: Vec<String> = fs::read_dir(fixtures(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| file.strip_suffix(".json").map(str::to_owned))
        .filter(|name| name.starts_with(prefix))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|name| (name.clone(), load(folder, &name)))
        .collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(crate) fn body(frame: &Value) -> Bytes {
    let body = frame["body"].as_str().unwrap();
    match frame["body_encoding"].as_str() {
        Some("base64") => STANDARD.decode(body).unwrap().into(),
        _ => Bytes::from(body.to_owned()),
    }
}

/// A recorded frame as a transport hands it over.
pub(crate) fn raw(frame: &Value) -> RawMessage {
    RawMessage {
        queue: "recorded".to_owned(),
        content_type: text(&frame["properties"]["content_type"]),
        content_encoding: text(&frame["properties"]["content_encoding"]),
        compression: text(&frame["headers"]["compression"]),
        trace: None,
        signature: None,
        redelivered: false,
        stream_offset: None,
        body: body(frame),
    }
}
