//! The rows that the recorded package makes of a cluster's objects, ours are, too; and its health.

use std::path::Path;

use magnum_common::ids::{ClusterUuid, NodeGroupUuid, TemplateUuid};
use magnum_common::model::{HealthStatus, StringMap};

use super::*;
use crate::health;
use crate::watched::WATCHED;

const CONDITIONS: [&str; 4] = [
    "MachinesReady",
    "Ready",
    "EtcdClusterHealthy",
    "ControlPlaneComponentsHealthy",
];

/// Where ours is another on purpose: of a provider's two kinds of add-ons the package does not see one while the other is not
/// installed, and takes the cluster for finished.
const OTHERWISE: &str = "update/only-one-addon-kind-missing";

fn recorded() -> Vec<Value> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/plugins/capi-helm-status.json");
    let mut file: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    match file["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("no cases but {other}"),
    }
}

fn cluster(given: &Value) -> Cluster {
    Cluster {
        stack_id: given["stack_id"].as_str().map(str::to_owned),
        status: given["status"].as_str().map(|status| status.parse().unwrap()),
        ..Cluster::new(ClusterUuid::new("c"), TemplateUuid::new("t"))
    }
}

fn groups(given: &Value) -> Vec<NodeGroup> {
    let all = given["node_groups"].as_object().unwrap().iter();
    all.map(|(name, given)| NodeGroup {
        is_default: given["is_default"] == true,
        status: given["status"].as_str().map(|status| status.parse().unwrap()),
        ..NodeGroup::new(
            NodeGroupUuid::new(name.clone()),
            name,
            ClusterUuid::new("c"),
            "p",
            given["role"].as_str().unwrap(),
        )
    })
    .collect()
}

/// An object as it is read, and as it is kept of a watch.
const VIEWS: [fn(&Value) -> Value; 2] = [Value::clone, |object| {
    let watched = WATCHED.iter().find(|watched| object["kind"] == watched.kind.name);
    watched.map_or(Value::Null, |watched| (watched.kept)(object))
}];

/// The recorded objects have no names: a deployment is its group's by a label.
fn objects(given: &Value, view: fn(&Value) -> Value) -> Objects {
    let release = given["stack_id"].as_str().unwrap_or_default();
    let mut objects = Objects::default();
    for object in given["objects"].as_array().unwrap() {
        let label = |name: &str| object["metadata"]["labels"][name].as_str();
        let viewed = Arc::new(view(object));
        match object["kind"].as_str().unwrap() {
            "Cluster" => objects.cluster = Some(viewed),
            "OpenStackCluster" => objects.infrastructure = Some(viewed),
            "KubeadmControlPlane" => objects.control_plane = Some(viewed),
            "MachineDeployment" => {
                let group = label("topology.cluster.x-k8s.io/deployment-name").unwrap();
                let name = sanitized(&format!("{release}-{group}"));
                objects.machine_deployments.insert(name, viewed);
            }
            "Machine" => {
                if let Some(group) = label("capi.stackhpc.com/node-group") {
                    objects.with_machines.insert(group.to_owned());
                }
            }
            _ => objects.addons.push(viewed),
        }
    }
    objects
}

fn rows_after(mut cluster: Cluster, mut groups: Vec<NodeGroup>, seen: Seen) -> Value {
    match seen {
        Seen::Gone => cluster.status = Some(ClusterStatus::DeleteComplete),
        Seen::Changes(report) => {
            report.cluster.apply(&mut cluster);
            for changes in &report.node_groups {
                let mut of_changes = groups.iter_mut().filter(|group| group.uuid == changes.uuid);
                changes.apply(of_changes.next().unwrap());
            }
        }
    }
    groups.retain(|group| group.status != Some(ClusterStatus::DeleteComplete));
    let text = |status: Option<ClusterStatus>| status.map(ClusterStatus::as_str);
    let groups: serde_json::Map<String, Value> = groups
        .iter()
        .map(|group| (group.name.clone(), text(group.status).into()))
        .collect();
    serde_json::json!({
        "cluster": {
            "status": text(cluster.status),
            "api_address": cluster.api_address,
            "coe_version": cluster.coe_version,
        },
        "node_groups": groups,
    })
}

fn of_the_package(case: &Value) -> Value {
    let after = &case["rows_after"];
    let groups: serde_json::Map<String, Value> = after["node_groups"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, group)| (name.clone(), group["status"].clone()))
        .collect();
    let cluster = &after["cluster"];
    serde_json::json!({
        "cluster": {
            "status": cluster["status"],
            "api_address": cluster["api_address"],
            "coe_version": cluster["coe_version"],
        },
        "node_groups": groups,
    })
}

#[test]
fn rows_become_what_the_package_was_recorded_to_make_of_them() {
    let mut compared = 0;
    let mut wrong = Vec::new();
    for case in recorded() {
        if case["call"] != "update_cluster_status" || case["result"]["outcome"] != "done" {
            continue;
        }
        compared += 1;
        let (given, name) = (&case["given"], &case["name"]);
        let package = of_the_package(&case);
        for view in VIEWS {
            let (cluster, groups) = (cluster(given), groups(given));
            let objects = objects(given, view);
            let seen = look(&cluster, &groups, &objects, &CONDITIONS.map(str::to_owned));
            let ours = rows_after(cluster, groups, seen);
            if (ours == package) == (name == OTHERWISE) {
                wrong.push(format!("{name}:\n  package {package}\n  ours    {ours}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared > 80, "{compared}");
}

#[test]
fn health_is_what_the_package_was_recorded_to_say() {
    let mut compared = 0;
    for case in recorded() {
        let value = &case["result"]["value"];
        if case["call"] != "health" || value.is_null() {
            continue;
        }
        compared += 1;
        let given = &case["given"];
        let (cluster, groups) = (cluster(given), groups(given));
        let reasons: StringMap = serde_json::from_value(value["health_status_reason"].clone()).unwrap();
        let status: HealthStatus = value["health_status"].as_str().unwrap().parse().unwrap();
        for view in VIEWS {
            let ours = health::look(Named::of(&cluster).unwrap(), &groups, &objects(given, view));
            assert_eq!(
                (&ours.status, &ours.reasons),
                (&status, &reasons),
                "{}",
                case["name"]
            );
        }
    }
    assert!(compared > 5, "{compared}");
}
