//! What the objects of a cluster say of its health (reference drivers.md 4.8).

use magnum_common::model::{HealthStatus, NodeGroup, StringMap};
use magnum_driver_api::HealthReport;
use serde_json::Value;

use crate::names::Named;
use crate::observed::Objects;

const READY: &str = "Ready";

/// Four reasons, each `Ready` or what is waited for. Any condition that is not met counts, also one that is met while something goes
/// on.
pub fn look(named: Named<'_>, groups: &[NodeGroup], objects: &Objects) -> HealthReport {
    let of = |object: Option<&Value>, missing: &str| match object {
        None => missing.to_owned(),
        Some(object) => {
            waits_for(object).map_or_else(|| READY.to_owned(), |unmet| format!("Waiting on {unmet}"))
        }
    };
    let reasons: StringMap = [
        (
            "cluster",
            of(objects.cluster.as_deref(), "Cluster resource not found."),
        ),
        (
            "infrastructure",
            infrastructure(objects.infrastructure.as_deref()),
        ),
        (
            "controlplane",
            of(
                objects.control_plane.as_deref(),
                "Control plane resource not found.",
            ),
        ),
        ("nodegroup", node_groups(named, groups, objects)),
    ]
    .map(|(part, reason)| (part.to_owned(), reason))
    .into_iter()
    .collect();
    let is_good = reasons.values().all(|reason| reason == READY);
    let status = if is_good {
        HealthStatus::Healthy
    } else {
        HealthStatus::Unhealthy
    };
    HealthReport { status, reasons }
}

/// The conditions that are not met, in the form of a list of Python's, which is what clients know.
fn waits_for(object: &Value) -> Option<String> {
    let conditions = object["status"]["conditions"].as_array();
    let unmet = conditions
        .into_iter()
        .flatten()
        .filter(|one| one["status"] != "True");
    let named: Vec<String> = unmet
        .map(|one| format!("'{}'", one["type"].as_str().unwrap_or_default()))
        .collect();
    (!named.is_empty()).then(|| format!("[{}]", named.join(", ")))
}

fn infrastructure(object: Option<&Value>) -> String {
    let Some(object) = object else {
        return "Infrastructure resource not found.".to_owned();
    };
    let status = &object["status"];
    match status["failureReason"]
        .as_str()
        .filter(|reason| !reason.is_empty())
    {
        Some(reason) => format!(
            "{reason}: {}",
            status["failureMessage"].as_str().unwrap_or_default()
        ),
        None if status["ready"] == true => READY.to_owned(),
        None => "Infrastructure not ready.".to_owned(),
    }
}

fn node_groups(named: Named<'_>, groups: &[NodeGroup], objects: &Objects) -> String {
    let workers = groups.iter().filter(|group| !group.is_master());
    let reasons: Vec<String> = workers
        .filter_map(|group| {
            let name = &group.name;
            match objects.machine_deployments.get(&named.machine_deployment(group)) {
                None => Some(format!("{name} resource not found.")),
                Some(object) => waits_for(object).map(|unmet| format!("{name} waiting on {unmet}")),
            }
        })
        .collect();
    if reasons.is_empty() {
        READY.to_owned()
    } else {
        reasons.join(",")
    }
}
