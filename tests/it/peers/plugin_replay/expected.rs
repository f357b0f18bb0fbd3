//! What is to come of a case: what the recording says the driver did, and what the conductor makes of it.
//!
//! The driver's own saves are in the rows as they are, except for the cluster's status and its reason, which are the end of
//! its call. What the conductor writes at the beginning and at the end of an operation is that of every driver.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::replay::Columns;
use super::case::Case;

/// Fields of a cluster that are written when a call has ended.
const HELD_BACK: &[&str] = &["status", "status_reason"];

/// An outcome, before it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    /// The rows before the request.
    pub before: Columns,
    pub state: String,
    pub reason: Value,
    pub steps: Vec<Value>,
    pub cloud_reads: BTreeMap<String, u64>,
    pub after: Columns,
}

impl Expected {
    /// Of a case that began with the rows `before`.
    pub fn of(case: &Case, before: &Columns) -> Self {
        let mut expected = Self {
            before: before.clone(),
            state: String::new(),
            reason: Value::Null,
            steps: case.effects().into_iter().map(without_counters).collect(),
            cloud_reads: serde_json::from_value(case.recorded["cloud_reads"].clone()).unwrap_or_default(),
            after: before.clone(),
        };
        match case.call() {
            "validate_master_size" | "validate_master_resize" => {
                expected.state = if case.is_done() { "allowed" } else { "refused" }.to_owned();
                expected.reason = if case.is_done() {
                    Value::Null
                } else {
                    json!(case.message())
                };
            }
            "update_cluster_status" => expected.see_status(case),
            "health" => expected.see_health(case),
            call => expected.change(case, &Action::of(call), before),
        }
        expected
    }

    /// The cluster's columns.
    pub fn cluster(&mut self) -> &mut Map<String, Value> {
        self.after.cluster.get_or_insert_default()
    }

    /// The rows when an operation has started, when its driver has saved what it saved, and when it has ended.
    fn change(&mut self, case: &Case, action: &Action, before: &Columns) {
        self.start(case, action);
        let mut held = self.save(case);
        let result = &case.recorded["result"];
        for (name, value) in result["unsaved_cluster"].as_object().into_iter().flatten() {
            if HELD_BACK.contains(&name.as_str()) {
                held.insert(name.clone(), value.clone());
            } else {
                self.cluster().insert(name.clone(), value.clone());
            }
        }
        let group = case.argument("node_group").as_str().unwrap_or_default();
        if let (Some(fields), Some(group)) = (
            result["unsaved_node_group"].as_object(),
            self.after.groups.get_mut(group),
        ) {
            group.extend(fields.clone());
        }
        match (case.is_done(), case.class()) {
            (true, _) => self.done(action, &held),
            (false, "transient") => {
                self.state = "retrying".to_owned();
                self.reason = json!(reason(case));
            }
            (false, "not_supported") if action.is_put_back => {
                self.state = "failed".to_owned();
                self.reason = json!(reason(case));
                self.after = before.clone();
            }
            (false, _) => {
                self.state = "failed".to_owned();
                self.reason = json!(reason(case));
                self.fail(case, action, before);
            }
        }
    }

    fn start(&mut self, case: &Case, action: &Action) {
        if let Some(status) = action.cluster {
            self.cluster()
                .insert("status".to_owned(), json!(format!("{status}_IN_PROGRESS")));
        }
        for group in self.after.groups.values_mut().filter(|_| action.all_groups) {
            group.insert("status".to_owned(), json!("DELETE_IN_PROGRESS"));
        }
        let name = case.argument("node_group").as_str();
        if let Some(group) = name.and_then(|name| self.after.groups.get_mut(name)) {
            if let Some(status) = action.group {
                group.insert("status".to_owned(), json!(format!("{status}_IN_PROGRESS")));
            }
        } else if let Some(name) = name.filter(|_| case.call() == "create_nodegroup") {
            self.after.groups.insert(name.to_owned(), new_group(case, name));
        }
        let given = |name: &str| {
            let mut groups = case.given()["node_groups"].as_array().into_iter().flatten();
            groups
                .find(|group| group["name"] == name)
                .cloned()
                .unwrap_or_default()
        };
        match case.call() {
            "resize_cluster" => {
                let group = self.after.groups.get_mut(name.unwrap_or_default());
                if let Some(group) = group {
                    group.insert("node_count".to_owned(), case.argument("node_count").clone());
                }
            }
            "update_cluster" => {
                if let Some(group) = self.after.groups.get_mut("default-worker") {
                    group.insert(
                        "node_count".to_owned(),
                        given("default-worker")["node_count"].clone(),
                    );
                }
            }
            "update_nodegroup" => {
                let name = name.unwrap_or_default();
                if let Some(group) = self.after.groups.get_mut(name) {
                    for bound in ["min_node_count", "max_node_count"] {
                        group.insert(bound.to_owned(), given(name)[bound].clone());
                    }
                }
            }
            _ => {}
        }
    }

    /// Applies the driver's saves; returns what is held back.
    fn save(&mut self, case: &Case) -> Map<String, Value> {
        let mut held = Map::new();
        for save in case.saves() {
            let fields = save["fields"].as_object().cloned().unwrap_or_default();
            let of = save["of"].as_str().unwrap_or_default();
            if save["class"] == "Cluster" {
                let (later, now): (Map<_, _>, Map<_, _>) = fields
                    .into_iter()
                    .partition(|(name, _)| HELD_BACK.contains(&name.as_str()));
                held.extend(later);
                self.cluster().extend(now);
            } else if fields.contains_key("__destroyed__") {
                self.after.groups.remove(of);
            } else if let Some(group) = self.after.groups.get_mut(of) {
                group.extend(fields);
            }
        }
        held
    }

    fn done(&mut self, action: &Action, held: &Map<String, Value>) {
        let is_over = match held.get("status") {
            Some(status) => !status.as_str().unwrap_or_default().ends_with("_IN_PROGRESS"),
            None => action.cluster.is_none(),
        };
        self.state = if is_over { "succeeded" } else { "observing" }.to_owned();
        if action.cluster.is_none() {
            self.cluster().extend(held.clone());
        }
        let stack = self.cluster()["stack_id"].clone();
        for group in self.after.groups.values_mut() {
            if group["stack_id"].is_null() {
                group.insert("stack_id".to_owned(), stack.clone());
            }
        }
    }

    fn fail(&mut self, case: &Case, action: &Action, before: &Columns) {
        let Some(cluster) = action.cluster else { return };
        let reason = self.reason.clone();
        self.cluster()
            .insert("status".to_owned(), json!(format!("{cluster}_FAILED")));
        self.cluster().insert("status_reason".to_owned(), reason.clone());
        self.end_groups(cluster, "FAILED", &reason);
        let name = case.argument("node_group").as_str().unwrap_or_default();
        if case.call() == "delete_nodegroup"
            && let Some(group) = self.after.groups.get_mut(name)
        {
            group.insert("status".to_owned(), json!("DELETE_FAILED"));
            group.insert("status_reason".to_owned(), reason);
        }
        // A count that the cluster does not have.
        let resized = match case.call() {
            "resize_cluster" => name,
            "update_cluster" => "default-worker",
            _ => return,
        };
        if let (Some(after), Some(before)) = (self.after.groups.get_mut(resized), before.groups.get(resized))
        {
            after.insert("node_count".to_owned(), before["node_count"].clone());
        }
    }

    /// Groups that are in progress for the cluster end with it.
    fn end_groups(&mut self, cluster: &str, outcome: &str, reason: &Value) {
        let actions: &[&str] = match cluster {
            "CREATE" => &["CREATE"],
            "DELETE" => &["DELETE"],
            _ => &["UPDATE", "CREATE"],
        };
        for group in self.after.groups.values_mut() {
            for action in actions {
                if group["status"] == format!("{action}_IN_PROGRESS") {
                    group.insert("status".to_owned(), json!(format!("{action}_{outcome}")));
                    group.insert("status_reason".to_owned(), reason.clone());
                }
            }
        }
    }

    /// A look at the status: the recording has the rows. A cluster that is gone has none.
    fn see_status(&mut self, case: &Case) {
        let recorded = &case.recorded["rows_after"];
        let groups = recorded["node_groups"].as_object().cloned().unwrap_or_default();
        self.after.groups.retain(|name, _| groups.contains_key(name));
        for (name, group) in &mut self.after.groups {
            for column in ["status", "status_reason", "node_count"] {
                group.insert(column.to_owned(), groups[name][column].clone());
            }
        }
        let cluster = self.cluster();
        for column in ["status", "status_reason", "api_address", "coe_version"] {
            cluster.insert(column.to_owned(), recorded["cluster"][column].clone());
        }
        if recorded["cluster"]["status"] == "DELETE_COMPLETE" {
            self.after = Columns::default();
        }
    }

    /// A look at the health: what the monitor found is in the row. One that fails leaves it as it was.
    fn see_health(&mut self, case: &Case) {
        self.save(case);
        let found = &case.recorded["result"]["value"];
        if case.is_done() {
            let cluster = self.cluster();
            for column in ["health_status", "health_status_reason"] {
                cluster.insert(column.to_owned(), found[column].clone());
            }
        }
    }
}

/// What an operation does to statuses.
struct Action {
    /// The cluster's; none where it is left alone.
    cluster: Option<&'static str>,
    /// That of the group that it is about.
    group: Option<&'static str>,
    all_groups: bool,
    /// Whether what the driver does not support leaves everything as it was.
    is_put_back: bool,
}

impl Action {
    fn of(call: &str) -> Self {
        let (cluster, group) = match call {
            "create_cluster" => (Some("CREATE"), None),
            "resize_cluster" | "upgrade_cluster" | "update_nodegroup" => (Some("UPDATE"), Some("UPDATE")),
            "create_nodegroup" => (Some("UPDATE"), Some("CREATE")),
            "delete_nodegroup" => (Some("UPDATE"), Some("DELETE")),
            "delete_cluster" => (Some("DELETE"), None),
            "rotate_credential" => (None, None),
            _ => (Some("UPDATE"), None),
        };
        Self {
            cluster,
            group,
            all_groups: call == "delete_cluster",
            is_put_back: matches!(call, "upgrade_cluster" | "rotate_ca_certificate"),
        }
    }
}

/// A group that the request brings.
fn new_group(case: &Case, name: &str) -> Map<String, Value> {
    let mut groups = case.given()["node_groups"].as_array().into_iter().flatten();
    let given = groups
        .find(|group| group["name"] == name)
        .cloned()
        .unwrap_or_default();
    let columns = json!({
        "status": "CREATE_IN_PROGRESS", "status_reason": null, "stack_id": case.given()["cluster"]["stack_id"],
        "node_count": given["node_count"], "min_node_count": given["min_node_count"],
        "max_node_count": given["max_node_count"], "image_id": given["image_id"], "labels": given["labels"],
        "role": given["role"], "version": null, "node_addresses": [],
    });
    columns.as_object().cloned().unwrap_or_default()
}

/// The reason that users are told: drivers raise without a message, or with no more than a name.
fn reason(case: &Case) -> String {
    let message = case.message();
    if message.split_whitespace().count() > 1 {
        return message.to_owned();
    }
    let exception = case.recorded["result"]["exception"].as_str().unwrap_or_default();
    let class = exception.rsplit('.').next().unwrap_or_default();
    let text = format!("{class}: {message}");
    text.trim_end_matches([':', ' ']).to_owned()
}

/// Without the number that a cluster's API gives each version of an object: it counts what was before.
fn without_counters(mut step: Value) -> Value {
    if let Some(metadata) = step
        .pointer_mut("/kubernetes/body/metadata")
        .and_then(Value::as_object_mut)
    {
        metadata.remove("resourceVersion");
    }
    step
}
