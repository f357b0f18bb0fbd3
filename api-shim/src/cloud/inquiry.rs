//! The look-ups of one request: each question is asked once, all of them within one limit of time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use magnum_common::context::RequestContext;
use magnum_common::secret::Secret;
use magnum_openstack::{Access, Ask, ServiceError};
use magnum_telemetry::field;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::endpoints::Service;
use super::{Services, Source};
use crate::faults::ApiFault;
use crate::metric_definitions;

/// A connection that breaks within this time is most likely a kept one that the service had closed: the question is
/// put once more, over a new one.
const BROKE_AT_ONCE: Duration = Duration::from_secs(1);

/// What one request asks of the cloud.
pub struct Inquiry {
    pub(super) source: Arc<Source>,
    pub(super) context: RequestContext,
    caller: OnceLock<Caller>,
    until: OnceLock<Instant>,
    asked: Mutex<HashMap<Question, Arc<OnceCell<Outcome>>>>,
}

/// As whom is asked.
struct Caller {
    token: Secret,
    catalog: Value,
}

type Question = (Service, String);
type Outcome = Result<Arc<Answer>, ApiFault>;

/// What a service said.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// Here it is.
    Document(Value),
    /// It does not have it.
    Missing,
    /// It cannot have anything called so.
    Unfit,
    /// The caller may not ask that.
    Forbidden,
}

impl Inquiry {
    pub(super) fn new(source: Arc<Source>, context: RequestContext) -> Self {
        Self {
            source,
            context,
            caller: OnceLock::new(),
            until: OnceLock::new(),
            asked: Mutex::default(),
        }
    }

    /// Whether the services of a cloud can be asked.
    pub(super) fn services(&self) -> Option<&Services> {
        match &*self.source {
            Source::File(_) => None,
            Source::Services(services) => Some(services),
        }
    }

    fn caller(&self) -> &Caller {
        self.caller.get_or_init(|| {
            let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
            let document = self.context.get("auth_token_info").unwrap_or_default();
            Caller {
                token: Secret::new(text(self.context.get("auth_token").as_deref())),
                catalog: document["token"]["catalog"].clone(),
            }
        })
    }

    /// Whether the caller's catalog has the service at all.
    pub(super) fn has(&self, service: Service) -> bool {
        let services = self.services();
        services.is_some_and(|services| services.endpoints.of(service).is_listed(&self.caller().catalog))
    }

    /// Asks a service for what is at `path`, with this query. A question that was put before is not put again.
    pub(super) async fn get(
        &self,
        services: &Services,
        service: Service,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Arc<Answer>, ApiFault> {
        let key = (service, format!("{path}?{query:?}"));
        let cell = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(asked.entry(key).or_default())
        };
        // On the heap: a handler waits for ten of them at the same time.
        let outcome = cell
            .get_or_init(|| Box::pin(self.ask(services, service, path, query)))
            .await;
        outcome.clone()
    }

    async fn ask(
        &self,
        services: &Services,
        service: Service,
        path: &str,
        query: &[(&str, &str)],
    ) -> Outcome {
        let began = Instant::now();
        let until = *self.until.get_or_init(|| began + services.timeout);
        let exchange = self.exchange(services, service, path, query, began);
        let response = match tokio::time::timeout_at(until, exchange).await {
            Ok(response) => response,
            Err(_) => Err(ServiceError::Unavailable {
                service: service.name(),
                reason: format!("no answer within {:?} ([api] lookup_timeout)", services.timeout),
            }),
        };
        let outcome = response.map_err(|error| unusable(service, path, &error));
        let outcome = outcome.and_then(|(status, body)| read(service, path, status, &body).map(Arc::new));
        metric_definitions::looked_up(service.name(), outcome.is_ok(), began.elapsed());
        outcome
    }

    async fn exchange(
        &self,
        services: &Services,
        service: Service,
        path: &str,
        query: &[(&str, &str)],
        began: Instant,
    ) -> Result<(StatusCode, Bytes), ServiceError> {
        let caller = self.caller();
        let access = Access {
            token: &caller.token,
            catalog: &caller.catalog,
        };
        let ask = Ask::get(services.endpoints.of(service), path, query);
        let mut response = services.connection.ask(access, &ask).await;
        if matches!(response, Err(ServiceError::Unavailable { .. })) && began.elapsed() < BROKE_AT_ONCE {
            response = services.connection.ask(access, &ask).await;
        }
        let response = response?;
        Ok((response.status(), response.into_body()))
    }
}

/// What has no meaning of its own in a URL stays as it is: not every proxy or server that looks at paths decodes them.
const IN_A_PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// `what` as one part of a path; `None` for a text that no id can be and that some server would take for a folder.
pub(super) fn part(what: &str) -> Option<String> {
    let is_id = !what.contains('/') && !what.chars().all(|one| one == '.');
    is_id.then(|| utf8_percent_encode(what, IN_A_PATH).to_string())
}

/// What a service's answer means.
fn read(service: Service, path: &str, status: StatusCode, body: &Bytes) -> Result<Answer, ApiFault> {
    match status {
        StatusCode::OK => {
            let document = serde_json::from_slice(body);
            document
                .map(Answer::Document)
                .map_err(|_| nonsense(service, path, "the answer is not JSON"))
        }
        StatusCode::NOT_FOUND => Ok(Answer::Missing),
        // Such as a name with characters that its database does not have.
        StatusCode::BAD_REQUEST => Ok(Answer::Unfit),
        StatusCode::FORBIDDEN => Ok(Answer::Forbidden),
        StatusCode::UNAUTHORIZED => {
            tracing::warn!(
                service = service.name(),
                path,
                "the service does not accept the caller's token"
            );
            Err(ApiFault::new(
                StatusCode::UNAUTHORIZED,
                format!(
                    "{} does not accept the token of the request. Please get a new one.",
                    service.name()
                ),
            ))
        }
        status
            if status.is_server_error()
                || matches!(
                    status,
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                ) =>
        {
            tracing::warn!(
                service = service.name(),
                path,
                { field::HTTP_STATUS } = status.as_u16(),
                "a look-up failed"
            );
            Err(away(service))
        }
        status => Err(nonsense(service, path, status.as_str())),
    }
}

/// A service that could not be asked.
fn unusable(service: Service, path: &str, error: &ServiceError) -> ApiFault {
    tracing::warn!(service = service.name(), path, error = %error, "a look-up failed");
    match error {
        ServiceError::Options(_) => unavailable(format!(
            "{} cannot be asked: the service catalog of the request's token has no endpoint of it that this service \
             can use.",
            service.name()
        )),
        _ => away(service),
    }
}

fn away(service: Service) -> ApiFault {
    unavailable(format!(
        "{} is not available at the moment, and the request cannot be checked without it. Nothing was changed. Please \
         try again later.",
        service.name()
    ))
}

/// A service whose answer is not what its API promises, or that is another than the catalog says. The log tells `why`;
/// `what` was asked for.
pub(super) fn nonsense(service: Service, what: &str, why: &str) -> ApiFault {
    tracing::warn!(
        service = service.name(),
        what,
        why,
        "a look-up's answer cannot be used"
    );
    unavailable(format!(
        "{} gave an answer that cannot be used, and the request cannot be checked without it. Nothing was changed.",
        service.name()
    ))
}

fn unavailable(detail: String) -> ApiFault {
    ApiFault::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

/// What the caller asked for is not the caller's to see.
pub(super) fn forbidden(service: Service, what: &str) -> ApiFault {
    ApiFault::new(
        StatusCode::FORBIDDEN,
        format!("{} does not allow the caller to see {what}.", service.name()),
    )
}

/// What [`nonsense`] says of a list that is not found: there is always one, if only an empty one.
pub(super) const NO_LIST: &str = "there is no such list; is this the service that the catalog says?";

/// The list under `key` of a document.
pub(super) fn items<'a>(
    service: Service,
    document: &'a Value,
    key: &str,
) -> Result<&'a Vec<Value>, ApiFault> {
    let list = document[key].as_array();
    list.ok_or_else(|| nonsense(service, key, "there is no such list in the answer"))
}
