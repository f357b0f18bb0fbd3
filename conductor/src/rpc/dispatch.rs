//! The dispatch table: what to do with a method.
//!
//! | method | what happens |
//! |---|---|
//! | those of [`OperationKind`](crate::workflows::OperationKind) | recorded, then worked on |
//! | `ping_conductor` | answered `true` at once; nothing is stored |
//! | anything else | `NoSuchMethod`, as oslo's dispatcher says it |

use magnum_common::error::{Exception, Fault};
use magnum_common::rpc::Request;
use serde_json::Value;

use crate::handlers::arguments::Arguments;
use crate::handlers::{Command, Incoming};

/// What a request turns out to be.
#[derive(Debug)]
pub enum Routed {
    /// To be recorded.
    Record(Box<Incoming>),
    /// Answered without any state.
    Answer(Value),
    /// Nothing that can be carried out.
    Fault(Fault),
}

/// Reads a request.
pub fn route(request: Request) -> Routed {
    let Request {
        method,
        args,
        context,
        unique_id,
        reply,
        call_monitor,
        ..
    } = request;
    if method == "ping_conductor" {
        return match Arguments::new(&method, args).finish() {
            Ok(()) => Routed::Answer(Value::Bool(true)),
            Err(fault) => Routed::Fault(fault),
        };
    }
    match Command::decode(&method, args) {
        Some(Ok(command)) => Routed::Record(Box::new(Incoming {
            command,
            message: unique_id,
            context,
            reply,
            monitor: call_monitor,
        })),
        Some(Err(fault)) => Routed::Fault(fault),
        None => Routed::Fault(Fault::new(
            Exception::NoSuchMethod,
            format!("Endpoint does not support RPC method {method}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use magnum_common::context::RequestContext;
    use serde_json::json;

    use super::*;

    fn request(method: &str, args: Value) -> Request {
        let Value::Object(args) = args else {
            panic!("arguments are an object");
        };
        Request {
            method: method.into(),
            args,
            context: RequestContext::default(),
            unique_id: None,
            reply: None,
            call_monitor: None,
            namespace: None,
            version: None,
        }
    }

    fn fault(method: &str, args: Value) -> Fault {
        match route(request(method, args)) {
            Routed::Fault(fault) => fault,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_ping_is_answered_without_being_recorded() {
        let Routed::Answer(answer) = route(request("ping_conductor", json!({}))) else {
            panic!("an answer");
        };
        assert_eq!(answer, json!(true));
        assert_eq!(
            fault("ping_conductor", json!({"x": 1})).exception,
            Exception::TypeError
        );
    }

    #[test]
    fn unknown_and_private_methods_do_not_exist() {
        for method in ["cluster_paint", "_private", "", "__init__"] {
            let fault = fault(method, json!({}));
            assert_eq!(fault.exception, Exception::NoSuchMethod);
            assert_eq!(
                fault.message,
                format!("Endpoint does not support RPC method {method}")
            );
        }
    }

    #[test]
    fn a_delete_is_recorded_with_its_uuid() {
        let Routed::Record(incoming) = route(request("cluster_delete", json!({"uuid": "u-1"}))) else {
            panic!("recorded");
        };
        assert_eq!(incoming.command, Command::ClusterDelete("u-1".into()));
    }

    #[test]
    fn wrong_arguments_are_told_by_name() {
        assert!(fault("cluster_delete", json!({})).message.contains("'uuid'"));
        assert!(
            fault("cluster_delete", json!({"uuid": 3}))
                .message
                .contains("'uuid'")
        );
        assert!(
            fault("cluster_delete", json!({"uuid": "u", "force": true}))
                .message
                .contains("'force'")
        );
        assert!(
            fault("cluster_create", json!({"master_count": 1}))
                .message
                .contains("'cluster'")
        );
        let not_an_object = fault(
            "cluster_create",
            json!({"cluster": 5, "master_count": 1, "node_count": 1, "create_timeout": null}),
        );
        assert!(!not_an_object.message.is_empty());
    }
}
