//! The payload of a notification: a CADF activity event with the cluster's data, key by key as Magnum writes it.
//!
//! Differs from Magnum: a refusal carries a second attachment, `refusal`, with its reason and exception class
//! (Magnum sends neither), and a refusal about a cluster that does not exist, or is not the
//! caller's to see, is notified too, without `cluster_data`.

use magnum_common::clock::utc_now;
use magnum_common::context::RequestContext;
use magnum_common::error::Fault;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{Cluster, NodeGroup, Timestamp};
use serde_json::{Map, Value, json};

use crate::operations::notice::{ClusterSnapshot, NoticeOutcome};
use crate::workflows::OperationKind;

const CLUSTER: &str = "service/magnum/cluster";

/// The event.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// The kind of operation that was requested.
    pub kind: OperationKind,
    /// Its outcome so far.
    pub outcome: NoticeOutcome,
    /// The cluster.
    pub cluster: &'a ClusterUuid,
    /// The rows of the cluster; `None` when it does not exist, or not for the caller.
    pub snapshot: Option<&'a ClusterSnapshot>,
    /// The context of the request.
    pub context: &'a RequestContext,
    /// The refusal, if there is one.
    pub refusal: Option<&'a Fault>,
}

const fn outcome(outcome: NoticeOutcome) -> &'static str {
    match outcome {
        NoticeOutcome::Pending => "pending",
        NoticeOutcome::Success => "success",
        NoticeOutcome::Failure => "failure",
    }
}

/// The payload.
pub fn payload(event: &Event<'_>) -> Value {
    let id = || uuid::Uuid::new_v4().to_string();
    let mut initiator = Map::new();
    initiator.insert("id".into(), json!(id()));
    initiator.insert("typeURI".into(), json!("service/security/account/user"));
    for (name, value) in [
        ("user_id", event.context.user_id()),
        ("project_id", event.context.project_id()),
    ] {
        if let Some(value) = value {
            initiator.insert(name.into(), json!(value));
        }
    }
    json!({
        "typeURI": "http://schemas.dmtf.org/cloud/audit/1.0/event",
        "eventType": "activity",
        "id": id(),
        "eventTime": utc_now().format("%Y-%m-%dT%H:%M:%S%.6f+0000").to_string(),
        "action": event.kind.description().notification,
        "outcome": outcome(event.outcome),
        "observer": {"id": id(), "typeURI": CLUSTER},
        "initiator": initiator,
        "target": target(event),
    })
}

fn target(event: &Event<'_>) -> Value {
    let mut target = Map::new();
    target.insert("id".into(), json!(event.cluster.as_str()));
    target.insert("typeURI".into(), json!(CLUSTER));
    let mut attachments = Vec::new();
    if let Some(ClusterSnapshot { cluster, node_groups }) = event.snapshot {
        if let Some(name) = &cluster.name {
            target.insert("name".into(), json!(name));
        }
        let content = cluster_data(cluster, node_groups);
        attachments.push(json!({"typeURI": CLUSTER, "content": content, "name": "cluster_data"}));
    }
    if let Some(refusal) = event.refusal {
        let content = json!({"reason": refusal.message, "exception": refusal.exception.name()});
        attachments.push(json!({"typeURI": CLUSTER, "content": content, "name": "refusal"}));
    }
    target.insert("attachments".into(), Value::Array(attachments));
    Value::Object(target)
}

fn cluster_data(cluster: &Cluster, groups: &[NodeGroup]) -> Value {
    let time = |time: &Option<Timestamp>| {
        time.as_ref()
            .map(|time| time.format("%Y-%m-%dT%H:%M:%S%.6f").to_string())
    };
    let of_role = |masters: bool| groups.iter().filter(move |group| group.is_master() == masters);
    let addresses =
        |masters| -> Vec<&String> { of_role(masters).flat_map(|group| &group.node_addresses).collect() };
    let nodes = |masters| -> i64 { of_role(masters).map(|group| i64::from(group.node_count)).sum() };
    json!({
        "status": cluster.status.map(|status| status.as_str()),
        "status_reason": cluster.status_reason,
        "project_id": cluster.project_id,
        "created_at": time(&cluster.created_at),
        "updated_at": time(&cluster.updated_at),
        "cluster_template_id": cluster.cluster_template_id.as_str(),
        "keypair": cluster.keypair,
        // The colon is Magnum's.
        "docker_volume_size:": cluster.docker_volume_size,
        "labels": cluster.labels,
        "master_flavor_id": cluster.master_flavor_id,
        "flavor_id": cluster.flavor_id,
        "stack_id": cluster.stack_id,
        "health_status": cluster.health_status.map(|health| health.as_str()),
        "create_timeout": cluster.create_timeout,
        "api_address": cluster.api_address,
        "discovery_url": cluster.discovery_url,
        "node_addresses": addresses(false),
        "master_addresses": addresses(true),
        "node_count": nodes(false),
        "master_count": nodes(true),
    })
}
