//! What a driver sees of its cluster while a call runs: the rows, and over them what it has saved that is not written
//! before the call ends. Pure.
//!
//! A cluster's status is what the call reports, and ends its operation; the template of an upgrade is in the row when the
//! upgrade was taken. Both are held back, so that a call that fails half-way leaves neither behind. Everything else that
//! a driver saves is written at once.
//!
//! A create that is repeated keeps the stack that an earlier attempt has saved: a driver that names another one at its
//! begin is told the first one, and goes on with what it has begun.

use magnum_common::model::{Cluster, ClusterStatus};
use magnum_driver_api::{ClusterTrust, Task};
use serde_json::{Map, Value, json};

use super::messages::ObjectRequest;

const NAME: &str = "magnum_object.name";
const DATA: &str = "magnum_object.data";
const CHANGES: &str = "magnum_object.changes";
const CLUSTER: &str = "Cluster";

/// Fields of a cluster that are not written before the call ends. Those of its trust are never: the conductor has them in
/// a table of its own, and removes the trust when the cluster is gone.
const HELD_BACK: &[&str] = &[
    "status",
    "status_reason",
    "cluster_template_id",
    "trust_id",
    "trustee_username",
    "trustee_user_id",
    "trustee_password",
];

/// The view of one call. Not `Debug`: it may have a password.
pub struct View {
    cluster: String,
    /// Fields of the cluster that the driver sees and the row does not have.
    fields: Map<String, Value>,
    stack_id: Option<String>,
    /// What an earlier attempt of the create has begun to build: the driver goes on with it.
    begun_stack: Option<String>,
}

impl View {
    /// At the start of a call.
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            cluster: cluster.uuid.to_string(),
            fields: Map::new(),
            stack_id: cluster.stack_id.clone(),
            begun_stack: None,
        }
    }

    /// The same with the cluster's trust, for a library whose clusters have the fields: up to Magnum 22.
    #[must_use]
    pub fn with_trust(mut self, trust: Option<&ClusterTrust>) -> Self {
        for (name, value) in [
            ("trust_id", trust.map(|trust| trust.trust_id.as_str())),
            (
                "trustee_username",
                trust.map(|trust| trust.trustee_username.as_str()),
            ),
            (
                "trustee_user_id",
                trust.map(|trust| trust.trustee_user_id.as_str()),
            ),
            (
                "trustee_password",
                trust.map(|trust| trust.trustee_password.expose()),
            ),
        ] {
            self.fields.insert(name.to_owned(), json!(value));
        }
        self
    }

    /// At the start of the call for `task`. The certificates of a rotation are in the row when the driver has taken them.
    pub fn of_task(cluster: &Cluster, task: &Task<'_>) -> Self {
        let mut view = Self::new(cluster);
        if matches!(task, Task::Create) {
            view.begun_stack.clone_from(&cluster.stack_id);
        }
        if matches!(task, Task::RotateCa) {
            for (name, value) in [
                ("ca_cert_ref", &cluster.ca_cert_ref),
                ("magnum_cert_ref", &cluster.magnum_cert_ref),
                ("etcd_ca_cert_ref", &cluster.etcd_ca_cert_ref),
                ("front_proxy_ca_cert_ref", &cluster.front_proxy_ca_cert_ref),
            ] {
                view.fields.insert(name.to_owned(), json!(value));
            }
        }
        view
    }

    /// The status that the driver has set.
    pub fn status(&self) -> Option<ClusterStatus> {
        self.fields.get("status")?.as_str()?.parse().ok()
    }

    /// The reason that it has set; `Some(None)` where it has set none.
    pub fn status_reason(&self) -> Option<String> {
        self.fields.get("status_reason")?.as_str().map(str::to_owned)
    }

    /// The cluster's stack, by what was saved last.
    pub fn stack_id(&self) -> Option<&str> {
        self.stack_id.as_deref()
    }

    /// Takes what is held back out of a request. Returns the names of the fields that it writes.
    pub fn hold_back(&mut self, request: &mut ObjectRequest) -> Vec<String> {
        let Some(instance) = request.instance.as_mut().filter(|_| request.method == "save") else {
            return Vec::new();
        };
        let is_cluster = instance[NAME] == CLUSTER && instance[DATA]["uuid"] == self.cluster.as_str();
        let changes = instance.get(CHANGES).and_then(Value::as_array);
        let changes: Vec<String> = changes
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        if !is_cluster {
            return changes;
        }
        let (held, mut written): (Vec<String>, Vec<String>) = changes
            .into_iter()
            .partition(|name| HELD_BACK.contains(&name.as_str()));
        if self.begun_stack.is_some() {
            written.retain(|name| name != "stack_id");
        }
        for name in held {
            let value = instance[DATA][&name].clone();
            self.fields.insert(name, value);
        }
        if written.iter().any(|name| name == "stack_id") {
            self.stack_id = instance[DATA]["stack_id"].as_str().map(str::to_owned);
        }
        instance[CHANGES] = json!(written);
        written
    }

    /// Takes fields that the driver has set and not saved: those that are held back stay here, the others are to be written.
    pub fn take_unsaved(&mut self, unsaved: Map<String, Value>) -> Map<String, Value> {
        let mut written = Map::new();
        for (name, value) in unsaved {
            if HELD_BACK.contains(&name.as_str()) {
                self.fields.insert(name, value);
            } else {
                if name == "stack_id" {
                    self.stack_id = value.as_str().map(str::to_owned);
                }
                written.insert(name, value);
            }
        }
        written
    }

    /// Puts what is held back into a result.
    pub fn show(&self, request: &ObjectRequest, result: &mut Value) {
        match &request.instance {
            None => self.show_in(result),
            Some(instance) => {
                let is_cluster = instance[NAME] == CLUSTER && instance[DATA]["uuid"] == self.cluster.as_str();
                if is_cluster && let Some(updates) = result.get_mut(0).and_then(Value::as_object_mut) {
                    for (name, value) in &self.fields {
                        if updates.contains_key(name) {
                            updates.insert(name.clone(), value.clone());
                        }
                    }
                    if let Some(stack) = &self.begun_stack
                        && request.method == "save"
                    {
                        updates.insert("stack_id".to_owned(), json!(stack));
                    }
                }
            }
        }
    }

    /// Puts it into the cluster, wherever that is in `result`.
    pub fn show_in(&self, result: &mut Value) {
        match result {
            Value::Array(items) => items.iter_mut().for_each(|item| self.show_in(item)),
            Value::Object(object) if object.get(NAME).is_some_and(|name| name == CLUSTER) => {
                let data = object.get_mut(DATA).and_then(Value::as_object_mut);
                if let Some(data) =
                    data.filter(|data| data.get("uuid").is_some_and(|uuid| *uuid == self.cluster))
                {
                    data.extend(self.fields.clone());
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Scope;

    fn view() -> View {
        View::new(&Cluster::new("c-1".into(), "t-1".into()))
    }

    fn request(method: &str, instance: Option<Value>) -> ObjectRequest {
        ObjectRequest {
            id: 1,
            object: CLUSTER.to_owned(),
            method: method.to_owned(),
            versions: None,
            instance,
            args: Vec::new(),
            kwargs: Map::new(),
            context: Scope {
                is_admin: true,
                all_tenants: true,
                project_id: None,
                user_id: None,
            },
        }
    }

    fn cluster(uuid: &str, mut data: Value, changes: &[&str]) -> Value {
        data["uuid"] = json!(uuid);
        json!({NAME: CLUSTER, DATA: data, CHANGES: changes})
    }

    #[test]
    fn a_status_is_held_back_and_the_rest_of_a_save_is_written() {
        let mut view = view();
        let data = json!({"status": "UPDATE_COMPLETE", "status_reason": null, "stack_id": "s", "name": "n"});
        let mut save = request(
            "save",
            Some(cluster("c-1", data, &["status", "status_reason", "stack_id"])),
        );
        assert_eq!(view.hold_back(&mut save), ["stack_id"]);
        assert_eq!(save.instance.unwrap()[CHANGES], json!(["stack_id"]));
        assert_eq!(view.status(), Some(ClusterStatus::UpdateComplete));
        assert_eq!((view.status_reason(), view.stack_id()), (None, Some("s")));
    }

    #[test]
    fn a_held_back_status_is_read_again_and_only_of_its_own_cluster() {
        let mut view = view();
        let data = json!({"status": "UPDATE_COMPLETE"});
        view.hold_back(&mut request("save", Some(cluster("c-1", data, &["status"]))));
        let row = json!({"status": "UPDATE_IN_PROGRESS"});
        let mut found = json!([cluster("c-1", row.clone(), &[]), cluster("c-2", row, &[])]);
        view.show(&request("list", None), &mut found);
        assert_eq!(found[0][DATA]["status"], "UPDATE_COMPLETE");
        assert_eq!(found[1][DATA]["status"], "UPDATE_IN_PROGRESS");
        let mut refreshed = json!([{"status": "UPDATE_IN_PROGRESS", "obj_what_changed": ["status"]}, null]);
        let ours = cluster("c-1", json!({"status": "UPDATE_COMPLETE"}), &[]);
        view.show(&request("refresh", Some(ours)), &mut refreshed);
        assert_eq!(refreshed[0]["status"], "UPDATE_COMPLETE");
    }

    #[test]
    fn a_repeated_create_goes_on_with_the_stack_that_it_has_begun() {
        let mut begun = Cluster::new("c-1".into(), "t-1".into());
        begun.stack_id = Some("first".into());
        let mut view = View::of_task(&begun, &Task::Create);
        let named = json!({"stack_id": "second", "api_address": "a"});
        let mut save = request("save", Some(cluster("c-1", named, &["stack_id", "api_address"])));
        assert_eq!(view.hold_back(&mut save), ["api_address"]);
        let mut saved = json!([{"obj_what_changed": []}, null]);
        view.show(&save, &mut saved);
        assert_eq!(saved[0], json!({"obj_what_changed": [], "stack_id": "first"}));
        assert_eq!(view.stack_id(), Some("first"));
    }

    #[test]
    fn saves_of_other_objects_pass_as_they_are() {
        let mut view = view();
        let mut save = request("save", Some(cluster("c-2", json!({"status": "X"}), &["status"])));
        assert_eq!(view.hold_back(&mut save), ["status"]);
        assert_eq!(save.instance.unwrap()[CHANGES], json!(["status"]));
        assert_eq!(view.status(), None);
    }

    #[test]
    fn unsaved_fields_are_to_be_written_but_for_those_that_are_held_back() {
        let mut view = view();
        let unsaved = json!({"status": "CREATE_FAILED", "stack_id": "s", "user_id": "u"});
        let written = view.take_unsaved(unsaved.as_object().cloned().unwrap());
        assert_eq!(Value::Object(written), json!({"stack_id": "s", "user_id": "u"}));
        assert_eq!(
            (view.status(), view.stack_id()),
            (Some(ClusterStatus::CreateFailed), Some("s"))
        );
    }

    #[test]
    fn a_trust_is_seen_by_the_driver_and_what_it_makes_of_it_is_not_written() {
        let trust = ClusterTrust {
            trust_id: "t".into(),
            trustee_user_id: "u".into(),
            trustee_username: "n".into(),
            trustee_password: magnum_common::secret::Secret::new("p"),
        };
        let mut view = view().with_trust(Some(&trust));
        let mut sent = cluster("c-1", json!({"status": "DELETE_IN_PROGRESS"}), &[]);
        view.show_in(&mut sent);
        assert_eq!(
            sent[DATA],
            json!({"uuid": "c-1", "status": "DELETE_IN_PROGRESS", "trust_id": "t", "trustee_user_id": "u",
                   "trustee_username": "n", "trustee_password": "p"})
        );
        let forgotten = json!({"trust_id": null, "api_address": null});
        let mut save = request(
            "save",
            Some(cluster("c-1", forgotten, &["trust_id", "api_address"])),
        );
        assert_eq!(view.hold_back(&mut save), ["api_address"]);
        let mut again = cluster("c-1", json!({}), &[]);
        view.show_in(&mut again);
        assert_eq!(again[DATA]["trust_id"], Value::Null);
        assert_eq!(again[DATA]["trustee_user_id"], "u");
    }

    #[test]
    fn the_certificates_of_a_rotation_are_those_of_the_call() {
        let mut rotated = Cluster::new("c-1".into(), "t-1".into());
        rotated.ca_cert_ref = Some("new".into());
        let view = View::of_task(&rotated, &Task::RotateCa);
        let mut found = cluster("c-1", json!({"ca_cert_ref": "old"}), &[]);
        view.show(&request("get_by_uuid", None), &mut found);
        assert_eq!(found[DATA]["ca_cert_ref"], "new");
    }
}
