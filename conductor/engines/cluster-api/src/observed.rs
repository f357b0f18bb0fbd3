//! What the objects of a cluster say of it, as changes of Magnum's rows (reference drivers.md 4.6).
//!
//! Pure: the objects are read by whoever looks. A group that has failed does not fail its cluster, and nothing is ever given up here:
//! limits of time are the conductor's.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use magnum_common::model::{Action, Cluster, ClusterStatus, NodeGroup, Outcome};
use magnum_driver_api::{DriverReport, NodeGroupChanges};
use serde_json::Value;

use crate::names::{Named, sanitized};

/// A cluster's objects, as the management cluster has them.
#[derive(Debug, Clone, Default)]
pub struct Objects {
    /// Its `Cluster`.
    pub cluster: Option<Arc<Value>>,
    /// Its `OpenStackCluster`, which says something of its health alone.
    pub infrastructure: Option<Arc<Value>>,
    /// Its `KubeadmControlPlane`.
    pub control_plane: Option<Arc<Value>>,
    /// Its `MachineDeployment`s, by name.
    pub machine_deployments: HashMap<String, Arc<Value>>,
    /// Groups that have machines, by their name in labels.
    pub with_machines: HashSet<String>,
    /// Its add-ons.
    pub addons: Vec<Arc<Value>>,
}

/// What a look has found.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// The rows change, or nothing does.
    Changes(Box<DriverReport>),
    /// The cluster is gone that was to be deleted: its secrets and its credential are next.
    Gone,
}

/// How it is with the machines of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Machines {
    Missing,
    Pending,
    Ready,
    Failed,
}

/// The conditions of an object that are met.
fn met(object: &Value) -> HashSet<&str> {
    let conditions = object["status"]["conditions"].as_array();
    let met = conditions
        .into_iter()
        .flatten()
        .filter(|one| one["status"] == "True");
    met.filter_map(|one| one["type"].as_str()).collect()
}

/// Reads `objects`. `ready_when` are the conditions that a control plane has to meet.
pub fn look(cluster: &Cluster, groups: &[NodeGroup], objects: &Objects, ready_when: &[String]) -> Seen {
    let status = cluster.status;
    let Some(named) = Named::of(cluster) else {
        return nothing_made(status);
    };
    let Some(object) = &objects.cluster else {
        return nothing_made(status);
    };
    let mut report = DriverReport::default();
    let is_built = matches!(
        status,
        Some(ClusterStatus::CreateInProgress | ClusterStatus::UpdateInProgress)
    );
    if is_built {
        report.cluster.api_address = address(object).filter(|it| cluster.api_address.as_ref() != Some(it));
    }
    report.cluster.coe_version =
        version(objects.control_plane.as_deref()).filter(|it| cluster.coe_version.as_ref() != Some(it));
    let mut is_going_on = false;
    for group in groups {
        let machines = if group.is_master() {
            masters(objects.control_plane.as_deref(), ready_when)
        } else {
            workers(named, group, objects)
        };
        let after = group_status(group, machines);
        is_going_on |= after.is_some_and(|status| ClusterStatus::IN_PROGRESS.contains(&status));
        if after != group.status {
            let mut changes = NodeGroupChanges::of(group.uuid.clone());
            changes.status = after;
            report.node_groups.push(changes);
        }
    }
    if is_built && !is_going_on {
        let outcome = outcome(object, &objects.addons);
        let action = status.and_then(ClusterStatus::action);
        report.cluster.status = action
            .zip(outcome)
            .map(|(action, outcome)| ClusterStatus::of(action, outcome));
    }
    Seen::Changes(Box::new(report))
}

fn nothing_made(status: Option<ClusterStatus>) -> Seen {
    match status {
        Some(ClusterStatus::DeleteInProgress) => Seen::Gone,
        _ => Seen::Changes(Box::default()),
    }
}

/// Said as soon as it is known: a cluster that is never finished can be looked into.
fn address(cluster: &Value) -> Option<String> {
    let endpoint = &cluster["spec"]["controlPlaneEndpoint"];
    let (host, port) = (endpoint["host"].as_str()?, endpoint["port"].as_u64()?);
    Some(format!("https://{host}:{port}"))
}

fn version(control_plane: Option<&Value>) -> Option<String> {
    let object = control_plane?;
    let found = object["status"]["version"]
        .as_str()
        .or_else(|| object["spec"]["version"].as_str());
    found.map(str::to_owned)
}

/// Ready when all conditions are met and no machine of an older kind is left. A control plane never fails.
fn masters(object: Option<&Value>, ready_when: &[String]) -> Machines {
    let Some(object) = object else {
        return Machines::Missing;
    };
    let met = met(object);
    let (wanted, status) = (&object["spec"]["replicas"], &object["status"]);
    let counts = ["replicas", "updatedReplicas", "readyReplicas"];
    if ready_when
        .iter()
        .all(|condition| met.contains(condition.as_str()))
        && counts.iter().all(|count| status[*count] == *wanted)
    {
        Machines::Ready
    } else {
        Machines::Pending
    }
}

/// A deployment that is deleted is gone before its machines are.
fn workers(named: Named<'_>, group: &NodeGroup, objects: &Objects) -> Machines {
    match objects.machine_deployments.get(&named.machine_deployment(group)) {
        Some(object) => match object["status"]["phase"].as_str() {
            Some("Running") => Machines::Ready,
            Some("Failed" | "Unknown") => Machines::Failed,
            _ => Machines::Pending,
        },
        None if objects.with_machines.contains(&sanitized(&group.name)) => Machines::Pending,
        None => Machines::Missing,
    }
}

fn group_status(group: &NodeGroup, machines: Machines) -> Option<ClusterStatus> {
    let status = group.status?;
    let Some(action) = status.action() else {
        return Some(status);
    };
    Some(match (action, machines) {
        // The default groups go with their cluster.
        (Action::Delete, Machines::Missing) if !group.is_default => ClusterStatus::DeleteComplete,
        (Action::Create | Action::Update, Machines::Ready) => ClusterStatus::of(action, Outcome::Complete),
        (Action::Create | Action::Update, Machines::Failed) => ClusterStatus::of(action, Outcome::Failed),
        (Action::Create | Action::Update, Machines::Pending | Machines::Missing) | (Action::Delete, _) => {
            status
        }
    })
}

/// How a cluster ends whose groups have ended; `None` while it does not.
fn outcome(cluster: &Value, addons: &[Arc<Value>]) -> Option<Outcome> {
    let met = met(cluster);
    let needed = ["InfrastructureReady", "ControlPlaneReady", "Ready"];
    if !needed.iter().all(|condition| met.contains(condition)) {
        return None;
    }
    // In the order in which they are listed: the first that is not deployed decides.
    for addon in addons {
        match addon["status"]["phase"].as_str() {
            Some("Deployed") => {}
            Some("Failed" | "Unknown") => return Some(Outcome::Failed),
            _ => return None,
        }
    }
    Some(Outcome::Complete)
}

#[cfg(test)]
mod tests;
