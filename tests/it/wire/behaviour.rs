//! Odd messages: our server does with each what a real one was seen to do, or better where that is written here.

use std::sync::Arc;
use std::time::Duration;

use magnum_common::rpc::topology::{self, Declaration};
use magnum_common::rpc::{
    Answer, Delivery, Incoming, ListenSpec, Listener, MAX_BODY_BYTES, OutgoingMessage, RpcOptions, RpcServer,
    Transport, WireReply, connect_with, decode, direct, reply,
};
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::{body, load, text};

/// Messages that a Python server rejects (or, the last, cannot use) and ours can read.
const ACCEPTED_BY_US: &[&str] = &[
    "msgpack with envelope, application/x-msgpack",
    "msgpack without envelope, application/x-msgpack",
    "msgpack with envelope, application/x-msgpack utf-8",
    "msgpack without envelope, application/x-msgpack utf-8",
    "msgpack with envelope, application/msgpack",
    "msgpack without envelope, application/msgpack",
    "json without content_type",
    "json without content_type and content_encoding",
    "json with content_type \"application/json; charset=utf-8\"",
];

/// Messages that a Python server takes and ours sets aside as dead letters.
const SET_ASIDE_BY_US: &[&str] = &[
    // LZMA needs a codec that nobody configures.
    "xz body, header compression=application/x-lzma",
    // Acknowledged and dropped there, with an error in the log.
    "empty body",
    "json list of pairs",
];

/// What became of one message.
#[derive(Debug, PartialEq)]
enum Fate {
    /// A handler got it and there was nobody to answer.
    Handled,
    /// It was answered.
    Answered(Answer),
    /// It is in the dead-letter queue.
    SetAside,
}

struct Bed {
    transport: Arc<dyn Transport>,
    replies: Listener,
    dead: Listener,
    server: RpcServer,
}

impl Bed {
    async fn new() -> Self {
        let options = RpcOptions::for_url(&format!("fake://{}", Uuid::new_v4())).unwrap();
        let transport = connect_with(options.clone(), "test").unwrap();
        let listen = async |declarations: Vec<Declaration>| {
            let spec = ListenSpec {
                purpose: "test",
                declarations,
                default_prefetch: 0,
                delete_at_stop: None,
            };
            transport.listen(spec).await.unwrap()
        };
        let mut dead = topology::reply_listener("magnum-conductor.dead", &options.rabbit);
        dead.insert(
            0,
            topology::dead_letter_queue("magnum-conductor.dead", &options.rabbit),
        );
        Self {
            replies: listen(topology::reply_listener("reply_wire_experiment", &options.rabbit)).await,
            dead: listen(dead).await,
            server: RpcServer::start(Arc::clone(&transport), &options, "one")
                .await
                .unwrap(),
            transport,
        }
    }

    async fn send(&mut self, experiment: &Value) -> Fate {
        let compression = text(&experiment["headers"]["compression"]);
        let message = OutgoingMessage {
            content_type: text(&experiment["properties"]["content_type"]),
            content_encoding: text(&experiment["properties"]["content_encoding"]),
            headers: compression
                .map(|label| ("compression".to_owned(), label))
                .into_iter()
                .collect(),
            ..OutgoingMessage::new(direct("magnum-conductor"), Default::default(), body(experiment))
        };
        self.transport.publish(message).await.unwrap();
        let fate = async {
            tokio::select! {
                Some(incoming) = self.server.recv() => echo(self.transport.as_ref(), incoming, &mut self.replies).await,
                Some(delivery) = self.replies.recv() => {
                    Fate::Answered(answer(delivery).await)
                }
                Some(delivery) = self.dead.recv() => {
                    delivery.ack().await;
                    Fate::SetAside
                }
            }
        };
        timeout(Duration::from_secs(10), fate).await.expect("a fate")
    }
}

/// Answers as the recorder's server did: `x_echo` returns its value.
async fn echo(transport: &dyn Transport, incoming: Incoming, replies: &mut Listener) -> Fate {
    let Incoming { request, delivery } = incoming;
    delivery.ack().await;
    let Some(address) = &request.reply else {
        return Fate::Handled;
    };
    let value = request.args.get("value").cloned().unwrap_or(Value::Null);
    if reply(transport, address, Ok(value)).await.is_err() {
        // Some experiments name a reply queue that never existed.
        return Fate::Handled;
    }
    Fate::Answered(answer(replies.recv().await.unwrap()).await)
}

async fn answer(delivery: Delivery) -> Answer {
    let reply = decode::<WireReply>(delivery.message(), MAX_BODY_BYTES).unwrap().0;
    delivery.ack().await;
    reply.answer().unwrap()
}

#[tokio::test]
async fn odd_messages_meet_the_fate_they_had_at_a_real_server() {
    let recording = load("rpc", "experiments-server");
    let mut bed = Bed::new().await;
    let mut compared = 0;
    for experiment in recording["experiments"].as_array().unwrap() {
        let name = experiment["name"].as_str().unwrap();
        let Some(settled) = experiment["observed"]["settled_with"].as_array() else {
            continue;
        };
        if experiment["body"].as_str().is_none() || settled.len() != 1 || is_of_a_handler(experiment) {
            continue;
        }
        compared += 1;
        let fate = bed.send(experiment).await;
        if SET_ASIDE_BY_US.contains(&name) {
            assert_eq!(fate, Fate::SetAside, "{name}");
        } else if ACCEPTED_BY_US.contains(&name) {
            assert!(
                matches!(fate, Fate::Answered(Answer::Result(_))),
                "{name}: {fate:?}"
            );
        } else if settled[0] == json!("basic.ack") {
            let observed = &experiment["observed"]["reply"];
            match &fate {
                Fate::Answered(Answer::Failure(failure)) => {
                    assert_eq!(json!(failure.class), observed["failure"]["class"], "{name}");
                }
                Fate::Answered(Answer::Result(result)) => {
                    assert!(
                        observed.get("failure").is_none(),
                        "{name}: {fate:?}, recorded {observed}"
                    );
                    if String::from_utf8_lossy(&body(experiment)).contains("x_echo") {
                        assert_eq!(*result, observed["result"], "{name}");
                    }
                }
                Fate::Handled => assert!(observed.is_null(), "{name}: recorded {observed}"),
                other => panic!("{name}: {other:?}, recorded {observed}"),
            }
        } else {
            assert_eq!(fate, Fate::SetAside, "{name}");
        }
    }
    assert!(compared > 40, "{compared} experiments");
}

/// Whether the outcome depends on the handler or on objects, which are not this module's matter.
fn is_of_a_handler(experiment: &Value) -> bool {
    let name = experiment["name"].as_str().unwrap_or_default();
    let failure = &experiment["observed"]["reply"]["failure"]["class"];
    // kombu's decoder turns such an object into bytes; we hand it on as it is.
    name.contains("__type__")
        || name.starts_with("object")
        || name.starts_with("list of objects")
        || name.contains("duplicate")
        || name.contains("unique_id")
        || matches!(
            failure.as_str(),
            Some("NoSuchMethod" | "IndexError" | "IncompatibleObjectVersion" | "UnsupportedObjectError")
        )
        || (failure == "TypeError" && name.contains("argument"))
}
