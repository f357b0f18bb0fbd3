//! Frames sent to a server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lapin::{BasicProperties, Channel, Connection};
use magnum_common::error::{Exception, Fault};
use magnum_objects::{VersionedObject, is_object};
use magnum_rpc::topology::{self, Declaration};
use magnum_rpc::{
    Delivery, ListenSpec, Listener, MAX_BODY_BYTES, OwnQueues, PublishError, ReplyAddress, Request,
    RpcOptions, Transport, WireFormat, connect_with, decode,
};
use magnum_rpc_server::{CallMonitor, Incoming, RpcServer, reply};
use magnum_tests::amqp_tap::AmqpTap;
use magnum_tests::rabbitmq::{self, Vhost};
use magnum_tests::wait;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::super::{Bed, SOON, args, next, nobody};
use super::{assert_documented, assert_recorded, experiments, properties, publish, raw_channel};
use crate::wire::{body, raw};

/// What ours does otherwise.
#[derive(Debug)]
enum Otherwise {
    /// It answers with the value that it was to echo.
    Answers,
    /// It raises an exception of this class.
    Raises(&'static str),
    /// It sets the message aside.
    SetsAside,
}

use Otherwise::{Answers, Raises, SetsAside};

const LIBERAL: &str = "MessagePack; `application/json` with parameters or without a content type";
const UNREADABLE: &str = "A message that cannot be read";

const DIFFERENT: &[(&str, Otherwise, &str)] = &[
    ("msgpack with envelope, application/x-msgpack", Answers, LIBERAL),
    (
        "msgpack without envelope, application/x-msgpack",
        Answers,
        LIBERAL,
    ),
    (
        "msgpack with envelope, application/x-msgpack utf-8",
        Answers,
        LIBERAL,
    ),
    (
        "msgpack without envelope, application/x-msgpack utf-8",
        Answers,
        LIBERAL,
    ),
    ("msgpack with envelope, application/msgpack", Answers, LIBERAL),
    ("msgpack without envelope, application/msgpack", Answers, LIBERAL),
    ("json without content_type", Answers, LIBERAL),
    ("json without content_type and content_encoding", Answers, LIBERAL),
    (
        "json with content_type \"application/json; charset=utf-8\"",
        Answers,
        LIBERAL,
    ),
    (
        "xz body, header compression=application/x-lzma",
        SetsAside,
        "LZMA-compressed bodies",
    ),
    ("empty body", SetsAside, UNREADABLE),
    ("json list of pairs", SetsAside, UNREADABLE),
    (
        "second with the same _unique_id",
        Answers,
        "A message whose id came before",
    ),
    (
        "version 1",
        Raises("UnsupportedVersion"),
        "A target version without a dot",
    ),
    (
        "plain dict with the keys __type__ and __value__ (no envelope)",
        Answers,
        "An object with exactly the keys `__type__` and `__value__`, in a body without envelope",
    ),
];

/// Experiments without a frame, each with a test below.
const WITHOUT_FRAME: &[&str] = &[
    "heartbeats for _timeout=2, 3.5 s of work",
    "order of ack and reply for 1.5 s of work",
    "reply queue missing",
    "_reply_q absent but _msg_id present",
    "100 calls of 1 s each, default settings, first 0.9 s",
];

/// What became of one message.
#[derive(Debug, PartialEq)]
enum Fate {
    /// A handler got it and there was nobody to answer.
    Handled,
    /// It was answered, in this format.
    Answered(Value, WireFormat),
    /// It is in the dead-letter queue.
    SetAside,
}

struct Scene {
    channel: Channel,
    _connection: Connection,
    transport: Arc<dyn Transport>,
    replies: Listener,
    dead: Listener,
    server: RpcServer,
}

impl Scene {
    async fn new(vhost: &Vhost) -> Result<Self> {
        let options = RpcOptions::for_url(&vhost.transport_url())?;
        let transport = connect_with(options.clone(), "test")?;
        let server = RpcServer::start(Arc::clone(&transport), &options, "one").await?;
        let listen = async |declarations: Vec<Declaration>| {
            let spec = ListenSpec {
                purpose: "test",
                declarations,
                default_prefetch: 0,
                heartbeat: None,
                delete_at_stop: None,
                own_queues: OwnQueues::default(),
            };
            transport.listen(spec).await
        };
        let mut dead = topology::reply_listener("magnum-conductor.dead", &options.rabbit);
        dead[0] = topology::dead_letter_queue("magnum-conductor.dead", &options.rabbit);
        let (connection, channel) = raw_channel(vhost).await?;
        Ok(Self {
            replies: listen(topology::reply_listener("reply_wire_experiment", &options.rabbit)).await?,
            dead: listen(dead).await?,
            channel,
            _connection: connection,
            transport,
            server,
        })
    }

    async fn send(&mut self, experiment: &Value) -> Result<Fate> {
        let (body, properties) = (body(experiment), properties(experiment));
        publish(&self.channel, "magnum-conductor", &body, properties).await?;
        let fate = async {
            tokio::select! {
                Some(Incoming { request, delivery }) = self.server.recv() => {
                    delivery.ack().await;
                    match request.reply.clone() {
                        None => Ok(Fate::Handled),
                        Some(address) => {
                            handle(self.transport.as_ref(), request, &address).await?;
                            read(self.replies.recv().await.context("no reply")?).await
                        }
                    }
                }
                // Some requests are answered before a handler sees them.
                Some(delivery) = self.replies.recv() => read(delivery).await,
                Some(delivery) = self.dead.recv() => {
                    delivery.ack().await;
                    Ok(Fate::SetAside)
                }
            }
        };
        timeout(SOON, fate).await?
    }

    /// Sends a request of our own making.
    async fn ask(&self, request: &Value) -> Result<()> {
        let properties = BasicProperties::default().with_content_type("application/json".into());
        publish(
            &self.channel,
            "magnum-conductor",
            request.to_string().as_bytes(),
            properties,
        )
        .await
    }
}

/// The recorder's handlers.
async fn handle(transport: &dyn Transport, request: Request, address: &ReplyAddress) -> Result<()> {
    let outcome = match request.method.as_str() {
        "x_echo" => match request.args.get("value") {
            Some(value) if is_object(value) => VersionedObject::decode(value).map(|object| object.encode()),
            value => Ok(value.cloned().unwrap_or_default()),
        },
        "x_ctx" => {
            let whole = serde_json::to_value(&request)?;
            let keys = whole.as_object().into_iter().flat_map(Map::keys);
            let keys: BTreeSet<&str> = keys.filter_map(|key| key.strip_prefix("_context_")).collect();
            Ok(json!(keys))
        }
        method => Err(Fault::new(
            Exception::NoSuchMethod,
            format!("Endpoint does not support RPC method {method}"),
        )),
    };
    reply(transport, address, outcome.as_ref().cloned()).await?;
    Ok(())
}

async fn read(delivery: Delivery) -> Result<Fate> {
    let (mut reply, format) = decode::<Value>(delivery.message(), MAX_BODY_BYTES)?;
    delivery.ack().await;
    if let Some(text) = reply["failure"].as_str() {
        reply["failure"] = serde_json::from_str(text)?;
    }
    Ok(Fate::Answered(reply, format))
}

/// Changes are a set.
fn with_sorted_changes(mut value: Value) -> Value {
    if let Some(changes) = value
        .get_mut("magnum_object.changes")
        .and_then(Value::as_array_mut)
    {
        changes.sort_by_key(ToString::to_string);
    }
    value
}

fn assert_as_recorded(name: &str, experiment: &Value, fate: &Fate) {
    let observed = &experiment["observed"];
    if observed["settled_with"] != json!(["basic.ack"]) {
        assert_eq!(*fate, Fate::SetAside, "{name}");
        return;
    }
    match (fate, &observed["reply"]) {
        (Fate::Handled, Value::Null) => {}
        (Fate::Answered(ours, format), recorded) => {
            let kind = experiment["properties"]["content_type"].as_str();
            let is_packed = kind.is_some_and(|kind| kind.contains("msgpack"));
            assert_eq!(*format == WireFormat::MessagePack, is_packed, "{name}");
            match recorded.get("failure") {
                None => assert_eq!(
                    with_sorted_changes(ours["result"].clone()),
                    with_sorted_changes(recorded["result"].clone()),
                    "{name}"
                ),
                Some(recorded) => assert_same_failure(name, &ours["failure"], recorded),
            }
        }
        (fate, recorded) => panic!("{name}: {fate:?}, recorded {recorded}"),
    }
}

fn assert_same_failure(name: &str, ours: &Value, recorded: &Value) {
    let same: &[&str] = if recorded["module"] == "builtins" {
        assert_documented("Text of an exception that Python itself raises");
        &["class", "module", "kwargs"]
    } else {
        &["class", "module", "message", "args", "kwargs"]
    };
    for key in same {
        assert_eq!(ours[*key], recorded[*key], "{name}: {key}");
    }
}

/// The value that a recorded frame asks to have echoed.
fn echoed(experiment: &Value) -> Value {
    let (request, _) = decode::<Value>(&raw(experiment), MAX_BODY_BYTES).unwrap();
    request["args"]["value"].clone()
}

#[tokio::test]
async fn every_experiment_with_a_server_ends_as_recorded_or_as_documented() -> Result<()> {
    let all = experiments("experiments-server");
    assert_recorded(WITHOUT_FRAME, &all);
    let different: Vec<&str> = DIFFERENT.iter().map(|(name, ..)| *name).collect();
    assert_recorded(&different, &all);
    let vhost = rabbitmq::vhost().await?;
    let mut scene = Scene::new(&vhost).await?;
    for (name, experiment) in &all {
        if experiment["body"].as_str().is_none() {
            assert!(
                WITHOUT_FRAME.contains(&name.as_str()),
                "{name} has no frame and no test"
            );
            continue;
        }
        let fate = scene.send(experiment).await.with_context(|| name.clone())?;
        let Some((_, otherwise, row)) = DIFFERENT.iter().find(|(other, ..)| other == name) else {
            assert_as_recorded(name, experiment, &fate);
            continue;
        };
        assert_documented(row);
        match (otherwise, &fate) {
            (Answers, Fate::Answered(reply, _)) => {
                assert_eq!(reply["result"], echoed(experiment), "{name}");
                assert_eq!(reply["failure"], Value::Null, "{name}");
            }
            (Raises(class), Fate::Answered(reply, _)) => {
                assert_eq!(reply["failure"]["class"], *class, "{name}");
            }
            (SetsAside, Fate::SetAside) => {}
            (otherwise, fate) => panic!("{name}: {fate:?} instead of {otherwise:?}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_monitored_call_gets_the_recorded_signs_of_life() -> Result<()> {
    let all = experiments("experiments-server");
    let (_, recorded) = all.iter().find(|(name, _)| name == WITHOUT_FRAME[0]).unwrap();
    let what = |reply: &Value| (reply["result"].clone(), reply["ending"].clone());
    let replies = recorded["observed"]["replies"].as_array().unwrap();
    let recorded: Vec<(Value, Value)> = replies.iter().map(what).collect();
    let vhost = rabbitmq::vhost().await?;
    let mut scene = Scene::new(&vhost).await?;
    let call = json!({
        "method": "x_sleep", "args": {}, "_msg_id": "m", "_reply_q": "reply_wire_experiment", "_timeout": 2,
    });
    scene.ask(&call).await?;
    let Incoming { request, delivery } = next(&mut scene.server).await;
    let monitor = CallMonitor::start(&scene.transport, &request);
    tokio::time::sleep(Duration::from_millis(3500)).await;
    drop(monitor);
    reply(
        scene.transport.as_ref(),
        &request.reply.unwrap(),
        Ok(json!("slept")),
    )
    .await?;
    delivery.ack().await;
    let mut seen = Vec::new();
    for _ in &recorded {
        let delivery = timeout(SOON, scene.replies.recv()).await?.context("a reply")?;
        if let Fate::Answered(reply, _) = read(delivery).await? {
            seen.push(what(&reply));
        }
    }
    assert_eq!(seen, recorded);
    Ok(())
}

#[tokio::test]
async fn requests_are_acknowledged_after_the_work_and_no_more_than_the_limit_are_held() -> Result<()> {
    assert_documented("When a request is acknowledged");
    assert_documented("`rabbit_qos_prefetch_count = 0`");
    let vhost = rabbitmq::vhost().await?;
    let bed = Bed::new(&vhost.transport_url(), "")?;
    let mut server = bed.server("one").await?;
    for n in 0..300 {
        bed.client().cast(&nobody(), "m", args(n)).await?;
    }
    let mut held = Vec::new();
    for _ in 0..256 {
        held.push(next(&mut server).await);
    }
    wait::until("the broker to keep the rest", SOON, async || {
        let queue = vhost.management().queue("magnum-conductor").await?;
        let seen = (
            queue["messages_ready"].as_u64(),
            queue["messages_unacknowledged"].as_u64(),
        );
        ensure!(seen == (Some(44), Some(256)), "{seen:?}");
        Ok(())
    })
    .await?;
    assert!(server.try_recv().is_none());
    held.pop().unwrap().delivery.ack().await;
    next(&mut server).await.delivery.ack().await;
    Ok(())
}

fn publishes_to(tap: &AmqpTap, queue: &str) -> usize {
    let said = tap.connections_named("sender");
    let methods = said.iter().flat_map(|one| &one.methods);
    methods
        .filter(|method| method["method"] == "basic.publish" && method["routing_key"] == queue)
        .count()
}

#[tokio::test]
async fn reply_to_a_missing_queue_is_retried_for_its_time_and_then_once() -> Result<()> {
    assert_documented("Pauses between offers of a reply whose queue is missing");
    let vhost = rabbitmq::vhost().await?;
    let tap = AmqpTap::start(vhost.address).await?;
    let address = ReplyAddress {
        queue: "reply_gone".into(),
        msg_id: "m".into(),
        format: WireFormat::Json,
    };
    let url = vhost.transport_url_via(tap.address());
    let bed = Bed::new(&url, "kombu_missing_consumer_retry_timeout=2.2")?;
    let answer = async || reply(bed.transport.as_ref(), &address, Ok(json!(1))).await;
    let started = tokio::time::Instant::now();
    let error = answer().await.unwrap_err();
    assert!(matches!(error, PublishError::Unroutable { .. }), "{error}");
    assert!(
        started.elapsed() > Duration::from_secs(1),
        "it was given up early"
    );
    let offers = publishes_to(&tap, "reply_gone");
    assert!(offers > 3, "{offers}");

    // The caller is known to be gone now.
    let error = answer().await.unwrap_err();
    assert!(matches!(error, PublishError::Unroutable { .. }), "{error}");
    assert_eq!(publishes_to(&tap, "reply_gone"), offers + 1);

    // Without the flag nobody notices.
    let bed = Bed::new(&url, "direct_mandatory_flag=false")?;
    reply(bed.transport.as_ref(), &address, Ok(json!(1))).await?;
    Ok(())
}

#[tokio::test]
async fn call_without_a_reply_queue_is_a_cast() -> Result<()> {
    assert_documented("A request with `_msg_id` and without `_reply_q`");
    let vhost = rabbitmq::vhost().await?;
    let mut scene = Scene::new(&vhost).await?;
    scene
        .ask(&json!({"method": "x_echo", "args": {}, "_msg_id": "m"}))
        .await?;
    let Incoming { request, delivery } = next(&mut scene.server).await;
    assert_eq!((request.reply, request.args), (None, Map::new()));
    delivery.ack().await;
    Ok(())
}
