//! Notifications as Magnum wrote them: the same keys in the same order, the same queue.

use magnum_common::context::RequestContext;
use magnum_common::model::{Cluster, NodeGroup};
use magnum_conductor::notifications::cadf;
use magnum_conductor::notifications::{Notification, Priority};
use magnum_conductor::operations::OperationKind;
use magnum_conductor::operations::notice::{ClusterSnapshot, NoticeOutcome};
use magnum_rpc::{RabbitOptions, topology};
use serde_json::{Map, Value};

use super::topology::methods;
use super::{load, load_all};

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn number(value: &Value) -> Option<i32> {
    value.as_i64().map(|number| i32::try_from(number).unwrap())
}

fn addresses(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().filter_map(text).collect()
}

fn group(role: &str, count: &Value, at: &Value) -> NodeGroup {
    let mut group = NodeGroup::new("n".into(), "default", "c".into(), "p", role);
    group.node_count = number(count).unwrap();
    group.node_addresses = addresses(at);
    group
}

/// The rows that a recorded notification was made from.
fn seen(target: &Value) -> ClusterSnapshot {
    let data = &target["attachments"][0]["content"];
    let mut cluster = Cluster::new(
        text(&target["id"]).unwrap().into(),
        text(&data["cluster_template_id"]).unwrap().into(),
    );
    cluster.name = text(&target["name"]);
    cluster.status = data["status"].as_str().map(|status| status.parse().unwrap());
    cluster.project_id = text(&data["project_id"]);
    let time = |value: &Value| text(value).map(|text| text.parse().unwrap());
    cluster.created_at = time(&data["created_at"]);
    cluster.updated_at = time(&data["updated_at"]);
    cluster.keypair = text(&data["keypair"]);
    for (name, value) in data["labels"].as_object().unwrap() {
        cluster.labels.insert(name.clone(), text(value).unwrap());
    }
    cluster.master_flavor_id = text(&data["master_flavor_id"]);
    cluster.flavor_id = text(&data["flavor_id"]);
    cluster.stack_id = text(&data["stack_id"]);
    cluster.health_status = data["health_status"]
        .as_str()
        .map(|health| health.parse().unwrap());
    cluster.create_timeout = number(&data["create_timeout"]);
    cluster.api_address = text(&data["api_address"]);
    ClusterSnapshot {
        cluster,
        node_groups: vec![
            group("master", &data["master_count"], &data["master_addresses"]),
            group("worker", &data["node_count"], &data["node_addresses"]),
        ],
    }
}

/// The message without what is fresh in each: ids and times keep only their length.
fn comparable(mut message: Value) -> String {
    let blur = |value: &mut Value| {
        let length = value.as_str().expect("a text").chars().count();
        *value = Value::from(format!("<{length} characters>"));
    };
    for name in ["message_id", "timestamp", "_unique_id"] {
        blur(&mut message[name]);
    }
    for pointer in ["id", "eventTime", "observer/id", "initiator/id"] {
        blur(message.pointer_mut(&format!("/payload/{pointer}")).unwrap());
    }
    format!("{message:#}")
}

fn ours(recorded: &Value, kind: OperationKind, outcome: NoticeOutcome, priority: Priority) -> Value {
    let mut context = Map::new();
    for (name, value) in recorded.as_object().unwrap() {
        if let Some(name) = name.strip_prefix("_context_") {
            context.insert(name.to_owned(), value.clone());
        }
    }
    // What must not be in the message.
    context.insert("auth_token".into(), "secret".into());
    let context = RequestContext::from_map(context);
    let target = &recorded["payload"]["target"];
    let seen = seen(target);
    let payload = cadf::payload(&cadf::Event {
        kind,
        outcome,
        cluster: &seen.cluster.uuid,
        snapshot: Some(&seen),
        context: &context,
        refusal: None,
    });
    let notification = Notification::now(
        "container-infra.conductor1.example.com".into(),
        format!("magnum.cluster.{}", kind.description().notification),
        priority,
        payload,
        context,
    );
    notification.to_message()
}

#[test]
fn every_notification_equals_magnums() {
    let recorded = load_all("rpc", "notification-cluster-");
    assert_eq!(recorded.len(), 2);
    for (name, frame) in recorded {
        let recorded = frame["inner"].clone();
        let kind = match recorded["event_type"].as_str().unwrap() {
            "magnum.cluster.create" => OperationKind::ClusterCreate,
            "magnum.cluster.update" => OperationKind::ClusterUpdate,
            other => panic!("{name}: {other}"),
        };
        let (outcome, priority) = match recorded["payload"]["outcome"].as_str().unwrap() {
            "success" => (NoticeOutcome::Success, Priority::Info),
            "failure" => (NoticeOutcome::Failure, Priority::Error),
            other => panic!("{name}: {other}"),
        };
        let ours = ours(&recorded, kind, outcome, priority);
        let queue = format!("notifications.{}", priority.as_str().to_lowercase());
        assert_eq!(frame["routing_key"], queue, "{name}");
        assert_eq!(comparable(ours), comparable(recorded), "{name}");
    }
}

#[test]
fn notification_publisher_declares_the_same_queue_as_oslos() {
    let recorded = load("rpc", "notification-publisher");
    let ours = topology::notification_queue("magnum", "notifications.info", &RabbitOptions::default());
    assert_eq!(methods(&ours), *recorded["declares"].as_array().unwrap());
}
