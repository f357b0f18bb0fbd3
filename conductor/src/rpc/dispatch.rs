//! The dispatch table: what to do with a method.
//!
//! | method | what happens |
//! |---|---|
//! | those of [`OperationKind`](crate::workflows::OperationKind) | recorded, then worked on |
//! | those of [`Topic`] | answered at once; no operation comes of it |
//! | anything else | `NoSuchMethod`, as oslo's dispatcher says it |

use magnum_common::error::{Exception, Fault};
use magnum_rpc::Request;
use tracing::Span;

use crate::handlers::question::{Question, Topic};
use crate::handlers::{Command, Incoming};

/// What a request turns out to be.
#[derive(Debug)]
pub enum Routed {
    /// To be recorded.
    Record(Box<Incoming>),
    /// To be answered.
    Ask(Box<Question>),
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
    if let Some(topic) = Topic::of(&method) {
        return Routed::Ask(Box::new(Question {
            topic,
            method,
            args,
            context,
            message: unique_id,
        }));
    }
    match Command::decode(&method, args) {
        Some(Ok(command)) => Routed::Record(Box::new(Incoming {
            command,
            message: unique_id,
            context,
            reply,
            monitor: call_monitor,
            trace: None,
            span: Span::none(),
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
    use serde_json::{Value, json};

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
    fn questions_keep_their_arguments_unread() {
        let Routed::Ask(question) = route(request("ping_conductor", json!({"x": 1}))) else {
            panic!("a question");
        };
        assert_eq!(question.topic, Topic::Ping);
        assert_eq!(question.args["x"], 1);
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
    fn wrong_arguments_are_refused_by_name() {
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
