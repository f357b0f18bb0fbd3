//! What a patch may change of a node group: its bounds, and what its nodes carry.

use magnum_common::error::Fault;
use magnum_common::model::NodeGroup;
use serde_json::{Map, Value, json};

use super::{FIELDS, PATCH_RULES, rules};
use crate::microversion::Version;
use crate::validation::body::check;
use crate::validation::labels;
use crate::validation::patch::{Patch, apply};

/// The attributes that can change, in the order of the object.
const CHANGEABLE: [&str; 4] = ["max_node_count", "min_node_count", "node_labels", "node_taints"];

/// The group as a patch makes it. The patch sees what a client of this version sees. What it removes gets its
/// default.
///
/// # Errors
/// 400 that names the field that the patch makes wrong; those of [`rules::check_counts`] and [`rules::check_nodes`].
pub fn change(patch: &Patch, group: &NodeGroup, version: Version) -> Result<NodeGroup, Fault> {
    let before = document(group, version);
    let mut patched = apply(patch, before.clone(), &PATCH_RULES)?;
    for (name, default) in before.keys().zip(defaults()) {
        patched.entry(name).or_insert(default);
    }
    check(&mut patched, &before, FIELDS)?;
    let number = |name: &str| {
        let number = patched.get(name).and_then(Value::as_i64);
        number.and_then(|number| i32::try_from(number).ok())
    };
    let mut after = group.clone();
    after.max_node_count = number("max_node_count");
    after.min_node_count = number("min_node_count").unwrap_or(0);
    if version >= Version::NODE_LABELS {
        after.node_labels = patched
            .get("node_labels")
            .and_then(Value::as_object)
            .map(labels::stored)
            .unwrap_or_default();
        after.node_taints = patched
            .get("node_taints")
            .and_then(Value::as_array)
            .map(|taints| rules::kept_taints(taints))
            .unwrap_or_default();
    }
    rules::check_counts(&after)?;
    rules::check_nodes(&after)?;
    Ok(after)
}

fn document(group: &NodeGroup, version: Version) -> Map<String, Value> {
    let values = [
        json!(group.max_node_count),
        json!(group.min_node_count),
        json!(group.node_labels),
        json!(group.node_taints),
    ];
    let shown = if version >= Version::NODE_LABELS { 4 } else { 2 };
    let pairs = CHANGEABLE.iter().map(|name| (*name).to_owned()).zip(values);
    pairs.take(shown).collect()
}

fn defaults() -> [Value; 4] {
    [Value::Null, json!(0), json!({}), json!([])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::patch;

    fn changed(operations: &Value, version: Version) -> Result<NodeGroup, String> {
        let mut group = NodeGroup::new("g".into(), "pool", "c".into(), "p", "worker");
        (group.min_node_count, group.node_count, group.max_node_count) = (1, 2, Some(4));
        group.node_labels.insert("a".into(), "b".into());
        group.node_taints = vec![json!({"key": "k", "effect": "NoExecute"})];
        patch::read(operations, &PATCH_RULES)
            .and_then(|patch| change(&patch, &group, version))
            .map_err(|fault| fault.message)
    }

    fn one(op: &str, path: &str, value: &Value) -> Result<NodeGroup, String> {
        changed(&json!([{"op": op, "path": path, "value": value}]), Version::MAX)
    }

    #[test]
    fn bounds_labels_and_taints_change() {
        assert_eq!(
            one("replace", "/max_node_count", &json!(9))
                .unwrap()
                .max_node_count,
            Some(9)
        );
        assert_eq!(
            one("replace", "/min_node_count", &json!(2))
                .unwrap()
                .min_node_count,
            2
        );
        assert_eq!(
            one("add", "/node_labels/x.y~1z", &json!("1"))
                .unwrap()
                .node_labels
                .len(),
            2
        );
        for (value, stored) in [(json!(5), "5"), (json!(-0), "0"), (json!(true), "True")] {
            let labels = one("add", "/node_labels/zone", &value).unwrap().node_labels;
            assert_eq!(labels["zone"], stored);
        }
        let taints = json!([{"key": "t", "effect": "NoSchedule", "value": ""}]);
        for value in [
            taints.clone(),
            json!("[{'key': 't', 'effect': 'NoSchedule', 'value': ''}]"),
        ] {
            assert_eq!(
                json!(one("replace", "/node_taints", &value).unwrap().node_taints),
                taints
            );
        }
    }

    #[test]
    fn removed_attribute_gets_its_default() {
        let remove = |path: &str| changed(&json!([{"op": "remove", "path": path}]), Version::MAX).unwrap();
        assert_eq!(remove("/max_node_count").max_node_count, None);
        assert_eq!(remove("/min_node_count").min_node_count, 0);
        assert!(remove("/node_labels").node_labels.is_empty());
        assert!(remove("/node_taints").node_taints.is_empty());
    }

    #[test]
    fn nothing_else_changes() {
        for path in ["/node_count", "/name", "/labels/x", "/role"] {
            let told = one("replace", path, &json!("x")).unwrap_err();
            assert_eq!(
                told,
                format!("'{path}' is an internal attribute and can not be updated")
            );
        }
        assert!(
            one("replace", "/foo", &json!("x"))
                .unwrap_err()
                .contains("non-existent object 'foo'")
        );
    }

    #[test]
    fn the_rules_hold_afterwards() {
        assert!(
            one("replace", "/max_node_count", &json!(1))
                .unwrap_err()
                .contains("less or equal")
        );
        assert!(
            one("replace", "/min_node_count", &json!(3))
                .unwrap_err()
                .contains("less or equal")
        );
        assert!(
            one("replace", "/node_labels", &json!("{'k8s.io/a': 'b'}"))
                .unwrap_err()
                .contains("restricted")
        );
        assert!(
            one("replace", "/node_labels", &json!("{'a': 1}"))
                .unwrap_err()
                .contains("Expected '<class 'str'>'")
        );
        assert!(
            one("replace", "/node_taints", &json!("{}"))
                .unwrap_err()
                .contains("Wrong type")
        );
    }

    #[test]
    fn labels_and_taints_are_not_there_below_their_version() {
        let patch = json!([{"op": "replace", "path": "/node_labels", "value": "{}"}]);
        let told = changed(&patch, Version::NODE_GROUPS).unwrap_err();
        assert!(told.contains("non-existent object 'node_labels'"), "{told}");
        let patch = json!([{"op": "replace", "path": "/max_node_count", "value": 5}]);
        let after = changed(&patch, Version::NODE_GROUPS).unwrap();
        assert_eq!(
            (
                after.max_node_count,
                after.node_labels.len(),
                after.node_taints.len()
            ),
            (Some(5), 1, 1)
        );
    }
}
