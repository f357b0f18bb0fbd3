//! One exchange with a service, within the limits of time and size, over kept connections.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::http::request::Builder;
use hyper::{Method, Request, Response};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use super::catalog::{base, encoded};
use super::tls::{self, Trust};
use super::{Endpoint, ServiceError};
use magnum_common::error::with_causes;
use magnum_common::secret::Secret;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// A service's answers are small; a larger one is not read into memory.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

/// As whom a service is asked, and where it is.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// Goes with the request.
    pub token: &'a Secret,
    /// Keystone's catalog, as a token's document has it.
    pub catalog: &'a Value,
}

/// One request to a service.
#[derive(Clone)]
pub struct Ask<'a> {
    /// The service.
    pub endpoint: &'a Endpoint,
    /// HTTP's.
    pub method: Method,
    /// Begins with a slash and is put behind the endpoint of the catalog.
    pub path: &'a str,
    /// Not encoded yet.
    pub query: &'a [(&'a str, &'a str)],
    /// The type of the answer.
    pub accept: &'static str,
    /// JSON.
    pub body: Option<&'a Value>,
    /// Besides the usual ones. Not quoted in errors.
    pub headers: &'a [(&'static str, &'a str)],
    /// The service's words about a refusal may quote the body, so they are left out.
    pub has_secret: bool,
}

impl<'a> Ask<'a> {
    /// For the JSON that is at `path`.
    pub fn get(endpoint: &'a Endpoint, path: &'a str, query: &'a [(&'a str, &'a str)]) -> Self {
        Self {
            endpoint,
            method: Method::GET,
            path,
            query,
            accept: "application/json",
            body: None,
            headers: &[],
            has_secret: false,
        }
    }

    /// For people.
    pub fn what(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// Connections to services, one pool for a process.
pub struct Connection {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    section: &'static str,
    timeout: Duration,
    timeout_option: &'static str,
}

impl Connection {
    /// Connects to nothing yet. `timeout` is for a whole exchange.
    ///
    /// # Errors
    /// A file of certificates cannot be read.
    pub fn new(trust: &Trust, timeout: Duration) -> Result<Self, ServiceError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN.min(timeout)));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(trust)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Self {
            http: Client::builder(TokioExecutor::new()).build(connector),
            section: trust.section,
            timeout,
            timeout_option: "[keystone_auth] timeout",
        })
    }

    /// The same, when another option says how long an exchange may take: errors name it.
    #[must_use]
    pub fn limited_by(self, timeout_option: &'static str) -> Self {
        Self {
            timeout_option,
            ..self
        }
    }

    /// Asks a service that the catalog has. Any status is an answer.
    pub async fn ask(&self, access: Access<'_>, ask: &Ask<'_>) -> Result<Response<Bytes>, ServiceError> {
        let url = format!(
            "{}{}{}",
            base(access.catalog, ask.endpoint)?,
            ask.path,
            encoded(ask.query)
        );
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(url)
            .header("X-Auth-Token", access.token.expose())
            .header(ACCEPT, ask.accept);
        for (name, value) in ask.headers {
            request = request.header(*name, *value);
        }
        self.send(ask.endpoint.service, request, ask.body).await
    }

    /// Sends and reads the whole answer, within the limit of time and of size.
    pub(super) async fn send(
        &self,
        service: &'static str,
        request: Builder,
        body: Option<&Value>,
    ) -> Result<Response<Bytes>, ServiceError> {
        let (request, text) = match body {
            Some(body) => (request.header(CONTENT_TYPE, "application/json"), body.to_string()),
            None => (request, String::new()),
        };
        let request = request.body(Full::from(text)).map_err(|error| {
            ServiceError::Options(format!("the address of {service} is not a URL: {error}"))
        })?;
        let exchange = async {
            let response = self
                .http
                .request(request)
                .await
                .map_err(|error| self.failure(service, &error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, LARGEST_ANSWER)
                .collect()
                .await
                .map_err(|error| self.failure(service, error.as_ref()))?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        let (limit, option) = (self.timeout, self.timeout_option);
        tokio::time::timeout(limit, exchange).await.unwrap_or_else(|_| {
            Err(ServiceError::Unavailable {
                service,
                reason: format!("no answer within {limit:?} ({option})"),
            })
        })
    }

    fn failure(&self, service: &'static str, error: &(dyn std::error::Error + 'static)) -> ServiceError {
        match tls::distrust(self.section, error) {
            Some((reason, advice)) => ServiceError::Untrusted {
                service,
                reason,
                advice,
            },
            None => ServiceError::Unavailable {
                service,
                reason: with_causes(error),
            },
        }
    }
}
