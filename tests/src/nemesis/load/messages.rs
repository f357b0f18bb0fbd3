//! What tenants ask by RPC, as an API of theirs would: calls, casts, one cast twice, and messages that nobody understands.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::checker::history::Heard;
use crate::rabbitmq::Vhost;
use crate::raw_rpc::{self, RawRpc};

/// Publishing, and its confirmation.
const PUBLISH_WITHIN: Duration = Duration::from_secs(10);
/// A caller's patience.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// One sender. Its connection is made anew when it has failed.
pub(super) struct Messages<'a> {
    vhost: &'a Vhost,
    rpc: Option<RawRpc>,
}

impl<'a> Messages<'a> {
    /// A sender that has no connection yet.
    pub(super) fn new(vhost: &'a Vhost) -> Self {
        Self { vhost, rpc: None }
    }

    /// Sends it once.
    pub(super) async fn cast(&mut self, message: &Value) -> Heard {
        self.send(message, 1).await
    }

    /// Sends it two times.
    pub(super) async fn cast_twice(&mut self, message: &Value) -> Heard {
        self.send(message, 2).await
    }

    async fn send(&mut self, message: &Value, times: usize) -> Heard {
        let mut heard = Heard::Nothing;
        for _ in 0..times {
            let Some(rpc) = self.connected().await else { break };
            match tokio::time::timeout(PUBLISH_WITHIN, rpc.cast(message)).await {
                Ok(Ok(())) => heard = Heard::Confirmed,
                Ok(Err(_)) | Err(_) => self.rpc = None,
            }
        }
        heard
    }

    /// Sends it as a call and waits for the answer.
    pub(super) async fn call(&mut self, message: &Value) -> Heard {
        let Some(rpc) = self.connected().await else {
            return Heard::Nothing;
        };
        let asked = match tokio::time::timeout(PUBLISH_WITHIN, rpc.ask(message.clone())).await {
            Ok(Ok(asked)) => asked,
            Ok(Err(_)) | Err(_) => {
                self.rpc = None;
                return Heard::Nothing;
            }
        };
        match rpc.reply_to(&asked, ANSWER_WITHIN).await {
            Ok(reply) if reply["failure"].is_null() => Heard::Result,
            Ok(reply) => Heard::Failure(reply["failure"].to_string()),
            Err(_) => {
                self.rpc = None;
                Heard::Confirmed
            }
        }
    }

    async fn connected(&mut self) -> Option<&mut RawRpc> {
        if self.rpc.is_none() {
            let connect: Result<Result<RawRpc>, _> =
                tokio::time::timeout(PUBLISH_WITHIN, RawRpc::connect(self.vhost)).await;
            self.rpc = connect.ok()?.ok();
        }
        self.rpc.as_mut()
    }
}

fn request(tenant: &str, method: &str, args: Value) -> Value {
    let mut message = raw_rpc::request(method, args);
    message["_context_project_id"] = json!(tenant);
    message["_context_user_id"] = json!(tenant);
    message
}

fn cluster(tenant: &str, uuid: &str) -> Value {
    let mut object = raw_rpc::object(
        "Cluster",
        "1.24",
        json!({"uuid": uuid, "name": "c", "project_id": tenant, "user_id": tenant, "labels": {}}),
    );
    object["magnum_object.changes"] = json!([]);
    object
}

/// `nodegroup_create`
pub(super) fn create_group(tenant: &str, uuid: &str, name: &str) -> Value {
    let group = raw_rpc::object(
        "NodeGroup",
        "1.2",
        json!({
            "uuid": uuid::Uuid::new_v4().to_string(), "name": name, "cluster_id": uuid, "project_id": tenant,
            "node_count": 2, "role": "worker", "labels": {}, "node_addresses": [],
        }),
    );
    let args = json!({"cluster": cluster(tenant, uuid), "nodegroup": group});
    request(tenant, "nodegroup_create", args)
}

/// `cluster_update`
pub(super) fn update(tenant: &str, uuid: &str, nodes: usize) -> Value {
    let args = json!({
        "cluster": cluster(tenant, uuid), "node_count": nodes, "health_status": null, "health_status_reason": null,
    });
    request(tenant, "cluster_update", args)
}

/// `rotate_ca_certificate`
pub(super) fn rotate_ca(tenant: &str, uuid: &str) -> Value {
    request(
        tenant,
        "rotate_ca_certificate",
        json!({"cluster": cluster(tenant, uuid)}),
    )
}

/// A method that there is not.
pub(super) fn nonsense(tenant: &str) -> Value {
    request(tenant, "no_such_method", json!({}))
}
