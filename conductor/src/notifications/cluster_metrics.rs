//! The utilisation of a cluster as a notification of Magnum: `magnum.cluster.metrics.update`.
//!
//! Source: `magnum/service/periodic.py` and `magnum/drivers/common/k8s_monitor.py` of Magnum's repository at the parent
//! of commit `6cdb367c` (2022-11-12, "Remove send_cluster_metrics", first in release 16.0.0). `_send_cluster_metrics`
//! emitted it for each cluster that was `CREATE_COMPLETE` or `UPDATE_COMPLETE` and had a monitor, at priority info, with
//! the payload `{"metrics": [{"name", "value", "unit"}], "user_id", "project_id", "resource_id"}`; the Kubernetes
//! monitor's metrics were `memory_util` and `cpu_util`, both with the unit `%`.
//!
//! Where this differs: the figures are those of the driver, where Magnum added up the reservations of the pods in the
//! namespace `default`; a figure that the driver does not report is left out; and clusters whose update is in progress,
//! or has failed, have notifications too.

use magnum_common::context::{Caller, RequestContext};
use magnum_common::ids::RequestId;
use serde_json::{Value, json};

use crate::operations::notice::UtilisationNotice;

/// The type of the event.
pub const EVENT: &str = "magnum.cluster.metrics.update";

/// The payload.
pub fn payload(usage: &UtilisationNotice) -> Value {
    let figures = [
        ("memory_util", usage.utilisation.memory_percent),
        ("cpu_util", usage.utilisation.cpu_percent),
    ];
    let metrics: Vec<Value> = figures
        .into_iter()
        .filter_map(|(name, figure)| Some(json!({"name": name, "value": figure?, "unit": "%"})))
        .collect();
    json!({
        "metrics": metrics,
        "user_id": usage.user_id,
        "project_id": usage.project_id,
        "resource_id": usage.cluster.as_str(),
    })
}

/// The context of these notifications, which have no request and no caller.
pub fn context() -> RequestContext {
    RequestContext::for_caller(&Caller::default(), &RequestId::random())
}

#[cfg(test)]
mod tests {
    use magnum_driver_api::Utilisation;

    use super::*;

    #[test]
    fn payload_has_magnums_names_and_leaves_out_unknown_figures() {
        let mut usage = UtilisationNotice {
            cluster: "c".into(),
            project_id: Some("p".into()),
            user_id: None,
            utilisation: Utilisation {
                cpu_percent: Some(12.5),
                memory_percent: Some(40.0),
                memory_used_bytes: Some(4096.0),
                ..Utilisation::default()
            },
        };
        assert_eq!(
            payload(&usage),
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
        usage.utilisation.memory_percent = None;
        assert_eq!(payload(&usage)["metrics"][0]["name"], "cpu_util");
    }
}
