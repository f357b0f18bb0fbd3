//! What must hold of a node group: its counts, and what its nodes may carry.

use magnum_common::error::{Exception, Fault};
use magnum_common::model::{ClusterStatus, NodeGroup, StringMap};
use serde_json::Value;

use crate::validation::python::dictionary;

fn refused(attribute: &str, group: &str, why: &str) -> Fault {
    Fault::new(
        Exception::NodeGroupInvalidInput,
        format!("{attribute} for {group} is invalid ({why})."),
    )
}

/// Whether the count lies within the bounds, and the bounds in order. A maximum of 0 is none.
///
/// # Errors
/// 409 that names the bound.
pub fn check_counts(group: &NodeGroup) -> Result<(), Fault> {
    let (minimum, count) = (group.min_node_count, group.node_count);
    if let Some(maximum) = group.max_node_count.filter(|maximum| *maximum != 0) {
        for (name, value) in [("min_node_count", minimum), ("node_count", count)] {
            if value > maximum {
                let why = format!("{name} ({value}) should be less or equal to max_node_count ({maximum})");
                return Err(refused("max_node_count", &group.name, &why));
            }
        }
    }
    if minimum > count {
        let why = format!("min_node_count ({minimum}) should be less or equal to node_count ({count})");
        return Err(refused("min_node_count", &group.name, &why));
    }
    Ok(())
}

/// Whether a group may be made to have `count` nodes. Not for masters: their sizes are the driver's to know.
///
/// # Errors
/// What the client is told: a 400 that names the field, where no other status is said.
pub fn check_resize(group: &NodeGroup, count: i32) -> Result<(), Fault> {
    let maximum = group.max_node_count;
    let fits = maximum.is_none_or(|maximum| maximum == 0 || count <= maximum);
    if fits && count >= group.min_node_count {
        return Ok(());
    }
    Err(Fault::new(
        Exception::NGResizeOutBounds,
        format!(
            "Resizing {} outside the allowed range: min_node_count = {}, max_node_count = {}",
            group.name,
            group.min_node_count,
            maximum.map_or_else(|| "None".to_owned(), |maximum| maximum.to_string())
        ),
    ))
}

/// Whether the group may be updated.
///
/// # Errors
/// 409 for a group that is busy or broken.
pub fn check_updatable(group: &NodeGroup) -> Result<(), Fault> {
    match group.status {
        None | Some(ClusterStatus::UpdateFailed | ClusterStatus::UpdateInProgress) => Ok(()),
        Some(status) if ClusterStatus::COMPLETE.contains(&status) => Ok(()),
        Some(status) => Err(Fault::new(
            Exception::Conflict,
            format!("Updating a nodegroup when its status is \"{status}\" is not supported."),
        )),
    }
}

/// Whether the group's nodes may carry these labels and taints.
///
/// # Errors
/// 409 that names the label or the taint.
pub fn check_nodes(group: &NodeGroup) -> Result<(), Fault> {
    if group.is_master() {
        for (attribute, is_empty) in [
            ("node_labels", group.node_labels.is_empty()),
            ("node_taints", group.node_taints.is_empty()),
        ] {
            if !is_empty {
                let why = format!("{attribute} may not be set on master nodegroups");
                return Err(refused(attribute, &group.name, &why));
            }
        }
    }
    check_labels(&group.name, &group.node_labels)?;
    check_taints(&group.name, &group.node_taints)
}

/// Prefixes that a kubelet may give itself labels of, although they are Kubernetes' own.
const ALLOWED_PREFIXES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];
/// The same for whole labels.
const ALLOWED_LABELS: [&str; 12] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "node.kubernetes.io/windows-build",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// A kubelet that is configured with a label of a reserved prefix does not start.
fn check_labels(group: &str, labels: &StringMap) -> Result<(), Fault> {
    let allowed = |key: &str| {
        let Some((prefix, _)) = key.split_once('/') else {
            return true;
        };
        let reserved = ["kubernetes.io", "k8s.io"].iter().any(|own| {
            prefix
                .strip_suffix(own)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        !reserved || ALLOWED_PREFIXES.contains(&prefix) || ALLOWED_LABELS.contains(&key)
    };
    let Some(key) = labels.keys().find(|key| !allowed(key)) else {
        return Ok(());
    };
    let why = format!(
        "node label '{key}' is in a restricted Kubernetes namespace; the kubelet will refuse to start. Labels in \
         the kubernetes.io/ and k8s.io/ namespaces must use one of the allowed prefixes ({}) or be one of the \
         allowed labels ({}).",
        ALLOWED_PREFIXES.join(", "),
        ALLOWED_LABELS.join(", ")
    );
    Err(refused("node_labels", group, &why))
}

/// Taints as they are kept: a value that is null is none.
pub fn kept_taints(given: &[Value]) -> Vec<Value> {
    let mut taints = given.to_vec();
    for taint in taints.iter_mut().filter_map(Value::as_object_mut) {
        if taint.get("value").is_some_and(Value::is_null) {
            taint.remove("value");
        }
    }
    taints
}

const TAINT_KEYS: [&str; 3] = ["key", "value", "effect"];
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

fn check_taints(group: &str, taints: &[Value]) -> Result<(), Fault> {
    for (index, taint) in taints.iter().enumerate() {
        let at = format!("node_taints[{index}]");
        let refused = |why: &str| refused("node_taints", group, &format!("{at}{why}"));
        let Some(taint) = dictionary(taint) else {
            return Err(refused(" must be an object with key, effect and optional value"));
        };
        let mut unknown: Vec<&str> = taint.keys().map(String::as_str).collect();
        unknown.retain(|key| !TAINT_KEYS.contains(key));
        if !unknown.is_empty() {
            unknown.sort_unstable();
            return Err(refused(&format!(
                " contains unrecognised field(s) {}; allowed fields are {}",
                unknown.join(", "),
                TAINT_KEYS.join(", ")
            )));
        }
        let text = |key: &str| taint.get(key).and_then(Value::as_str).unwrap_or_default();
        if text("key").is_empty() {
            return Err(refused(".key is required"));
        }
        if !EFFECTS.contains(&text("effect")) {
            return Err(refused(&format!(".effect must be one of {}", EFFECTS.join(", "))));
        }
        if taint.get("value").is_some_and(|value| !value.is_string()) {
            return Err(refused(".value must be a text"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn group(minimum: i32, count: i32, maximum: Option<i32>) -> NodeGroup {
        let mut group = NodeGroup::new("g".into(), "pool", "c".into(), "p", "worker");
        (group.min_node_count, group.node_count, group.max_node_count) = (minimum, count, maximum);
        group
    }

    #[test]
    fn counts_are_in_order_and_a_maximum_of_zero_is_none() {
        for (minimum, count, maximum) in [(0, 0, None), (1, 1, Some(1)), (0, 9, Some(0)), (2, 3, Some(4))] {
            assert_eq!(check_counts(&group(minimum, count, maximum)), Ok(()));
        }
        let told = |minimum, count, maximum| {
            let fault = check_counts(&group(minimum, count, maximum)).unwrap_err();
            assert_eq!(fault.code(), 409);
            fault.message
        };
        assert_eq!(
            told(3, 3, Some(2)),
            "max_node_count for pool is invalid (min_node_count (3) should be less or equal to max_node_count (2))."
        );
        assert!(told(0, 3, Some(2)).contains("node_count (3) should be less or equal to max_node_count (2)"));
        assert!(told(2, 1, None).contains("min_node_count (2) should be less or equal to node_count (1)"));
    }

    #[test]
    fn a_resize_stays_within_the_bounds() {
        assert_eq!(check_resize(&group(1, 1, Some(5)), 5), Ok(()));
        assert_eq!(check_resize(&group(0, 1, Some(0)), 9), Ok(()));
        for count in [0, 6] {
            assert_eq!(
                check_resize(&group(1, 1, Some(5)), count).unwrap_err().message,
                "Resizing pool outside the allowed range: min_node_count = 1, max_node_count = 5"
            );
        }
        let fault = check_resize(&group(1, 1, None), 0).unwrap_err();
        assert!(
            fault.message.ends_with("max_node_count = None"),
            "{}",
            fault.message
        );
    }

    #[test]
    fn only_labels_that_a_kubelet_may_set_are_taken() {
        let check = |key: &str| {
            let mut group = group(0, 1, None);
            group.node_labels.insert(key.into(), "v".into());
            check_nodes(&group)
        };
        for key in [
            "plain",
            "example.com/a",
            "notk8s.io/a",
            "node.kubernetes.io/any",
            "kubelet.kubernetes.io/any",
            "topology.kubernetes.io/zone",
        ] {
            assert_eq!(check(key), Ok(()), "{key}");
        }
        for key in [
            "kubernetes.io/a",
            "k8s.io/a",
            "x.k8s.io/a",
            "topology.kubernetes.io/a",
        ] {
            let fault = check(key).unwrap_err();
            assert_eq!(fault.code(), 409);
            assert!(fault.message.contains(&format!("'{key}'")), "{}", fault.message);
        }
    }

    #[test]
    fn a_taint_whose_value_is_null_has_none() {
        let given = [
            json!({"key": "k", "effect": "NoExecute", "value": null}),
            json!({"key": "k", "effect": "NoExecute", "value": ""}),
            json!(null),
        ];
        let kept = json!([
            {"key": "k", "effect": "NoExecute"}, {"key": "k", "effect": "NoExecute", "value": ""}, null]);
        assert_eq!(json!(kept_taints(&given)), kept);
    }

    #[test]
    fn taints_have_a_key_and_a_known_effect_and_nothing_else() {
        let check = |taint: Value| {
            let mut group = group(0, 1, None);
            group.node_taints = vec![json!({"key": "k", "effect": "NoExecute", "value": ""}), taint];
            check_nodes(&group).map_err(|fault| fault.message)
        };
        assert_eq!(check(json!({"key": "k", "effect": "PreferNoSchedule"})), Ok(()));
        for (taint, told) in [
            (
                json!({"effect": "NoExecute"}),
                "(node_taints[1].key is required).",
            ),
            (
                json!({"key": "", "effect": "NoExecute"}),
                "(node_taints[1].key is required).",
            ),
            (
                json!({"key": "k", "effect": "Never"}),
                "node_taints[1].effect must be one of NoSchedule, Prefer",
            ),
            (
                json!({"key": "k", "z": "1", "a": "2"}),
                "unrecognised field(s) a, z; allowed fields are key, value, effect",
            ),
            (json!("k"), "node_taints[1] must be an object"),
            (json!(null), "node_taints[1] must be an object"),
            (
                json!({"key": null, "effect": "NoExecute"}),
                "(node_taints[1].key is required).",
            ),
            (
                json!({"key": "k", "effect": "NoExecute", "value": null}),
                "(node_taints[1].value must be a text).",
            ),
        ] {
            let fault = check(taint).unwrap_err();
            assert!(fault.contains(told), "{fault}");
        }
    }

    #[test]
    fn masters_carry_nothing() {
        let mut master = group(0, 1, None);
        master.role = "master".into();
        assert_eq!(check_nodes(&master), Ok(()));
        master.node_taints = vec![json!({"key": "k", "effect": "NoExecute"})];
        assert!(
            check_nodes(&master)
                .unwrap_err()
                .message
                .contains("master nodegroups")
        );
    }

    #[test]
    fn a_group_is_updated_at_rest_or_after_an_update() {
        let with = |status| NodeGroup {
            status,
            ..group(0, 1, None)
        };
        for status in [
            None,
            Some(ClusterStatus::CreateComplete),
            Some(ClusterStatus::UpdateFailed),
        ] {
            assert_eq!(check_updatable(&with(status)), Ok(()));
        }
        for status in [ClusterStatus::CreateInProgress, ClusterStatus::DeleteFailed] {
            assert_eq!(check_updatable(&with(Some(status))).unwrap_err().code(), 409);
        }
    }
}
