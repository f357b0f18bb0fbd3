//! What a message asks for, once its arguments are known to be good.

use std::str::FromStr;

use magnum_common::error::Fault;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::{Cluster, HealthStatus, StringMap};
use magnum_common::objects;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use crate::workflows::OperationKind;

/// A request that is recorded as an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// `cluster_create`
    ClusterCreate(ClusterCreate),
    /// `cluster_update`
    ClusterUpdate(ClusterUpdate),
    /// `cluster_delete`
    ClusterDelete(ClusterUuid),
}

/// Arguments of `cluster_create`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterCreate {
    /// The new cluster: what the sender set, and the object's defaults.
    pub cluster: Box<Cluster>,
    /// Nodes of the default master group.
    pub master_count: i32,
    /// Nodes of the default worker group.
    pub node_count: i32,
    /// Minutes.
    pub create_timeout: Option<i32>,
}

/// Arguments of `cluster_update`.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterUpdate {
    /// Which cluster. Its other fields do not count: the row does.
    pub cluster: ClusterUuid,
    /// Nodes wanted in the default worker group; null leaves them.
    pub node_count: Option<i32>,
    /// The API always sends the current or the patched value, null included.
    pub health_status: Option<HealthStatus>,
    /// Likewise.
    pub health_status_reason: StringMap,
    /// Kept for the record; no driver uses it.
    pub rollback: bool,
}

impl Command {
    /// Reads the arguments of `method`. `None`: it is not a method that is recorded.
    pub fn decode(method: &str, args: Map<String, Value>) -> Option<Result<Self, Fault>> {
        let kind = OperationKind::from_str(method).ok()?;
        let args = Arguments::new(method, args);
        Some(match kind {
            OperationKind::ClusterCreate => cluster_create(args),
            OperationKind::ClusterUpdate => cluster_update(args),
            OperationKind::ClusterDelete => cluster_delete(args),
        })
    }

    /// The kind of operation it becomes.
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::ClusterCreate(_) => OperationKind::ClusterCreate,
            Self::ClusterUpdate(_) => OperationKind::ClusterUpdate,
            Self::ClusterDelete(_) => OperationKind::ClusterDelete,
        }
    }

    /// The cluster it is about.
    pub fn cluster(&self) -> &ClusterUuid {
        match self {
            Self::ClusterCreate(create) => &create.cluster.uuid,
            Self::ClusterUpdate(update) => &update.cluster,
            Self::ClusterDelete(uuid) => uuid,
        }
    }
}

fn cluster_create(mut args: Arguments<'_>) -> Result<Command, Fault> {
    let cluster = objects::cluster::decode(&args.value("cluster")?)?;
    let command = Command::ClusterCreate(ClusterCreate {
        // Without a uuid a redelivery would make a second cluster: the sender has to give it.
        cluster: {
            cluster.uuid()?;
            Box::new(cluster.created()?)
        },
        master_count: args.integer("master_count")?,
        node_count: args.integer("node_count")?,
        create_timeout: args.integer_or_null("create_timeout")?,
    });
    args.finish()?;
    Ok(command)
}

fn cluster_update(mut args: Arguments<'_>) -> Result<Command, Fault> {
    let command = Command::ClusterUpdate(ClusterUpdate {
        cluster: objects::cluster::decode(&args.value("cluster")?)?.uuid()?,
        node_count: args.integer_or_null("node_count")?,
        health_status: args
            .text_or_null("health_status")?
            .map(|text| {
                text.parse().map_err(|_unknown| {
                    Fault::new(
                        magnum_common::error::Exception::ValueError,
                        format!("Field value {text} is invalid for 'health_status'; it is one of HEALTHY, UNHEALTHY, UNKNOWN"),
                    )
                })
            })
            .transpose()?,
        health_status_reason: args
            .strings_or_null("health_status_reason")?
            .unwrap_or_default()
            .into_iter()
            .collect(),
        rollback: args.flag("rollback", false)?,
    });
    args.finish()?;
    Ok(command)
}

fn cluster_delete(mut args: Arguments<'_>) -> Result<Command, Fault> {
    let uuid = args.text("uuid")?;
    args.finish()?;
    Ok(Command::ClusterDelete(ClusterUuid::new(uuid)))
}
