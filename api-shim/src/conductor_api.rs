//! What may be asked of a conductor: one method per cast and call, the mirror of the conductor's handlers.
//!
//! Guarantee: `Ok` of a cast means that the broker has confirmed the message, in a queue that exists. It does not
//! mean that a conductor has accepted it; a handler that promises more waits for the row. `Ok` of a call is a
//! conductor's answer; it is waited for `[DEFAULT] rpc_response_timeout` long.

mod driver_call;

use std::sync::Arc;

use magnum_common::context::RequestContext;
use magnum_common::ids::{ClusterUuid, MessageId};
use magnum_common::model::{Cluster, ClusterTemplate, Federation, HealthStatus, NodeGroup, RebootType};
use magnum_config::Settings;
use magnum_objects::records::Certificate;
use magnum_objects::{self as objects, Received};
use magnum_rpc::{PublishError, Transport};
use magnum_rpc_client::{CallError, RpcClient};
use magnum_telemetry::field;
use serde_json::{Map, Value, json};

use crate::validation::actions::Resize;
use crate::validation::cluster::SENT_FIELDS;
use crate::validation::cluster::change::ClusterChange;
use crate::validation::cluster::create::NewCluster;
use crate::validation::node_group::create::NewNodeGroup;

/// A client of the conductors.
pub struct ConductorApi {
    rpc: RpcClient,
}

impl ConductorApi {
    /// A client that publishes through `transport`.
    pub fn new(transport: Arc<dyn Transport>, settings: &Settings) -> Self {
        Self {
            rpc: RpcClient::new(transport, settings),
        }
    }

    /// Asks for a new cluster.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn cluster_create(
        &self,
        context: &RequestContext,
        new: &NewCluster,
    ) -> Result<MessageId, PublishError> {
        self.cast(
            context,
            "cluster_create",
            json!({
                "cluster": objects::encode_changed(&new.cluster, SENT_FIELDS),
                "master_count": new.master_count,
                "node_count": new.node_count,
                "create_timeout": new.cluster.create_timeout,
            }),
        )
        .await
    }

    /// Asks for a change of a cluster. Counts and health are sent as they shall be, changed or not.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn cluster_update(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        change: &ClusterChange,
        rollback: bool,
    ) -> Result<MessageId, PublishError> {
        self.cast(
            context,
            "cluster_update",
            json!({
                "cluster": objects::encode(cluster),
                "node_count": change.node_count,
                "health_status": change.health_status.map(HealthStatus::as_str),
                "health_status_reason": change.health_status_reason,
                "rollback": rollback,
            }),
        )
        .await
    }

    /// Asks for the end of a cluster.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn cluster_delete(
        &self,
        context: &RequestContext,
        uuid: &ClusterUuid,
    ) -> Result<MessageId, PublishError> {
        self.cast(context, "cluster_delete", json!({"uuid": uuid})).await
    }

    /// Asks for another size of a node group.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn cluster_resize(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        wanted: &Resize,
        group: &NodeGroup,
    ) -> Result<MessageId, PublishError> {
        self.cast(
            context,
            "cluster_resize",
            json!({
                "cluster": objects::encode(cluster),
                "node_count": wanted.node_count,
                "nodes_to_remove": wanted.nodes_to_remove,
                "nodegroup": objects::encode(group),
            }),
        )
        .await
    }

    /// Has a cluster upgraded to another template, beginning with `group`. Returns when the driver has taken it.
    ///
    /// # Errors
    /// The request was not published, no reply came in time, or the reply is an exception: see [`CallError`].
    pub async fn cluster_upgrade(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        template: &ClusterTemplate,
        max_batch_size: i32,
        group: &NodeGroup,
    ) -> Result<(), CallError> {
        self.call(
            context,
            "cluster_upgrade",
            json!({
                "cluster": objects::encode(cluster),
                "cluster_template": objects::encode(template),
                "max_batch_size": max_batch_size,
                "nodegroup": objects::encode(group),
            }),
        )
        .await
        .map(drop)
    }

    /// Has nodes of a cluster built anew: those of `group`, or of all groups, and of those the ones that are named, if
    /// any is. Returns when a conductor has accepted it.
    ///
    /// # Errors
    /// The request was not published, no reply came in time, or the reply is an exception: see [`CallError`].
    pub async fn cluster_rebuild(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        group: Option<&NodeGroup>,
        nodes: &[String],
    ) -> Result<(), CallError> {
        let args = json!({
            "cluster": objects::encode(cluster),
            "nodegroup": group.map(objects::encode),
            "nodes": nodes,
        });
        self.call(context, "cluster_rebuild", args).await.map(drop)
    }

    /// Has nodes of a cluster restarted, chosen as for a rebuild. Returns when a conductor has accepted it.
    ///
    /// # Errors
    /// The request was not published, no reply came in time, or the reply is an exception: see [`CallError`].
    pub async fn cluster_reboot(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        how: RebootType,
        group: Option<&NodeGroup>,
        nodes: &[String],
    ) -> Result<(), CallError> {
        let args = json!({
            "cluster": objects::encode(cluster),
            "reboot_type": how.as_str(),
            "nodegroup": group.map(objects::encode),
            "nodes": nodes,
        });
        self.call(context, "cluster_reboot", args).await.map(drop)
    }

    /// The certificate of a CA of the cluster; `None` means the one of Kubernetes.
    ///
    /// # Errors
    /// The request was not published, no reply came in time, or the reply is an exception: see [`CallError`].
    pub async fn get_ca_certificate(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        kind: Option<&str>,
    ) -> Result<Certificate, CallError> {
        let args = json!({"cluster": objects::encode(cluster), "ca_cert_type": kind});
        self.certificate(context, "get_ca_certificate", args).await
    }

    /// Has a certificate signed. Only what is set of it travels.
    ///
    /// # Errors
    /// The request was not published, no reply came in time, or the reply is an exception: see [`CallError`].
    pub async fn sign_certificate(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        certificate: &Certificate,
    ) -> Result<Certificate, CallError> {
        let set = objects::changed_fields(&Certificate::default(), certificate);
        let certificate = objects::encode_changed(certificate, &set);
        let args = json!({"cluster": objects::encode(cluster), "certificate": certificate});
        self.certificate(context, "sign_certificate", args).await
    }

    async fn certificate(
        &self,
        context: &RequestContext,
        method: &str,
        args: Value,
    ) -> Result<Certificate, CallError> {
        let answer = self.call(context, method, args).await?;
        let read = Received::<Certificate>::decode(&answer).and_then(|received| received.model());
        read.map_err(|fault| CallError::BadReply {
            method: method.to_owned(),
            reason: fault.message,
        })
    }

    /// Has all certificates of a cluster made anew. Returns when the driver has taken them.
    ///
    /// # Errors
    /// The request was not published, no reply came in time, or the reply is an exception: see [`CallError`].
    pub async fn rotate_ca_certificate(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
    ) -> Result<(), CallError> {
        let args = json!({"cluster": objects::encode(cluster)});
        self.call(context, "rotate_ca_certificate", args).await.map(drop)
    }

    /// Has the credential of a cluster made anew. Returns when the driver has taken it.
    ///
    /// # Errors
    /// The request was not published, no reply came in time, or the reply is an exception: see [`CallError`].
    pub async fn credential_rotate(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
    ) -> Result<(), CallError> {
        let args = json!({"cluster": objects::encode(cluster)});
        self.call(context, "credential_rotate", args).await.map(drop)
    }

    /// Asks for a new node group.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn nodegroup_create(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        new: &NewNodeGroup,
    ) -> Result<MessageId, PublishError> {
        let group = objects::encode_changed(&new.group, &new.sent);
        self.cast(
            context,
            "nodegroup_create",
            json!({"cluster": objects::encode(cluster), "nodegroup": group}),
        )
        .await
    }

    /// Asks for a change of a node group: the group as it shall be, with what differs from `before` marked.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn nodegroup_update(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        before: &NodeGroup,
        after: &NodeGroup,
    ) -> Result<MessageId, PublishError> {
        let changed = objects::changed_fields(before, after);
        let group = objects::encode_with_changes(after, &changed);
        self.cast(
            context,
            "nodegroup_update",
            json!({"cluster": objects::encode(cluster), "nodegroup": group}),
        )
        .await
    }

    /// Asks for the end of a node group.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn nodegroup_delete(
        &self,
        context: &RequestContext,
        cluster: &Cluster,
        group: &NodeGroup,
    ) -> Result<MessageId, PublishError> {
        self.cast(
            context,
            "nodegroup_delete",
            json!({"cluster": objects::encode(cluster), "nodegroup": objects::encode(group)}),
        )
        .await
    }

    /// Asks for a change of a federation: the federation as it shall be, with what differs from `before` marked.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn federation_update(
        &self,
        context: &RequestContext,
        before: &Federation,
        after: &Federation,
        rollback: bool,
    ) -> Result<MessageId, PublishError> {
        let changed = objects::changed_fields(before, after);
        let federation = objects::encode_with_changes(after, &changed);
        let args = json!({"federation": federation, "rollback": rollback});
        self.cast(context, "federation_update", args).await
    }

    /// Asks for the end of a federation.
    ///
    /// # Errors
    /// The broker has not confirmed the message: see [`PublishError`].
    pub async fn federation_delete(
        &self,
        context: &RequestContext,
        uuid: &str,
    ) -> Result<MessageId, PublishError> {
        self.cast(context, "federation_delete", json!({"uuid": uuid}))
            .await
    }

    async fn cast(
        &self,
        context: &RequestContext,
        method: &str,
        args: Value,
    ) -> Result<MessageId, PublishError> {
        // The request's other lines name the cluster from here on.
        tracing::Span::current().record(field::CLUSTER, cluster_of(method, &args));
        let id = self.rpc.cast(context, method, map_of(args)).await?;
        tracing::info!({ field::RPC_METHOD } = method, { field::MESSAGE } = %id, "handed to the conductors");
        Ok(id)
    }

    async fn call(&self, context: &RequestContext, method: &str, args: Value) -> Result<Value, CallError> {
        let answer = self.rpc.call(context, method, map_of(args)).await?;
        tracing::info!({ field::RPC_METHOD } = method, "answered by a conductor");
        Ok(answer)
    }
}

/// The cluster that a request is about.
fn cluster_of<'a>(method: &str, args: &'a Value) -> Option<&'a str> {
    let object = args.pointer("/cluster/magnum_object.data/uuid");
    let named = args.get("uuid").filter(|_| method.starts_with("cluster_"));
    object.or(named)?.as_str()
}

fn map_of(args: Value) -> Map<String, Value> {
    match args {
        Value::Object(args) => args,
        _ => Map::new(),
    }
}
