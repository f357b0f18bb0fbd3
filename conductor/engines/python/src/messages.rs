//! Messages between this engine and the plug-in host: lines of JSON. The other half is `plugin-host/`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the messages.
pub const PROTOCOL: u32 = 1;

/// What a zygote writes once, when it can fork workers.
#[derive(Debug, Clone, Deserialize)]
pub struct Ready {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The version of Magnum's library.
    pub magnum: String,
    /// The version of each object class that the library reads.
    pub objects: Map<String, Value>,
    /// The drivers, with what is wrong with each.
    pub drivers: std::collections::BTreeMap<String, Option<String>>,
    /// How long the imports took.
    pub seconds: f64,
}

impl Ready {
    /// Whether the library's clusters have a user and a trust in Keystone: `Cluster` has lost the fields with 1.24.
    pub fn has_trusts(&self) -> bool {
        const WITHOUT: u32 = 24;
        let version = self.objects.get("Cluster").and_then(Value::as_str);
        let minor = version.and_then(|version| version.split('.').nth(1)?.parse::<u32>().ok());
        minor.is_some_and(|minor| minor < WITHOUT)
    }
}

/// A call of a driver's method.
#[derive(Debug, Serialize)]
pub struct CallMessage<'a> {
    /// Always `call`.
    pub r#type: &'static str,
    /// Counts the calls of a connection.
    pub id: u32,
    /// The method: see `calls.py`.
    pub call: &'a str,
    /// The entry point.
    pub driver: &'a str,
    /// Which attempt of the operation it is; counts from 1.
    pub attempt: u32,
    /// Whether another call follows on the connection.
    pub more: bool,
    /// The request's context, or `{"admin": true}`.
    pub context: Value,
    /// The cluster, as an object.
    pub cluster: Value,
    /// The node group that the call is about, as an object.
    pub node_group: Option<Value>,
    /// Headers of the trace that the call belongs to.
    pub trace: Map<String, Value>,
    /// What the method gets besides.
    #[serde(flatten)]
    pub arguments: Map<String, Value>,
}

/// What a worker writes.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum FromWorker {
    /// First of all.
    Hello {
        /// The worker's process id, and that of its process group.
        pid: i32,
    },
    /// A method of an object is to be carried out.
    Object(ObjectRequest),
    /// The call has returned.
    Done(Done),
    /// The call has raised.
    Failed(Failed),
}

/// A method of an object, or of its class.
#[derive(Debug, Deserialize)]
pub struct ObjectRequest {
    /// Counts the requests of a connection.
    pub id: u64,
    /// The class.
    pub object: String,
    /// The method.
    pub method: String,
    /// Of a method of a class: the versions that the library reads.
    pub versions: Option<Map<String, Value>>,
    /// Of a method of an object: the object.
    pub instance: Option<Value>,
    /// Positional arguments.
    pub args: Vec<Value>,
    /// Named arguments.
    pub kwargs: Map<String, Value>,
    /// The tenant scope.
    pub context: Scope,
}

/// Who asks for an object.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the request's context")]
pub struct Scope {
    pub is_admin: bool,
    pub all_tenants: bool,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
}

/// How a call went.
#[derive(Debug, Deserialize)]
pub struct Done {
    /// Fields of the cluster that the driver has set and not saved.
    #[serde(default)]
    pub cluster: Option<Map<String, Value>>,
    /// Fields of the node group, likewise.
    #[serde(default)]
    pub node_group: Option<Map<String, Value>>,
    /// What it returned.
    #[serde(default)]
    pub value: Value,
}

/// What a call has raised.
#[derive(Debug, Deserialize)]
pub struct Failed {
    /// What it means for the operation.
    pub class: FailureClass,
    /// The class of the exception, with its module.
    pub exception: String,
    /// Its text.
    pub message: String,
    /// Fields of the cluster that the driver had set and not saved.
    #[serde(default)]
    pub cluster: Option<Map<String, Value>>,
}

/// What an exception means for the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureClass {
    /// May succeed later.
    Transient,
    /// Will fail again.
    Permanent,
    /// The driver cannot do it.
    NotSupported,
    /// The call was told to end.
    Cancelled,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn clusters_of_libraries_before_magnum_23_have_trusts() {
        for (version, expected) in [("1.23", true), ("1.24", false), ("1.9", true), ("2.x", false)] {
            let ready = json!({"protocol": 1, "magnum": "?", "objects": {"Cluster": version}, "drivers": {}, "seconds": 0.1});
            let ready: Ready = serde_json::from_value(ready).unwrap();
            assert_eq!(ready.has_trusts(), expected, "{version}");
        }
    }
}
