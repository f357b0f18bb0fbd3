//! What a cluster uses, as Magnum told it: `magnum.cluster.metrics.update`.
//!
//! Source: `magnum/service/periodic.py` and `magnum/drivers/common/k8s_monitor.py` of Magnum's repository at the parent
//! of commit `6cdb367c` (2022-11-12, "Remove send_cluster_metrics", first in release 16.0.0). `_send_cluster_metrics`
//! emitted it for each cluster that was `CREATE_COMPLETE` or `UPDATE_COMPLETE` and had a monitor, at priority info, with
//! the payload `{"metrics": [{"name", "value", "unit"}], "user_id", "project_id", "resource_id"}`; the Kubernetes
//! monitor's metrics were `memory_util` and `cpu_util`, both with the unit `%`.
//!
//! Where this differs: the driver tells the figures, not a monitor that adds up what the pods of the namespace `default`
//! reserve; a figure that the driver cannot tell is left out; and clusters whose update is
//! going on, or has failed, are told of, too.

use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::RequestId;
use serde_json::{Value, json};

use crate::operations::notice::Used;

/// The event's type.
pub const EVENT: &str = "magnum.cluster.metrics.update";

/// The payload.
pub fn payload(told: &Used) -> Value {
    let figures = [
        ("memory_util", told.used.memory_percent),
        ("cpu_util", told.used.cpu_percent),
    ];
    let metrics: Vec<Value> = figures
        .into_iter()
        .filter_map(|(name, figure)| Some(json!({"name": name, "value": figure?, "unit": "%"})))
        .collect();
    json!({
        "metrics": metrics,
        "user_id": told.user_id,
        "project_id": told.project_id,
        "resource_id": told.cluster.as_str(),
    })
}

/// Nobody has asked.
pub fn context() -> RequestContext {
    RequestContext::for_caller(&Caller::default(), &RequestId::random())
}

#[cfg(test)]
mod tests {
    use magnum_driver_api::Utilisation;

    use super::*;

    #[test]
    fn the_payload_has_magnums_names_and_leaves_out_what_is_not_known() {
        let mut told = Used {
            cluster: "c".into(),
            project_id: Some("p".into()),
            user_id: None,
            used: Utilisation {
                cpu_percent: Some(12.5),
                memory_percent: Some(40.0),
                memory_used_bytes: Some(4096.0),
                ..Utilisation::default()
            },
        };
        assert_eq!(
            payload(&told),
            json!({
                "metrics": [
                    {"name": "memory_util", "value": 40.0, "unit": "%"},
                    {"name": "cpu_util", "value": 12.5, "unit": "%"},
                ],
                "user_id": null,
                "project_id": "p",
                "resource_id": "c",
            })
        );
        told.used.memory_percent = None;
        assert_eq!(payload(&told)["metrics"][0]["name"], "cpu_util");
    }
}
