//! The rows of a cluster as they are compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The rows: columns by name, groups by theirs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Columns {
    /// `None`: the row is gone.
    pub cluster: Option<Map<String, Value>>,
    pub groups: BTreeMap<String, Map<String, Value>>,
}

impl Columns {
    /// From JSON.
    pub fn of_json(value: &Value) -> Self {
        let groups = value["groups"].as_object().into_iter().flatten();
        Self {
            cluster: value["cluster"].as_object().cloned(),
            groups: groups
                .filter_map(|(name, group)| Some((name.clone(), group.as_object()?.clone())))
                .collect(),
        }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({"cluster": self.cluster, "groups": self.groups})
    }
}
