//! What may be asked of a conductor: one method per cast, the mirror of the conductor's handlers.
//!
//! Guarantee: `Ok` means that the broker has confirmed the message, in a queue that exists. It does not mean
//! that a conductor has accepted it; a handler that promises more waits for the row.

use std::sync::Arc;

use magnum_common::config::Settings;
use magnum_common::context::RequestContext;
use magnum_common::ids::{ClusterUuid, MessageId};
use magnum_common::model::{Cluster, HealthStatus};
use magnum_common::objects;
use magnum_common::rpc::{PublishError, RpcClient, Transport};
use serde_json::{Map, Value, json};

use crate::validation::cluster::SENT_FIELDS;
use crate::validation::cluster::change::ClusterChange;
use crate::validation::cluster::create::NewCluster;

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
    pub async fn cluster_delete(
        &self,
        context: &RequestContext,
        uuid: &ClusterUuid,
    ) -> Result<MessageId, PublishError> {
        self.cast(context, "cluster_delete", json!({"uuid": uuid})).await
    }

    async fn cast(
        &self,
        context: &RequestContext,
        method: &str,
        args: Value,
    ) -> Result<MessageId, PublishError> {
        let args = match args {
            Value::Object(args) => args,
            _ => Map::new(),
        };
        let id = self.rpc.cast(context, method, args).await?;
        tracing::info!(rpc.method = method, message.id = %id, "handed to the conductors");
        Ok(id)
    }
}
