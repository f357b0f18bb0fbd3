//! A task as the call of a driver's method: which, with which arguments, as Magnum's conductor calls it (plugin-host.md,
//! section 6). Pure.

use magnum_common::context::RequestContext;
use magnum_common::error::Fault;
use magnum_common::ids::NodeGroupUuid;
use magnum_common::model::{ClusterStatus, NodeGroup};
use magnum_driver_api::{DriverCall, DriverError, Reason, Task};
use magnum_objects::{VersionedObject, WireModel, object_of};
use magnum_telemetry::trace::{self, TraceContext};
use serde_json::{Map, Value, json};

use super::messages::CallMessage;

/// Reads the status of a cluster that is in progress.
pub const STATUS: &str = "update_cluster_status";
/// Reads the health of a cluster.
pub const HEALTH: &str = "health";

/// Fields that a request for a change of a group may have changed. They are in the row by now; a driver may save them
/// again, and some do nothing else.
const CHANGED_IN_A_GROUP: &[&str] = &["max_node_count", "min_node_count"];

/// A method with what is sent besides the cluster and the context.
pub struct Method {
    /// Its name in messages.
    pub name: &'static str,
    node_group: Option<Value>,
    arguments: Map<String, Value>,
}

impl Method {
    /// One that needs nothing besides.
    pub fn plain(name: &'static str) -> Self {
        Self {
            name,
            node_group: None,
            arguments: Map::new(),
        }
    }

    /// The method for a call's task; objects in the versions of `manifest`.
    ///
    /// # Errors
    /// Not supported: Magnum's drivers know no such task. Permanent: the group is not there, or an object cannot be sent.
    pub fn of(call: &DriverCall<'_>, manifest: &Map<String, Value>) -> Result<Self, DriverError> {
        let group = |uuid: &NodeGroupUuid| {
            let mut groups = call.node_groups.iter();
            groups.find(|group| group.uuid == *uuid).ok_or_else(|| {
                DriverError::Permanent(Reason::open(Fault::node_group_not_found(uuid.as_str()).message))
            })
        };
        let of_group = |name, uuid, changed: &[&str]| -> Result<Self, DriverError> {
            Ok(Self {
                name,
                node_group: Some(object(group(uuid)?, changed, manifest)?),
                arguments: Map::new(),
            })
        };
        let mut method = match call.task {
            Task::Create => Self::plain("create_cluster"),
            Task::Update { .. } => Self::plain("update_cluster"),
            Task::Delete => Self::plain("delete_cluster"),
            Task::Resize { node_group, .. } => of_group("resize_cluster", node_group, &[])?,
            Task::Upgrade { node_group, .. } => of_group("upgrade_cluster", node_group, &[])?,
            Task::CreateNodeGroup(uuid) => of_group("create_nodegroup", uuid, &[])?,
            Task::UpdateNodeGroup(uuid) => of_group("update_nodegroup", uuid, CHANGED_IN_A_GROUP)?,
            Task::DeleteNodeGroup(uuid) => Self {
                node_group: Some(object(&deleted(group(uuid)?), &["status"], manifest)?),
                ..Self::plain("delete_nodegroup")
            },
            Task::RotateCa => Self::plain("rotate_ca_certificate"),
            Task::RotateCredential => Self::plain("rotate_credential"),
            Task::Rebuild(_) | Task::Reboot { .. } => {
                return Err(DriverError::NotSupported(Reason::open(format!(
                    "drivers of Magnum cannot {} nodes",
                    call.task.as_str()
                ))));
            }
        };
        method.arguments = arguments(call, manifest)?;
        Ok(method)
    }

    /// The message of a call for `cluster`, made in this attempt of its operation.
    pub fn message<'a>(
        &'a self,
        attempt: u32,
        driver: &'a str,
        context: Value,
        cluster: Value,
    ) -> CallMessage<'a> {
        let trace = trace::current();
        let headers = trace.iter().flat_map(TraceContext::headers);
        CallMessage {
            r#type: "call",
            id: 1,
            call: self.name,
            driver,
            attempt,
            more: false,
            context,
            cluster,
            node_group: self.node_group.clone(),
            trace: headers
                .map(|(name, value)| (name.to_owned(), json!(value)))
                .collect(),
            arguments: self.arguments.clone(),
        }
    }
}

fn deleted(group: &NodeGroup) -> NodeGroup {
    NodeGroup {
        status: Some(ClusterStatus::DeleteInProgress),
        ..group.clone()
    }
}

fn arguments(
    call: &DriverCall<'_>,
    manifest: &Map<String, Value>,
) -> Result<Map<String, Value>, DriverError> {
    let arguments = match call.task {
        Task::Create => json!({"create_timeout": call.cluster.create_timeout}),
        Task::Update { rollback } => json!({"rollback": rollback}),
        Task::Resize { node_group, remove } => {
            let mut groups = call.node_groups.iter();
            let group = groups.find(|group| group.uuid == *node_group);
            json!({"node_count": group.map(|group| group.node_count), "nodes_to_remove": remove})
        }
        Task::Upgrade {
            to, max_batch_size, ..
        } => json!({
            "new_template": object(to, &[], manifest)?,
            "max_batch_size": max_batch_size,
            "rollback": false,
        }),
        _ => Value::Null,
    };
    Ok(match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    })
}

/// A row as an object in a version that the library reads, with these fields marked as changed.
///
/// # Errors
/// Permanent: the library wants a version that is newer than ours.
pub fn object<M: WireModel>(
    model: &M,
    changed: &[&str],
    manifest: &Map<String, Value>,
) -> Result<Value, DriverError> {
    let object: VersionedObject = object_of(model, |_| true, changed);
    object.encode_for(manifest).map_err(|fault| {
        DriverError::Permanent(Reason::open(format!(
            "the library of the driver is too new: {fault}"
        )))
    })
}

/// The context of a request, as the host rebuilds it.
pub fn context(context: &RequestContext) -> Value {
    // A map of JSON values always serialises.
    serde_json::to_value(context).unwrap_or_default()
}

/// The context of a look: an administrator's.
pub fn admin_context() -> Value {
    json!({"admin": true})
}
