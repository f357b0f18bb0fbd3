//! `[conductor] objects_rpc`: which methods are answered over RPC.
//!
//! A message says itself who sent it. So whoever can publish on the virtual host can ask for any method as an administrator,
//! which is how Magnum's own API without a database does it. What that API does not need is not answered unless all is:
//! private keys, and writes of anything but cluster templates and quotas. A refused caller gets what Python raises for a
//! method that there is not.
//!
//! Drivers' calls do not come here: their objects have a scope of their own ([`super::cluster_objects`]).

use std::sync::{Arc, Once};

use magnum_common::error::{Exception, Fault};
use magnum_config::ObjectsRpcScope;
use magnum_objects::Schema;

use super::call::{Call, Method};
use super::{key_pairs, quotas, templates};

/// What is answered. Says once in the log that something was refused.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    allowed: ObjectsRpcScope,
    told: Arc<Once>,
}

impl Default for Scope {
    fn default() -> Self {
        Self::new(ObjectsRpcScope::All)
    }
}

impl Scope {
    pub(super) fn new(allowed: ObjectsRpcScope) -> Self {
        Self {
            allowed,
            told: Arc::new(Once::new()),
        }
    }

    /// Whether methods of objects exist at all.
    ///
    /// # Errors
    /// `NoSuchMethod`, as for any unknown RPC method.
    pub(super) fn check_method(&self, method: Method) -> Result<(), Fault> {
        if self.allowed != ObjectsRpcScope::Off {
            return Ok(());
        }
        let name = method.signature().name;
        self.tell(name);
        let text = format!("Endpoint does not support RPC method {name}");
        Err(Fault::new(Exception::NoSuchMethod, text))
    }

    /// Whether a call may be carried out.
    ///
    /// # Errors
    /// `AttributeError`, as for a method that its class does not have.
    pub(super) fn check(&self, call: &Call) -> Result<(), Fault> {
        if self.allowed == ObjectsRpcScope::All || needs_the_api(call) {
            return Ok(());
        }
        self.tell(&call.name());
        let text = match call {
            Call::Class { method, .. } => {
                let signature = &method.signature;
                format!(
                    "type object '{}' has no attribute '{}'",
                    signature.owner, signature.name
                )
            }
            Call::Instance { method, object, .. } => {
                format!(
                    "'{}' object has no attribute '{}'",
                    object.name(),
                    method.signature.name
                )
            }
            Call::Answered(_) => return Ok(()),
        };
        Err(Fault::new(Exception::AttributeError, text))
    }

    fn tell(&self, method: &str) {
        self.told.call_once(|| {
            tracing::warn!(
                method,
                "a method of an object was refused by [conductor] objects_rpc; this is not said again"
            );
        });
    }
}

/// Whether Magnum's API calls it: it reads everything but key pairs, and writes templates and quotas.
fn needs_the_api(call: &Call) -> bool {
    let is = |name: &str, schema: &Schema| name == schema.name;
    let class = match call {
        Call::Class { method, .. } => method.signature.owner,
        Call::Instance { object, .. } => object.name(),
        Call::Answered(_) => return true,
    };
    if is(class, key_pairs::CLASS.schema) {
        return false;
    }
    !call.changes() || is(class, templates::CLASS.schema) || is(class, quotas::CLASS.schema)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class_call(class: &str, version: &str, method: &str, args: &Value) -> Call {
        let args =
            json!({"objname": class, "objmethod": method, "objver": version, "args": args, "kwargs": {}});
        let Value::Object(args) = args else {
            panic!("a map");
        };
        Call::decode(Method::ClassAction, args).unwrap()
    }

    fn instance_call(class: &str, version: &str, method: &str) -> Call {
        let object = json!({"magnum_object.name": class, "magnum_object.namespace": "magnum",
                            "magnum_object.version": version, "magnum_object.data": {}});
        let args = json!({"objinst": object, "objmethod": method, "args": [], "kwargs": {}});
        let Value::Object(args) = args else {
            panic!("a map");
        };
        Call::decode(Method::Action, args).unwrap()
    }

    #[test]
    fn the_api_reads_and_writes_templates_and_gets_no_private_key() {
        let scope = Scope::new(ObjectsRpcScope::Api);
        assert_eq!(scope.check_method(Method::Action), Ok(()));
        for call in [
            class_call("Cluster", "1.24", "get_by_uuid", &json!(["u"])),
            class_call("Quota", "1.0", "update_quota", &json!(["p", {}])),
            instance_call("Cluster", "1.24", "refresh"),
            instance_call("ClusterTemplate", "1.21", "create"),
            instance_call("Quota", "1.0", "delete"),
        ] {
            assert_eq!(scope.check(&call), Ok(()), "{}", call.name());
        }
        for call in [
            class_call("X509KeyPair", "1.2", "list", &json!([])),
            class_call("NodeGroup", "1.1", "update_nodegroup", &json!(["c", "n", {}])),
            instance_call("X509KeyPair", "1.2", "refresh"),
            instance_call("Cluster", "1.24", "save"),
            instance_call("MagnumService", "1.0", "create"),
        ] {
            let fault = scope.check(&call).unwrap_err();
            assert_eq!(fault.exception, Exception::AttributeError);
            assert!(fault.message.contains("has no attribute"), "{fault}");
            assert_eq!(Scope::default().check(&call), Ok(()));
        }
    }

    #[test]
    fn off_knows_no_method_of_an_object() {
        let fault = Scope::new(ObjectsRpcScope::Off)
            .check_method(Method::Action)
            .unwrap_err();
        assert_eq!(
            (fault.exception, fault.message.as_str()),
            (
                Exception::NoSuchMethod,
                "Endpoint does not support RPC method object_action"
            )
        );
    }
}
