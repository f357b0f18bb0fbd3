//! One call over a connection: the message, the requests for objects that come back, the end.

use std::time::Duration;

use magnum_common::context::RequestContext;
use magnum_driver_api::{
    DriverError, ObjectCall, ObjectError, ObjectTarget, Progress, ProgressSink, Reason, SharedObjects,
};
use magnum_engine_process::{Level, StderrLog};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::connection::{Connection, Event};
use super::messages::{CallMessage, Done, Failed, FailureClass, FromWorker, ObjectRequest};
use super::view::View;

/// What a call needs besides its message.
pub struct Exchange<'a> {
    /// The worker.
    pub connection: &'a mut Connection,
    /// The cluster's rows.
    pub objects: &'a SharedObjects,
    /// What the driver sees over them.
    pub view: &'a mut View,
    /// Where its standard error goes.
    pub log: &'a mut StderrLog,
    /// Is told what was written.
    pub progress: &'a dyn ProgressSink,
    /// Ends it.
    pub cancel: &'a CancellationToken,
    /// How long it may take.
    pub limit: Duration,
    /// Who it is, for errors.
    pub driver: &'a str,
}

/// How a driver's method ended.
pub enum Ending {
    /// It returned.
    Returned(Done),
    /// It raised.
    Raised(Failed),
}

impl Exchange<'_> {
    /// Makes the call.
    ///
    /// # Errors
    /// It was cancelled, took too long, or its process ended or broke the protocol. The connection is of no more use then.
    pub async fn make(&mut self, message: &CallMessage<'_>) -> Result<Ending, DriverError> {
        let (cancel, deadline) = (self.cancel, Instant::now() + self.limit);
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(DriverError::Cancelled),
            () = sleep_until(deadline) => Err(DriverError::Permanent(Reason::open(format!(
                "{} did not end within {:?}", self.driver, self.limit
            )))),
            ending = self.talk(message) => ending,
        }
    }

    async fn talk(&mut self, message: &CallMessage<'_>) -> Result<Ending, DriverError> {
        self.connection.send(message).await;
        loop {
            match self.connection.next().await {
                Event::StandardError(line) => {
                    let (level, text) = Level::of_line(&line);
                    self.log.record(level, text);
                }
                Event::Message(said) => match *said {
                    FromWorker::Object(request) => {
                        let reply = self.reply(request).await;
                        self.connection.send(&reply).await;
                    }
                    FromWorker::Done(done) => return Ok(Ending::Returned(done)),
                    FromWorker::Failed(failed) => return Ok(Ending::Raised(failed)),
                    FromWorker::Hello { .. } => return Err(self.broken("a second hello")),
                },
                Event::Garbage(reason) => return Err(self.broken(&reason)),
                Event::End => {
                    let told = format!(
                        "the process of {} ended in the middle of {}",
                        self.driver, message.call
                    );
                    let reason = match self.log.last_line() {
                        Some(line) => Reason::internal(told.clone(), format!("{told}: {line}")),
                        None => Reason::open(told),
                    };
                    return Err(DriverError::Transient(reason));
                }
            }
        }
    }

    fn broken(&self, reason: &str) -> DriverError {
        let told = format!("{} broke the protocol of the plug-in host", self.driver);
        let whole = format!("{told}: {}", self.log.secrets().mask(reason));
        DriverError::Permanent(Reason::internal(told, whole))
    }

    /// Carries out a method of an object, and keeps the guard at ease meanwhile.
    async fn reply(&mut self, mut request: ObjectRequest) -> Value {
        let written = self.view.hold_back(&mut request);
        let name = format!("{}.{}", request.object, request.method);
        let call = ObjectCall {
            method: request.method.clone(),
            target: match &request.instance {
                Some(instance) => ObjectTarget::Instance(instance.clone()),
                None => ObjectTarget::Class {
                    name: request.object.clone(),
                    versions: request.versions.clone().unwrap_or_default(),
                },
            },
            args: request.args.clone(),
            kwargs: request.kwargs.clone(),
            context: context_of(&request),
        };
        let objects = self.objects;
        let result = tokio::select! {
            result = objects.call(call) => result,
            () = self.connection.keep_alive() => Err(ObjectError::Revoked(String::new())),
        };
        if result.is_ok() && !written.is_empty() {
            self.progress.report(Progress {
                text: format!("{name}: {}", written.join(", ")),
                percent: None,
            });
        }
        match result {
            Ok(mut result) => {
                self.view.show(&request, &mut result);
                json!({"id": request.id, "result": result})
            }
            Err(ObjectError::Raised(fault)) => json!({
                "id": request.id,
                "raised": {
                    "module": fault.exception.module(),
                    "class": fault.exception.name(),
                    "message": fault.message,
                },
            }),
            Err(ObjectError::Revoked(why)) => json!({"id": request.id, "cancelled": why}),
        }
    }
}

fn context_of(request: &ObjectRequest) -> RequestContext {
    let scope = &request.context;
    let mut values = Map::new();
    values.insert("is_admin".to_owned(), json!(scope.is_admin));
    values.insert("all_tenants".to_owned(), json!(scope.all_tenants));
    values.insert("project_id".to_owned(), json!(scope.project_id));
    values.insert("user_id".to_owned(), json!(scope.user_id));
    RequestContext::from_map(values)
}

/// What a driver's exception means for its operation, in the driver's own words.
pub fn error_of(failed: &Failed, driver: &str) -> DriverError {
    match failed.class {
        FailureClass::Transient => DriverError::Transient(Reason::open(&failed.message)),
        FailureClass::Permanent => DriverError::Permanent(Reason::open(&failed.message)),
        FailureClass::NotSupported => DriverError::NotSupported(match failed.exception.as_str() {
            // Most raise it without a word.
            "builtins.NotImplementedError" if !failed.message.contains(' ') => {
                Reason::open(format!("{driver} does not support this"))
            }
            _ => Reason::open(&failed.message),
        }),
        FailureClass::Cancelled => DriverError::Cancelled,
    }
}
