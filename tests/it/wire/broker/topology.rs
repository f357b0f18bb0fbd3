//! What we really say to a RabbitMQ, method by method, equals what a real oslo.messaging was recorded saying, for
//! each recorded combination of options: a server's start, a call with its reply, a fanout, a stop.
//!
//! Differences are written here and in docs/differences.md: a limit of unacknowledged requests where oslo sends
//! none, and requests that are mandatory.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_conductor::notifications::message::{Notification, NotificationFormat, Priority, Retries, notify};
use magnum_config::Settings;
use magnum_rpc::{RpcOptions, connect_with};
use magnum_rpc_client::{CallOptions, RpcClient};
use magnum_rpc_server::{Incoming, RpcServer, reply};
use magnum_tests::amqp_tap::AmqpTap;
use magnum_tests::rabbitmq;
use magnum_tests::wait;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::{SOON, nobody};
use crate::wire::{load, load_all};

/// The server of the recordings.
const SERVER: &str = "gq3dcmbzgu4t";

/// A call's patience in the recordings.
const PATIENCE: Duration = Duration::from_secs(8);

/// The recorded options, as an operator would write them into the URL.
fn query(recording: &Value) -> String {
    let options = recording["options"].as_object().unwrap();
    let pairs = options.iter().map(|(name, value)| {
        format!(
            "{name}={}",
            value.as_str().map_or_else(|| value.to_string(), str::to_owned)
        )
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// One server and one client in a vhost of their own, as in the recordings: a call, a fanout, the end.
async fn conversation(query: &str, idle: Duration) -> Result<AmqpTap> {
    let vhost = rabbitmq::vhost().await?;
    let tap = AmqpTap::start(vhost.address).await?;
    let locks = tempfile::tempdir()?;
    let url = format!("{}?{query}", vhost.transport_url_via(tap.address()));
    let mut options = RpcOptions::for_url(&url)?;
    options.rabbit.lock_path = Some(locks.path().to_owned());
    let (answering, asking) = (
        connect_with(options.clone(), "server")?,
        connect_with(options.clone(), "client")?,
    );
    let mut server = timeout(SOON, RpcServer::start(answering.clone(), &options, SERVER)).await??;
    tokio::time::sleep(idle).await;
    let client = RpcClient::new(asking.clone(), &options);
    let call = CallOptions {
        timeout: Some(PATIENCE),
        ..CallOptions::default()
    };
    let context = nobody();
    let answered = async {
        let Incoming { request, delivery } = server.recv().await.context("no call")?;
        delivery.ack().await;
        reply(
            answering.as_ref(),
            &request.reply.context("a call")?,
            Ok(json!(1)),
        )
        .await?;
        anyhow::Ok(())
    };
    let (called, answered) = tokio::join!(client.call_with(&context, "x_echo", Map::new(), call), answered);
    answered?;
    ensure!(called? == 1);
    client.fanout_cast(&context, "x_note", Map::new()).await?;
    let Incoming { request, delivery } = timeout(SOON, server.recv()).await?.context("no fanout")?;
    ensure!(request.method == "x_note", "{}", request.method);
    delivery.ack().await;
    server.stop().await;
    drop(client);
    asking.close().await;
    answering.close().await;
    Ok(tap)
}

/// Names that are random in each run, made equal.
fn without_random_names(methods: &mut [Value]) {
    for method in methods {
        for name in ["queue", "routing_key"] {
            let Some(text) = method[name].as_str() else {
                continue;
            };
            for prefix in ["reply_", "magnum-conductor_fanout_"] {
                if let Some(rest) = text.strip_prefix(prefix)
                    && rest.len() == 32
                    && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
                {
                    method[name] = json!(format!("{prefix}<random>"));
                    break;
                }
            }
        }
    }
}

/// What the recording's client side said on connection `number`.
fn recorded(recording: &Value, parts: &[&str], number: u64) -> Vec<Value> {
    let mut methods = Vec::new();
    for part in parts {
        for method in recording[*part].as_array().unwrap() {
            let mut method = method.clone();
            let fields = method.as_object_mut().unwrap();
            let from = fields.remove("from");
            if fields.remove("conn") == Some(json!(number)) && from == Some(json!("client")) {
                methods.push(method);
            }
        }
    }
    without_random_names(&mut methods);
    methods
}

/// What ours said there, without the opening and the end of the connection, which have their own test.
fn ours(tap: &AmqpTap, who: &str, purpose: &str) -> Vec<Value> {
    let said = tap.connections_named(&format!(":{purpose}:"));
    let one = said.into_iter().find(|one| one.name.starts_with(who));
    let mut methods = one
        .unwrap_or_else(|| panic!("{who} has no connection for {purpose}"))
        .methods;
    methods.retain(|method| {
        let name = method["method"].as_str().unwrap();
        !name.starts_with("connection.") && !matches!(name, "channel.open" | "heartbeat")
    });
    without_random_names(&mut methods);
    methods
}

/// The same with what we do otherwise on purpose.
fn with_our_differences(mut methods: Vec<Value>, who: &str, purpose: &str) -> Vec<Value> {
    if purpose == "requests" && methods.iter().all(|method| method["method"] != "basic.qos") {
        let limit =
            json!({"method": "basic.qos", "prefetch_size": 0, "prefetch_count": 256, "global": false});
        methods.insert(0, limit);
    }
    if (who, purpose) == ("client", "sender") {
        // Before a call: whether anybody would take it.
        let asked = json!({
            "method": "queue.declare", "queue": "magnum-conductor", "passive": true, "durable": false,
            "exclusive": false, "auto_delete": false, "nowait": false, "arguments": {},
        });
        methods.insert(0, asked);
    }
    // Nothing is taken from the topic's queue before the server's own are known to be served.
    let is_own = |queue: &str| {
        let rest = queue.strip_prefix("magnum-conductor");
        rest.is_some_and(|rest| rest.starts_with('.') || rest.starts_with("_fanout_"))
    };
    for consumers in methods.chunk_by_mut(|one, next| one["method"] == next["method"]) {
        if consumers[0]["method"] == "basic.consume" {
            consumers.sort_by_key(|method| !method["queue"].as_str().is_some_and(is_own));
        }
    }
    for method in &mut methods {
        if method["method"] == "basic.publish" && method["exchange"] == "magnum" {
            method["mandatory"] = json!(true);
        }
    }
    methods
}

/// An expiration counts from the start of the call, so ours may be some milliseconds less.
fn with_equal_expiration(mut methods: Vec<Value>) -> Vec<Value> {
    for method in &mut methods {
        if let Some(text) = method["properties"]["expiration"].as_str() {
            let milliseconds: u64 = text.parse().unwrap();
            assert!((1..=8000).contains(&milliseconds), "{text}");
            method["properties"]["expiration"] = json!("<at most 8000>");
        }
    }
    methods
}

#[tokio::test]
async fn amqp_methods_equal_the_recording_for_each_option() -> Result<()> {
    let recordings = load_all("rpc/topology", "");
    assert_eq!(recordings.len(), 16);
    for (name, recording) in recordings {
        let tap = conversation(&query(&recording), Duration::ZERO)
            .await
            .with_context(|| name.clone())?;
        for (who, purpose, parts, number) in [
            ("server", "requests", &["server_start", "stop"][..], 1),
            ("client", "replies", &["call_and_fanout"][..], 2),
            ("client", "sender", &["call_and_fanout"][..], 3),
            ("server", "sender", &["call_and_fanout"][..], 4),
        ] {
            let expected = with_our_differences(recorded(&recording, parts, number), who, purpose);
            assert_eq!(
                with_equal_expiration(ours(&tap, who, purpose)),
                with_equal_expiration(expected),
                "{name}: the {who}'s connection for {purpose}"
            );
        }
    }
    Ok(())
}

/// The method of that name on a connection.
fn one<'a>(methods: &'a [Value], name: &str) -> &'a Value {
    let found = methods.iter().find(|method| method["method"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {methods:#?}"))
}

#[tokio::test]
async fn connections_are_opened_and_kept_alive_as_recorded() -> Result<()> {
    let recording = load("rpc", "connection-opening");
    let recorded = recording["connections"][0]["methods"].as_array().unwrap();
    let tap = conversation("heartbeat_timeout_threshold=2", Duration::from_secs(3)).await?;
    let connections = [tap.connections_named("server:"), tap.connections_named("client:")].concat();
    assert_eq!(
        connections.len(),
        recording["connections"].as_array().unwrap().len()
    );
    for connection in &connections {
        let methods = &connection.methods;
        let names: Vec<&str> = methods
            .iter()
            .filter_map(|method| method["method"].as_str())
            .collect();
        let opening = [
            "connection.start-ok",
            "connection.tune-ok",
            "connection.open",
            "channel.open",
        ];
        assert_eq!(names[..4], opening, "{}", connection.name);
        assert_eq!(names.last(), Some(&"connection.close"), "{}", connection.name);
        let (ours, theirs) = (
            one(methods, "connection.start-ok"),
            one(recorded, "connection.start-ok"),
        );
        assert_eq!(ours["mechanism"], theirs["mechanism"]);
        assert_eq!(ours["locale"], theirs["locale"]);
        assert_eq!(ours["client_properties"]["product"], "lapin");
        for (name, is_there) in theirs["client_properties"]["capabilities"].as_object().unwrap() {
            assert_eq!(
                ours["client_properties"]["capabilities"][name], *is_there,
                "{name}"
            );
        }
        let (ours, theirs) = (
            one(methods, "connection.tune-ok"),
            one(recorded, "connection.tune-ok"),
        );
        assert_eq!(ours["channel_max"], theirs["channel_max"]);
        assert_eq!(ours["heartbeat"], theirs["heartbeat"]);
        // Smaller buffers: docs/differences.md.
        assert_eq!(ours["frame_max"], 32 * 1024);
    }
    let idle = tap
        .connections_named("server:")
        .into_iter()
        .find(|one| one.name.contains(":requests:"));
    let beats = idle
        .unwrap()
        .methods
        .iter()
        .filter(|method| method["method"] == "heartbeat")
        .count();
    assert!(beats >= 2, "{beats} heartbeats in 3 s at a threshold of 2 s");
    Ok(())
}

#[tokio::test]
async fn notification_publisher_sends_the_recorded_methods() -> Result<()> {
    let vhost = rabbitmq::vhost().await?;
    let tap = AmqpTap::start(vhost.address).await?;
    let options = RpcOptions::for_url(&vhost.transport_url_via(tap.address()))?;
    let transport = connect_with(options, "notifier")?;
    let notification = Notification::now(
        "container-infra.h".into(),
        "magnum.cluster.create".into(),
        Priority::Info,
        json!({}),
        nobody(),
    );
    let exchange = Settings::default().default.control_exchange;
    for _ in 0..2 {
        notify(
            transport.as_ref(),
            &exchange,
            "notifications",
            &notification,
            NotificationFormat::Enveloped,
            Retries::AtMost(3),
        )
        .await?;
    }
    transport.close().await;
    wait::until("the goodbye", SOON, async || {
        let said = tap
            .connections_named("notifier")
            .pop()
            .context("nothing was said")?;
        one_of(&said.methods, "connection.close").map(drop)
    })
    .await?;
    let said = ours(&tap, "notifier", "sender");
    let declared: Vec<&Value> = said
        .iter()
        .filter(|method| {
            !matches!(
                method["method"].as_str(),
                Some("basic.publish" | "confirm.select")
            )
        })
        .collect();
    let recorded = load("rpc", "notification-publisher");
    let expected: Vec<&Value> = recorded["declares"].as_array().unwrap().iter().collect();
    assert_eq!(declared, expected, "declared once, before the first message");
    let frame = load("rpc", "notification-cluster-create-success");
    let published: Vec<&Value> = said
        .iter()
        .filter(|method| method["method"] == "basic.publish")
        .collect();
    assert_eq!(published.len(), 2);
    for publish in published {
        for (name, in_frame) in [
            ("exchange", "exchange"),
            ("routing_key", "routing_key"),
            ("mandatory", "mandatory"),
        ] {
            assert_eq!(publish[name], frame[in_frame], "{name}");
        }
        for (name, value) in frame["properties"].as_object().unwrap() {
            assert_eq!(publish["properties"][name], *value, "{name}");
        }
    }
    Ok(())
}

fn one_of<'a>(methods: &'a [Value], name: &str) -> Result<&'a Value> {
    let found = methods.iter().find(|method| method["method"] == name);
    found.with_context(|| format!("no {name} yet"))
}
