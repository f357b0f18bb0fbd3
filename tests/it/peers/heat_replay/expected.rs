//! What is to come of a case: what the recording says the driver did, and what the conductor makes of it.
//!
//! What the driver has saved is in the rows; what it has set and not saved is written when its call has ended. What the
//! conductor writes at the beginning and at the end of an operation is that of every driver.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::super::replay::Columns;
use super::case::Case;
use super::fixtures::trustee;

/// What Heat may answer another time.
const TRANSIENT: &[&str] = &[
    "HTTPInternalServerError",
    "HTTPBadGateway",
    "HTTPServiceUnavailable",
];

/// An outcome, before it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    pub state: String,
    pub reason: Value,
    pub calls: Vec<Value>,
    /// The rows as they are given.
    pub given: Columns,
    pub after: Columns,
}

impl Expected {
    /// Of a case that begins with the rows `given`.
    pub fn of(case: &Case, given: &Columns) -> Result<Self> {
        let mut expected = Self {
            state: String::new(),
            reason: Value::Null,
            calls: case.calls(),
            given: given.clone(),
            after: given.clone(),
        };
        if case.is_look() {
            expected.look(case)?;
        } else {
            expected.operate(case, &Action::of(case.operation()));
        }
        Ok(expected)
    }

    /// The cluster's columns.
    pub fn cluster(&mut self) -> &mut Map<String, Value> {
        self.after.cluster.get_or_insert_default()
    }

    /// The cluster has these columns as they were given.
    pub fn take_back(&mut self, names: &[&str]) {
        let given = self.given.cluster.clone().unwrap_or_default();
        for name in names {
            self.cluster().insert((*name).to_owned(), given[*name].clone());
        }
    }

    /// The columns of a group, if it is there.
    fn group(&mut self, name: &str) -> Option<&mut Map<String, Value>> {
        self.after.groups.get_mut(name)
    }

    /// A look: what it has saved. A cluster that is gone has no rows.
    fn look(&mut self, case: &Case) -> Result<()> {
        self.state = "looked at".to_owned();
        self.write(&case.recorded["saved"]);
        // Short texts do not tell as whom Heat is asked: by the cluster's trust.
        let by = trustee(case)?;
        for call in &mut self.calls {
            if call["call"]
                .as_str()
                .is_some_and(|call| call.starts_with("heat."))
            {
                call["as"] = json!(by);
            }
        }
        if self.cluster()["status"] == "DELETE_COMPLETE" {
            self.after = Columns::default();
        }
        Ok(())
    }

    /// The rows when an operation has started, when its driver has saved what it saved, and when it has ended.
    fn operate(&mut self, case: &Case, action: &Action) {
        self.start(case, action);
        self.write(&case.recorded["saved"]);
        self.write(&case.recorded["unsaved"]);
        let is_deletion = matches!(case.operation(), "delete" | "delete_nodegroup");
        match case.failure() {
            "" => {
                self.state = "observing".to_owned();
                self.share_the_stack();
            }
            "HTTPNotFound" if is_deletion => self.be_gone(case),
            failure if TRANSIENT.contains(&failure) || is_deletion && failure == "HTTPConflict" => {
                self.state = "retrying".to_owned();
                self.reason = json!(reason(case));
            }
            _ => {
                self.state = "failed".to_owned();
                self.reason = json!(reason(case));
                self.fail(case, action);
            }
        }
    }

    /// Fields that are told by rows. Those of trusts are not in the row of a cluster.
    pub fn write(&mut self, told: &Value) {
        for (row, fields) in told.as_object().into_iter().flatten() {
            let fields = fields.as_object();
            if row == "cluster" {
                let known: Vec<String> = self.cluster().keys().cloned().collect();
                let fields = fields.into_iter().flatten();
                let fields = fields.filter(|(name, _)| known.contains(name));
                let fields: Map<String, Value> = fields
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                self.cluster().extend(fields);
            } else if let Some(name) = row.strip_prefix("nodegroup ") {
                match fields {
                    None => drop(self.after.groups.remove(name)),
                    Some(fields) => {
                        if let Some(group) = self.group(name) {
                            group.extend(fields.clone());
                        }
                    }
                }
            }
        }
    }

    fn start(&mut self, case: &Case, action: &Action) {
        let status = format!("{}_IN_PROGRESS", action.cluster);
        self.cluster().insert("status".to_owned(), json!(status));
        for group in self.after.groups.values_mut().filter(|_| action.all_groups) {
            group.insert("status".to_owned(), json!("DELETE_IN_PROGRESS"));
        }
        let named = case.argument("nodegroup").as_str().unwrap_or_default();
        if let (Some(action), Some(group)) = (action.group, self.group(named)) {
            group.insert("status".to_owned(), json!(format!("{action}_IN_PROGRESS")));
        }
    }

    /// Groups without a stack of their own have the cluster's.
    fn share_the_stack(&mut self) {
        let stack = self.cluster()["stack_id"].clone();
        for group in self.after.groups.values_mut() {
            if group["stack_id"].is_null() {
                group.insert("stack_id".to_owned(), stack.clone());
            }
        }
    }

    /// What was to be deleted is gone already, which is success.
    fn be_gone(&mut self, case: &Case) {
        let named = case.argument("nodegroup").as_str();
        if let Some(group) = named {
            self.state = "observing".to_owned();
            self.after.groups.remove(group);
        } else {
            self.state = "succeeded".to_owned();
            self.after = Columns::default();
        }
    }

    fn fail(&mut self, case: &Case, action: &Action) {
        let reason = self.reason.clone();
        let status = format!("{}_FAILED", action.cluster);
        self.cluster().insert("status".to_owned(), json!(status));
        self.cluster().insert("status_reason".to_owned(), reason.clone());
        for group in self.after.groups.values_mut() {
            let status = group["status"].as_str().unwrap_or_default();
            if let Some(action) = status.strip_suffix("_IN_PROGRESS").map(str::to_owned) {
                group.insert("status".to_owned(), json!(format!("{action}_FAILED")));
                group.insert("status_reason".to_owned(), reason.clone());
            }
        }
        // A count that the cluster does not have.
        let resized = match case.operation() {
            "resize" => case.argument("nodegroup").as_str().unwrap_or_default(),
            "update" => "default-worker",
            _ => return,
        };
        let before = self
            .given
            .groups
            .get(resized)
            .map(|group| group["node_count"].clone());
        if let (Some(group), Some(before)) = (self.group(resized), before) {
            group.insert("node_count".to_owned(), before);
        }
    }
}

/// What an operation does to statuses.
struct Action {
    cluster: &'static str,
    /// That of the group that it is about.
    group: Option<&'static str>,
    all_groups: bool,
}

impl Action {
    fn of(operation: &str) -> Self {
        let (cluster, group) = match operation {
            "create" => ("CREATE", None),
            "delete" => ("DELETE", None),
            "create_nodegroup" => ("UPDATE", Some("CREATE")),
            "delete_nodegroup" => ("UPDATE", Some("DELETE")),
            "resize" | "upgrade" | "update_nodegroup" => ("UPDATE", Some("UPDATE")),
            _ => ("UPDATE", None),
        };
        Self {
            cluster,
            group,
            all_groups: operation == "delete",
        }
    }
}

/// The reason that users are told: drivers raise without a message, or with no more than a name.
fn reason(case: &Case) -> String {
    let message = case.recorded["error"]["message"].as_str().unwrap_or_default();
    if message.split_whitespace().count() > 1 {
        return message.to_owned();
    }
    let text = format!("{}: {message}", case.failure());
    text.trim_end_matches([':', ' ']).to_owned()
}
