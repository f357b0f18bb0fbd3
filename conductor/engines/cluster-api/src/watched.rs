//! What the driver reads of objects, kept from watches: looks at clusters of which nothing has ended cost no request.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use magnum_common::model::NodeGroup;
use magnum_management_cluster::objects::{
    CLUSTER, CONTROL_PLANE, HELM_CHART_PROXY, HELM_RELEASE, Kind, MACHINE_DEPLOYMENT, MANIFESTS,
    OPENSTACK_CLUSTER,
};
use magnum_management_cluster::watch::{Watched, Watches};
use serde_json::{Value, json};

use crate::names::Named;
use crate::observed::Objects;

/// The label of add-ons that names their cluster.
pub const OF_CLUSTER: &str = "addons.stackhpc.com/cluster";

/// Machines are not among them: who waits for the last one of a group to go is about to end something, and reads them live.
pub const WATCHED: &[Watched] = &[
    by_name(CLUSTER, cluster),
    by_name(OPENSTACK_CLUSTER, infrastructure),
    by_name(CONTROL_PLANE, control_plane),
    by_name(MACHINE_DEPLOYMENT, machine_deployment),
    addon(HELM_RELEASE),
    addon(MANIFESTS),
    addon(HELM_CHART_PROXY),
];

const fn by_name(kind: Kind, kept: fn(&Value) -> Value) -> Watched {
    Watched {
        kind,
        may_be_missing: false,
        found_by: None,
        kept,
    }
}

const fn addon(kind: Kind) -> Watched {
    Watched {
        kind,
        may_be_missing: true,
        found_by: Some(OF_CLUSTER),
        kept: phase,
    }
}

fn conditions(object: &Value) -> Value {
    let all = object["status"]["conditions"].as_array();
    let kept = all
        .into_iter()
        .flatten()
        .map(|one| json!({"type": one["type"], "status": one["status"]}));
    kept.collect()
}

fn cluster(object: &Value) -> Value {
    json!({
        "spec": {"controlPlaneEndpoint": object["spec"]["controlPlaneEndpoint"]},
        "status": {"conditions": conditions(object)},
    })
}

fn infrastructure(object: &Value) -> Value {
    let status = &object["status"];
    json!({"status": {
        "ready": status["ready"],
        "failureReason": status["failureReason"],
        "failureMessage": status["failureMessage"],
    }})
}

fn control_plane(object: &Value) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    json!({
        "spec": {"replicas": spec["replicas"], "version": spec["version"]},
        "status": {
            "version": status["version"],
            "replicas": status["replicas"],
            "updatedReplicas": status["updatedReplicas"],
            "readyReplicas": status["readyReplicas"],
            "conditions": conditions(object),
        },
    })
}

fn machine_deployment(object: &Value) -> Value {
    json!({"status": {"phase": object["status"]["phase"], "conditions": conditions(object)}})
}

fn phase(object: &Value) -> Value {
    json!({"status": {"phase": object["status"]["phase"]}})
}

/// A cluster's objects as the watches know them, without machines. `None`: they do not know all of them.
pub fn objects(
    watches: &Watches,
    namespace: &str,
    named: Named<'_>,
    groups: &[NodeGroup],
) -> Option<Objects> {
    let one = |kind, name: &str| -> Option<Option<Arc<Value>>> {
        Some(watches.found(kind, namespace, name)?.into_iter().next())
    };
    let mut machine_deployments = HashMap::new();
    for group in groups.iter().filter(|group| !group.is_master()) {
        let name = named.machine_deployment(group);
        if let Some(object) = one(MACHINE_DEPLOYMENT, &name)? {
            machine_deployments.insert(name, object);
        }
    }
    let mut addons = Vec::new();
    for kind in [HELM_RELEASE, MANIFESTS, HELM_CHART_PROXY] {
        addons.extend(watches.found(kind, namespace, named.release)?);
    }
    Some(Objects {
        cluster: one(CLUSTER, named.release)?,
        infrastructure: one(OPENSTACK_CLUSTER, named.release)?,
        control_plane: one(CONTROL_PLANE, &named.control_plane())?,
        machine_deployments,
        with_machines: HashSet::new(),
        addons,
    })
}
