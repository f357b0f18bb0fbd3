//! Requests that are answered at once and leave no operation behind to be worked on: they do not change a cluster, and
//! call a driver only by its own API ([`super::driver_api`]).
//!
//! A redelivered question gets a second reply. The reply is sent before the message is acknowledged, so a crash in
//! between only delays the caller. Methods of objects that write rows deduplicate themselves: [`crate::objects_rpc`].

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::MessageId;
use magnum_config::ObjectsRpcScope;
use magnum_db::Database;
use magnum_drivers::api_exchange::METHOD;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::certificates;
use super::driver_api::DriverCalls;
use crate::certificates::Certificates;
use crate::objects_rpc::{Method, ObjectsRpc};

/// The topic of a question, by its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// `ping_conductor`: whether a conductor consumes.
    Ping,
    /// `federation_create`, `federation_update`, `federation_delete`: which Magnum never implemented.
    Federation,
    /// A method of an object.
    Objects(Method),
    /// `sign_certificate`: a certificate for a request.
    SignCertificate,
    /// `get_ca_certificate`: the certificate of one of a cluster's CAs.
    CaCertificate,
    /// `cluster_driver_call`: a call of a driver's own API.
    DriverCall,
}

/// A call that gets a reply at once.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Its topic.
    pub topic: Topic,
    /// The method, as the message names it.
    pub method: String,
    /// Its arguments, unread.
    pub args: Map<String, Value>,
    /// The context of the caller.
    pub context: RequestContext,
    /// The message's id.
    pub message: Option<MessageId>,
}

impl Topic {
    /// The topic of a method; `None` for methods that are recorded, or do not exist.
    pub fn of(method: &str) -> Option<Self> {
        Some(match method {
            "ping_conductor" => Self::Ping,
            "federation_create" | "federation_update" | "federation_delete" => Self::Federation,
            "sign_certificate" => Self::SignCertificate,
            "get_ca_certificate" => Self::CaCertificate,
            METHOD => Self::DriverCall,
            _ => return Method::of(method).map(Self::Objects),
        })
    }
}

/// Answers questions.
#[derive(Clone)]
pub struct Answerer {
    objects: ObjectsRpc,
    db: Database,
    certificates: Certificates,
    driver_calls: Option<DriverCalls>,
}

impl Answerer {
    /// Answers from this database, and from the stores of certificates.
    pub fn new(db: Database, certificates: Certificates) -> Self {
        Self {
            objects: ObjectsRpc::new(db.clone()).with_sealing(certificates.sealing()),
            db,
            certificates,
            driver_calls: None,
        }
    }

    /// The same, which answers methods of objects as `[conductor] objects_rpc` says.
    #[must_use]
    pub fn with_objects_rpc(self, scope: ObjectsRpcScope) -> Self {
        Self {
            objects: self.objects.with_scope(scope),
            ..self
        }
    }

    /// The same, which also calls drivers' own APIs.
    #[must_use]
    pub fn with_driver_calls(self, calls: DriverCalls) -> Self {
        Self {
            driver_calls: Some(calls),
            ..self
        }
    }

    /// The reply to a question.
    ///
    /// # Errors
    /// The exception for the caller: wrong arguments, a refused request, or a part that is not available.
    pub async fn answer(&self, question: Question) -> Result<Value, Fault> {
        match question.topic {
            Topic::Ping => {
                Arguments::new(&question.method, question.args).finish()?;
                Ok(Value::Bool(true))
            }
            // Magnum's own reply, whatever the arguments are.
            Topic::Federation => Err(Fault::new(
                Exception::NotImplementedError,
                "This feature is not yet implemented.",
            )),
            Topic::Objects(method) => {
                let Question {
                    args,
                    context,
                    message,
                    ..
                } = question;
                self.objects.answer(method, args, context, message).await
            }
            Topic::SignCertificate => {
                certificates::sign_certificate(&self.certificates, &self.db, question.args, &question.context)
                    .await
            }
            Topic::DriverCall => match &self.driver_calls {
                Some(calls) => {
                    let Question {
                        args,
                        context,
                        message,
                        ..
                    } = question;
                    // Boxed, since this future is much larger than the others.
                    Box::pin(calls.answer(args, &context, message)).await
                }
                None => Err(Fault::new(
                    Exception::NoSuchMethod,
                    format!("Endpoint does not support RPC method {}", question.method),
                )),
            },
            Topic::CaCertificate => {
                certificates::get_ca_certificate(
                    &self.certificates,
                    &self.db,
                    question.args,
                    &question.context,
                )
                .await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::seal::JournalKey;
    use magnum_config::Settings;
    use magnum_db::{DatabaseUrl, PoolOptions};
    use serde_json::json;

    use super::*;

    async fn ask(method: &str, args: Value) -> Result<Value, Fault> {
        let Value::Object(args) = args else {
            panic!("arguments are an object");
        };
        let folder = tempfile::tempdir().unwrap();
        let key = JournalKey::load_or_create(&folder.path().join("key")).unwrap();
        let url = DatabaseUrl::parse("sqlite://").unwrap();
        let db = Database::open(url, PoolOptions::default()).await.unwrap();
        Answerer::new(db.clone(), Certificates::new(&Settings::default(), db, key))
            .answer(Question {
                topic: Topic::of(method).unwrap(),
                method: method.into(),
                args,
                context: RequestContext::default(),
                message: None,
            })
            .await
    }

    #[tokio::test]
    async fn a_ping_is_answered_true_and_takes_no_arguments() {
        assert_eq!(ask("ping_conductor", json!({})).await, Ok(json!(true)));
        let fault = ask("ping_conductor", json!({"x": 1})).await.unwrap_err();
        assert_eq!(fault.exception, Exception::TypeError);
    }

    #[tokio::test]
    async fn federations_are_honestly_not_there() {
        for method in ["federation_create", "federation_update", "federation_delete"] {
            let fault = ask(method, json!({"federation": null})).await.unwrap_err();
            assert_eq!(fault.exception, Exception::NotImplementedError);
            assert_eq!(fault.message, "This feature is not yet implemented.");
        }
    }
}
