//! The look-ups of one request: each question is asked once, all of them within one limit of time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use magnum_common::context::RequestContext;
use magnum_common::secret::Secret;
use magnum_openstack::{Access, ServiceError, ServiceRequest};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::error::CloudError;
use super::{Services, Source};
use crate::metric_definitions;
use magnum_openstack::Service;

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
type Outcome = Result<Arc<LookupResponse>, CloudError>;

/// How a service responded to a look-up.
#[derive(Debug, PartialEq)]
pub(super) enum LookupResponse {
    /// With the document.
    Document(Value),
    /// It has no such thing.
    Missing,
    /// The id or name is not valid there: no such thing can exist.
    BadName,
    /// The caller may not see that.
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
    ) -> Result<Arc<LookupResponse>, CloudError> {
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
        let outcome = response.map_err(|error| not_asked(service, path, error));
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
        let request = ServiceRequest::get(services.endpoints.of(service), path, query);
        let mut response = services.connection.send(access, &request).await;
        if matches!(response, Err(ServiceError::Unavailable { .. })) && began.elapsed() < BROKE_AT_ONCE {
            response = services.connection.send(access, &request).await;
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
fn read(
    service: Service,
    path: &str,
    status: StatusCode,
    body: &Bytes,
) -> Result<LookupResponse, CloudError> {
    match status {
        StatusCode::OK => {
            let document = serde_json::from_slice(body);
            document
                .map(LookupResponse::Document)
                .map_err(|_| bad_response(service, path, "it is not JSON"))
        }
        StatusCode::NOT_FOUND => Ok(LookupResponse::Missing),
        // Such as a name with characters that its database does not have.
        StatusCode::BAD_REQUEST => Ok(LookupResponse::BadName),
        StatusCode::FORBIDDEN => Ok(LookupResponse::Forbidden),
        StatusCode::UNAUTHORIZED => Err(CloudError::TokenRejected {
            service,
            path: path.to_owned(),
        }),
        status
            if status.is_server_error()
                || matches!(
                    status,
                    StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                ) =>
        {
            Err(CloudError::Failed {
                service,
                path: path.to_owned(),
                status,
            })
        }
        status => Err(bad_response(service, path, status.as_str())),
    }
}

/// The service could not be asked.
fn not_asked(service: Service, path: &str, error: ServiceError) -> CloudError {
    let (path, source) = (path.to_owned(), Arc::new(error));
    match &*source {
        ServiceError::Options(_) => CloudError::NoEndpoint {
            service,
            path,
            source,
        },
        _ => CloudError::Unreachable {
            service,
            path,
            source,
        },
    }
}

/// A response that is not what the service's API promises, or that comes from another service than the catalog says.
pub(super) fn bad_response(service: Service, subject: &str, reason: &str) -> CloudError {
    CloudError::BadResponse {
        service,
        subject: subject.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Why a list that is not found is a [`bad_response`]: there is always one, if only an empty one.
pub(super) const NO_LIST: &str = "there is no such list; is this the service that the catalog says?";

/// The list under `key` of a document.
pub(super) fn items<'a>(
    service: Service,
    document: &'a Value,
    key: &str,
) -> Result<&'a Vec<Value>, CloudError> {
    let list = document[key].as_array();
    list.ok_or_else(|| bad_response(service, key, "there is no such list in it"))
}
