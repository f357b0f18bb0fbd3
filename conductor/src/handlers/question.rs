//! Requests that are answered at once and leave no operation behind to be worked on: they do not change a cluster, and
//! call a driver only by its own API ([`super::driver_api`]).
//!
//! A question that is delivered twice is answered twice. The answer goes out before the message is acknowledged,
//! so a conductor that dies in between costs its caller nothing but time. Methods of objects that write rows see to
//! it themselves that they write once: [`crate::objects_rpc`].

use magnum_common::context::RequestContext;
use magnum_common::error::{Exception, Fault};
use magnum_common::ids::MessageId;
use magnum_db::Database;
use magnum_drivers::api_exchange::METHOD;
use serde_json::{Map, Value};

use super::arguments::Arguments;
use super::certificates;
use super::driver_api::DriverCalls;
use crate::certificates::Certificates;
use crate::objects_rpc::{Method, ObjectsRpc};

/// What is asked, by the method's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// `ping_conductor`: whether anybody is there.
    Ping,
    /// `federation_create`, `federation_update`, `federation_delete`: which Magnum never had.
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

/// A request for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What is asked.
    pub topic: Topic,
    /// The method, as the message names it.
    pub method: String,
    /// Its arguments, unread.
    pub args: Map<String, Value>,
    /// Who asks.
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

/// Knows the answers.
#[derive(Clone)]
pub struct Answerer {
    objects: ObjectsRpc,
    db: Database,
    certificates: Certificates,
    driver_calls: Option<DriverCalls>,
}

impl Answerer {
    /// With what is in this database, and in the store of certificates.
    pub fn new(db: Database, certificates: Certificates) -> Self {
        Self {
            objects: ObjectsRpc::new(db.clone()).with_sealing(certificates.sealing()),
            db,
            certificates,
            driver_calls: None,
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

    /// The answer, or the exception the caller gets.
    ///
    /// # Errors
    /// What the caller is told.
    pub async fn answer(&self, question: Question) -> Result<Value, Fault> {
        match question.topic {
            Topic::Ping => {
                Arguments::new(&question.method, question.args).finish()?;
                Ok(Value::Bool(true))
            }
            // Magnum's own answer, whatever the arguments.
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
                    // Much larger than the other answers, which all have room for it otherwise.
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
