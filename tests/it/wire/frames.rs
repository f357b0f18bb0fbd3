//! Every recorded request and reply is read and written back with the same meaning.

use magnum_rpc::{
    MAX_BODY_BYTES, RawMessage, RemoteFailure, ReplyContent, Request, WireFormat, WireReply, WireRequest,
    decode, encode,
};
use serde_json::Value;

use super::{load, load_all, raw};

/// Recorded to show what a server refuses; `requests_with_a_wrong_target_…` has them.
const REFUSED: &[&str] = &["request-unsupported-version", "request-unsupported-namespace"];

fn read(message: &RawMessage) -> Request {
    let (wire, format) = decode::<WireRequest>(message, MAX_BODY_BYTES).unwrap();
    wire.check(format).unwrap()
}

fn written(bytes: bytes::Bytes, format: WireFormat) -> RawMessage {
    RawMessage {
        content_type: Some(format.content_type().to_owned()),
        body: bytes,
        ..RawMessage::default()
    }
}

/// The recorded meaning of a frame. Of a compressed one the recording has only the bytes, or the plain text;
/// then `read` is its own witness, and what it has to show is that it can be read at all.
fn meaning(frame: &Value, read: &Value) -> Value {
    match (frame["decompressed"].as_str(), &frame["inner"]) {
        (Some(plain), _) => {
            let envelope: Value = serde_json::from_str(plain).unwrap();
            serde_json::from_str(envelope["oslo.message"].as_str().unwrap()).unwrap()
        }
        (None, Value::Null) => read.clone(),
        (None, inner) => inner.clone(),
    }
}

#[test]
fn every_recording_is_read_by_a_test() {
    for (name, _) in load_all("rpc", "") {
        let known = match name.as_str() {
            "connection-opening" | "notification-publisher" => "broker/topology.rs",
            "experiments-server" | "experiments-client" | "experiments-reconnect" => "broker/experiments",
            _ if name.starts_with("notification-cluster-") => "notifications.rs",
            _ if name.starts_with("request-") || name.starts_with("reply-") => "here",
            _ => "",
        };
        assert!(
            !known.is_empty(),
            "{name} is copied and not compared with anything"
        );
    }
}

#[test]
fn every_request_reads_and_writes_back_equal() {
    let frames = load_all("rpc", "request-");
    assert_eq!(frames.len(), 66);
    for (name, frame) in frames {
        if REFUSED.contains(&name.as_str()) {
            continue;
        }
        let message = raw(&frame);
        let request = read(&message);
        let value = serde_json::to_value(&request).unwrap();
        let inner = meaning(&frame, &value);
        assert_eq!(value, inner, "{name}");
        for format in [WireFormat::Json, WireFormat::MessagePack] {
            let again = read(&written(encode(&request, format).unwrap(), format));
            assert_eq!(
                serde_json::to_value(&again).unwrap(),
                inner,
                "{name} as {format:?}"
            );
        }
    }
}

#[test]
fn requests_with_a_wrong_target_get_the_recorded_exception() {
    for name in REFUSED {
        let message = raw(&load("rpc", name));
        let (wire, format) = decode::<WireRequest>(&message, MAX_BODY_BYTES).unwrap();
        let malformed = wire.check(format).unwrap_err();
        let recorded = load("rpc", &name.replace("request-", "reply-"));
        assert!(malformed.reply.is_some());
        let ours: Value = serde_json::from_str(&RemoteFailure::from(&*malformed.fault).to_json()).unwrap();
        assert_same_failure(&ours, &recorded["inner"]["failure"], name);
    }
}

#[test]
fn every_reply_reads_and_writes_back_equal() {
    let frames = load_all("rpc", "reply-");
    assert_eq!(frames.len(), 50);
    for (name, frame) in frames {
        let (reply, _) = decode::<WireReply>(&raw(&frame), MAX_BODY_BYTES).unwrap();
        let mut value = serde_json::to_value(&reply).unwrap();
        if let Some(text) = value["failure"].as_str() {
            value["failure"] = serde_json::from_str(text).unwrap();
        }
        let inner = meaning(&frame, &value);
        assert_eq!(value, inner, "{name}");
        match reply.answer().unwrap() {
            ReplyContent::Failure(failure) => {
                let ours: Value = serde_json::from_str(&failure.to_json()).unwrap();
                assert_same_failure(&ours, &inner["failure"], &name);
            }
            ReplyContent::Alive => assert_eq!(name, "reply-monitored-call-heartbeat"),
            ReplyContent::Result(result) => assert_eq!(result, inner["result"], "{name}"),
        }
    }
}

#[test]
fn a_failure_of_our_catalogue_is_written_as_recorded() {
    let recorded = load("rpc", "reply-cluster_delete-ClusterNotFound");
    let (reply, _) = decode::<WireReply>(&raw(&recorded), MAX_BODY_BYTES).unwrap();
    let ReplyContent::Failure(failure) = reply.answer().unwrap() else {
        panic!("a failure");
    };
    let fault = failure.to_fault().expect("ClusterNotFound is in the catalogue");
    let ours: Value = serde_json::from_str(&RemoteFailure::from(&fault).to_json()).unwrap();
    assert_same_failure(&ours, &recorded["inner"]["failure"], "ClusterNotFound");
}

/// All six keys, of which the traceback is ours to leave empty.
fn assert_same_failure(ours: &Value, recorded: &Value, name: &str) {
    let keys: Vec<&String> = ours.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["class", "module", "message", "tb", "args", "kwargs"],
        "{name}"
    );
    for key in ["class", "module", "message", "args", "kwargs"] {
        assert_eq!(ours[key], recorded[key], "{name}: {key}");
    }
    assert_eq!(ours["tb"], serde_json::json!([]), "{name}");
}
