//! The drivers of `[oslo_messaging_notifications]`, against a real oslo.messaging listener and oslo's own `log`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::RequestId;
use magnum_conductor::notifications::message::{Notification, NotificationFormat, Priority, Retries, notify};
use magnum_rpc::{Declaration, RpcOptions, connect_with, topology};
use magnum_rpc_server::{QueueInspection, inspect};
use magnum_tests::chaos_proxy::ChaosProxy;
use magnum_tests::deployment::{Api, Deployment};
use magnum_tests::oslo_peer::OsloPeer;
use magnum_tests::process::Program;
use magnum_tests::raw_rpc::{self, RawRpc};
use magnum_tests::{Backend, rabbitmq, wait};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(90);
const SECTION: &str = "oslo_messaging_notifications";

async fn listener(deployment: &Deployment) -> Result<OsloPeer> {
    let config = deployment.config_file("listener")?;
    OsloPeer::start("oslo_notified.py", &[config.to_str().context("path")?]).await
}

/// What a listener heard, as (priority, event type, outcome), by topic.
type Heard = BTreeMap<String, Vec<Value>>;

/// So many notifications on each of the topics.
async fn hear(listener: &mut OsloPeer, topics: &[&str], each: usize) -> Result<Heard> {
    let mut heard = Heard::new();
    for _ in 0..topics.len() * each {
        let one = listener
            .next_event(PATIENCE)
            .await
            .with_context(|| format!("so far: {heard:#?}"))?;
        heard
            .entry(one["topic"].as_str().context("topic")?.to_owned())
            .or_default()
            .push(one);
    }
    let seen: Vec<(&str, usize)> = heard
        .iter()
        .map(|(topic, all)| (topic.as_str(), all.len()))
        .collect();
    let expected: Vec<(&str, usize)> = topics.iter().map(|topic| (*topic, each)).collect();
    ensure!(seen == expected, "{seen:?} instead of {expected:?}");
    Ok(heard)
}

fn summary(one: &Value) -> (&str, &str, &str) {
    let text = |value: &'static str| one[value].as_str().unwrap_or_default();
    let outcome = one["payload"]["outcome"].as_str().unwrap_or_default();
    (text("priority"), text("event_type"), outcome)
}

/// One cluster that lives and is resized and deleted, one that fails, and a cast that is refused.
async fn lives(deployment: &Deployment, api: &Api) -> Result<()> {
    let rest = api.rest.with_token("token-of-the-user");
    let template = rest.create_template("t").await?;
    let cluster = rest.create_cluster(&template, "c", json!({})).await?;
    rest.wait_status(&cluster, "CREATE_COMPLETE", PATIENCE).await?;
    rest.resize(&cluster, 2).await?.expect(202)?;
    rest.wait_status(&cluster, "UPDATE_COMPLETE", PATIENCE).await?;
    rest.delete(&format!("/clusters/{cluster}")).await?.expect(204)?;
    deployment.settled(PATIENCE).await?;
    let labels = json!({"scripted_create": "permanent"});
    rest.create_cluster(&template, "f", labels).await?;
    deployment.settled(PATIENCE).await?;
    let nobody = json!({"uuid": "5d12f6fd-a196-4bf0-ae4c-1f639a523a52"});
    let rpc = RawRpc::connect(&deployment.vhost).await?;
    rpc.cast(&raw_rpc::request("cluster_delete", nobody)).await
}

/// What is told of [`lives`].
const LIVES: &[(&str, &str, &str)] = &[
    ("error", "magnum.cluster.create", "failure"),
    ("error", "magnum.cluster.delete", "failure"),
    ("info", "magnum.cluster.create", "pending"),
    ("info", "magnum.cluster.create", "pending"),
    ("info", "magnum.cluster.create", "success"),
    ("info", "magnum.cluster.delete", "pending"),
    ("info", "magnum.cluster.delete", "success"),
    ("info", "magnum.cluster.update", "pending"),
    ("info", "magnum.cluster.update", "success"),
];

/// A driver whose frames begin with `key`; the listener understands them on both topics.
async fn is_heard(driver: &str, key: &str) -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set(SECTION, "driver", driver);
    deployment.set(SECTION, "topics", "notifications, audit.trail");
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    lives(&deployment, &api).await?;

    // Nobody has listened so far: it has piled up, where it can be looked at.
    let broker = deployment.vhost.management();
    let piled = wait::until("the refusal to be told", PATIENCE, async || {
        let piled = broker.peek("audit.trail.error", 10).await?;
        ensure!(piled.len() == 2, "{piled:#?}");
        Ok(piled)
    })
    .await?;
    let body: Value = serde_json::from_str(piled[0]["payload"].as_str().context("payload")?)?;
    let keys: Vec<&String> = body.as_object().context("an object")?.keys().collect();
    ensure!(body.get(key).is_some(), "{keys:?}");
    let is_bare = body.get("oslo.message").is_none() && body.get("oslo.version").is_none();
    ensure!(is_bare == (driver == "messaging"), "{keys:?}");

    let mut listener = listener(&deployment).await?;
    let heard = hear(&mut listener, &["audit.trail", "notifications"], LIVES.len()).await?;
    let mut ids = Vec::new();
    for (topic, all) in &heard {
        let mut seen: Vec<_> = all.iter().map(summary).collect();
        seen.sort_unstable();
        ensure!(seen == LIVES, "{topic}: {seen:#?}");
        for one in all {
            ensure!(one["publisher_id"] == "container-infra.one", "{one:#}");
            ensure!(!one.to_string().contains("token-of-the-user"), "{one:#}");
            ensure!(one["context"]["auth_token"].is_null(), "{one:#}");
            ensure!(
                one["context"]["request_id"]
                    .as_str()
                    .is_some_and(|id| id.starts_with("req-")),
                "{one:#}"
            );
            let is_refused = summary(one) == ("error", "magnum.cluster.delete", "failure");
            ensure!(is_refused || one["context"]["project_id"] == "noauth", "{one:#}");
            let content = &one["payload"]["target"]["attachments"][0]["content"];
            ensure!(
                content["reason"].is_string() == is_refused && content["status"].is_string() != is_refused,
                "{one:#}"
            );
            let time = one["metadata"]["timestamp"].as_str().context("timestamp")?;
            chrono::NaiveDateTime::parse_from_str(time, "%Y-%m-%d %H:%M:%S%.6f")?;
        }
        let mut of_topic: Vec<&str> = all
            .iter()
            .filter_map(|one| one["metadata"]["message_id"].as_str())
            .collect();
        of_topic.sort_unstable();
        of_topic.dedup();
        ensure!(of_topic.len() == LIVES.len(), "{topic}: {of_topic:?}");
        ids.push(of_topic);
    }
    ensure!(
        ids[0] == ids[1],
        "one notification has one id on every topic: {ids:?}"
    );
    drop(conductor);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_hears_messagingv2_on_every_topic() -> Result<()> {
    is_heard("messagingv2", "oslo.message").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_hears_messaging_without_an_envelope_on_every_topic() -> Result<()> {
    is_heard("messaging", "event_type").await
}

fn notification(priority: Priority) -> Notification {
    let context = RequestContext::for_caller(&Caller::default(), &RequestId::new("req-1"));
    let payload = json!({"outcome": "success"});
    let event = "magnum.cluster.create".to_owned();
    Notification::now(
        "container-infra.one".to_owned(),
        event,
        priority,
        payload,
        context,
    )
}

/// The same options make the same queues on both sides, whoever is first.
#[tokio::test(flavor = "multi_thread")]
async fn publisher_and_listener_declare_the_same_queues_whatever_the_options() -> Result<()> {
    for options in [
        &[][..],
        &[
            ("rabbit_quorum_queue", "true"),
            ("rabbit_quorum_delivery_limit", "7"),
        ],
        &[("amqp_durable_queues", "true")],
        &[("amqp_auto_delete", "true")],
    ] {
        let mut deployment = Deployment::new(Backend::Sqlite).await?;
        deployment.set("oslo_messaging_rabbit", "rabbit_quorum_queue", false);
        let mut query = "?rabbit_quorum_queue=false".to_owned();
        for (name, value) in options {
            deployment.set("oslo_messaging_rabbit", name, value);
            query = format!("{query}&{name}={value}").replace("false&rabbit_quorum_queue=", "");
        }
        let rpc_options = RpcOptions::for_url(&format!("{}{query}", deployment.vhost.transport_url()))?;
        let transport = connect_with(rpc_options.clone(), "notifier")?;
        let format = NotificationFormat::Enveloped;
        let tell = async |priority| {
            let told = notification(priority);
            let retries = Retries::AtMost(0);
            notify(
                transport.as_ref(),
                "magnum",
                "notifications",
                &told,
                format,
                retries,
            )
            .await
        };
        // We are first at one queue; at the other, the listener is.
        tell(Priority::Info).await?;
        let mut listener = listener(&deployment).await?;
        let ours = ["notifications.info", "notifications.error"]
            .map(|queue| topology::notification_queue("magnum", queue, &rpc_options.rabbit))
            .concat();
        let declared: Vec<Declaration> = ours
            .into_iter()
            .filter(|one| !matches!(one, Declaration::Bind { .. }))
            .collect();
        for (name, found) in inspect(&rpc_options, "inspector", &declared).await? {
            ensure!(
                found == QueueInspection::AsConfigured,
                "{options:?}: {name}: {found:?}"
            );
        }
        tell(Priority::Error).await?;
        let heard = hear(&mut listener, &["notifications"], 2).await?;
        let mut priorities: Vec<_> = heard["notifications"].iter().map(|one| summary(one).0).collect();
        priorities.sort_unstable();
        ensure!(priorities == ["error", "info"], "{options:?}: {priorities:?}");
        transport.close().await;
    }
    Ok(())
}

/// The lines of the driver `log` in a conductor's log: target, level, text.
fn logged(conductor: &Program) -> Vec<(String, String, Value)> {
    let lines = conductor.log();
    lines
        .lines()
        .filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let target = line["target"].as_str()?;
            target.starts_with("oslo.messaging.notification").then_some(())?;
            let text = serde_json::from_str(line["message"].as_str()?).ok()?;
            Some((target.to_owned(), line["level"].as_str()?.to_owned(), text))
        })
        .collect()
}

/// A shape: the same keys, and values of the same type.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect(),
        Value::String(text) => json!(format!("{} characters", text.chars().count())),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn log_driver_writes_the_same_lines_as_oslos() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set(SECTION, "driver", "log");
    deployment.set("DEFAULT", "use_json", true);
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    lives(&deployment, &api).await?;
    let ours = wait::until("all to be logged", PATIENCE, async || {
        let ours = logged(&conductor);
        ensure!(ours.len() == LIVES.len(), "{ours:#?}");
        Ok(ours)
    })
    .await?;
    let mut peer = listener(&deployment).await?;
    for (target, level, text) in ours {
        let again = json!({
            "do": "log", "publisher_id": text["publisher_id"], "event_type": text["event_type"],
            "priority": text["priority"].as_str().context("priority")?.to_lowercase(), "payload": text["payload"],
            "context": {"auth_token": "token-of-the-user", "project_id": "noauth"},
        });
        let theirs = peer.ask(again).await??;
        ensure!(
            theirs["logger"] == target.as_str() && theirs["level"] == level.as_str(),
            "{target} {level}: {theirs:#}"
        );
        let their_text: Value = serde_json::from_str(theirs["text"].as_str().context("text")?)?;
        ensure!(
            their_text["payload"] == text["payload"],
            "{text:#}\n{their_text:#}"
        );
        ensure!(shape(&their_text) == shape(&text), "{text:#}\n{their_text:#}");
    }
    // Nothing is published besides.
    let queues = deployment.vhost.management().queues().await?;
    let conductors = |queue: &&Value| {
        queue["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("notifications"))
    };
    let of_the_listener = queues.iter().filter(conductors).count();
    let held: u64 = queues
        .iter()
        .filter(conductors)
        .filter_map(|queue| queue["messages"].as_u64())
        .sum();
    ensure!(of_the_listener == 2 && held == 0, "{queues:#?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn notifications_go_to_the_broker_of_their_own_section() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let others = rabbitmq::vhost().await?;
    deployment.set(SECTION, "driver", "messagingv2");
    deployment.set(SECTION, "transport_url", others.transport_url());
    let mut conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    // Its listener finds that broker by the same option.
    let mut listener = listener(&deployment).await?;
    hear(&mut listener, &["notifications"], 2).await?;
    let here = deployment.vhost.management().queues().await?;
    let strays = here.iter().filter(|queue| {
        queue["name"]
            .as_str()
            .is_some_and(|name| name.contains("notifications"))
    });
    ensure!(strays.count() == 0, "{here:#?}");
    // Their line ends with the conductor, in good order.
    ensure!(
        conductor.terminate(PATIENCE).await?.success(),
        "{}",
        conductor.log()
    );
    Ok(())
}

/// The broker of notifications is away, and lets go a line for each attempt. Clusters do not wait for it.
async fn told_to_nobody(retry: Option<i64>) -> Result<(Deployment, Program, ChaosProxy)> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    let line = ChaosProxy::start(deployment.vhost.address).await?;
    line.cut();
    deployment.set(SECTION, "driver", "messagingv2");
    deployment.set(
        SECTION,
        "transport_url",
        deployment.vhost.transport_url_via(line.address()),
    );
    deployment.set("oslo_messaging_rabbit", "rabbit_retry_interval", 0.05);
    deployment.set("oslo_messaging_rabbit", "rabbit_interval_max", 0.05);
    if let Some(retry) = retry {
        deployment.set(SECTION, "retry", retry);
    }
    let conductor = deployment.conductor("one").await?;
    let api = deployment.api().await?;
    let template = api.rest.create_template("t").await?;
    let cluster = api.rest.create_cluster(&template, "c", json!({})).await?;
    api.rest
        .wait_status(&cluster, "CREATE_COMPLETE", PATIENCE)
        .await?;
    Ok((deployment, conductor, line))
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_limits_the_attempts_of_a_notification() -> Result<()> {
    for (retry, attempts) in [(0, 1), (3, 4)] {
        let (_deployment, conductor, line) = told_to_nobody(Some(retry)).await?;
        // Pending and success.
        wait::until("both to be given up", PATIENCE, async || {
            let lost = conductor.log().matches("a notification is lost").count();
            ensure!(lost == 2, "{lost} lost");
            Ok(())
        })
        .await?;
        let accepted = line.accepted();
        ensure!(
            accepted == 2 * attempts,
            "retry = {retry}: {accepted} attempts for two"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn by_default_a_notification_waits_for_its_broker() -> Result<()> {
    let (mut deployment, conductor, line) = told_to_nobody(None).await?;
    wait::until("many attempts", PATIENCE, async || {
        ensure!(line.accepted() > 40, "{} attempts", line.accepted());
        Ok(())
    })
    .await?;
    line.restore();
    // Python wants whole seconds.
    deployment.set("oslo_messaging_rabbit", "rabbit_retry_interval", 1);
    deployment.set("oslo_messaging_rabbit", "rabbit_interval_max", 1);
    let mut listener = listener(&deployment).await?;
    let heard = hear(&mut listener, &["notifications"], 2).await?;
    let seen: Vec<_> = heard["notifications"].iter().map(|one| summary(one).2).collect();
    ensure!(seen == ["pending", "success"], "{seen:?}");
    ensure!(
        !conductor.log().contains("a notification is lost"),
        "{}",
        conductor.log()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_does_not_exist_here_is_an_error_in_the_log_and_stops_nothing() -> Result<()> {
    let mut deployment = Deployment::new(Backend::Sqlite).await?;
    deployment.set(SECTION, "driver", "routing");
    let conductor = deployment.conductor("one").await?;
    let log = conductor.log();
    let line = log
        .lines()
        .find(|line| line.contains("\"routing\""))
        .context("no line")?;
    ensure!(
        line.contains("ERROR") && line.contains("[oslo_messaging_notifications] driver"),
        "{line}"
    );
    Ok(())
}
