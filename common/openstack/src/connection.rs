//! One exchange with a service, within the limits of time and size, over kept connections.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::http::request::Builder;
use hyper::http::uri::Scheme;
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

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of a response in memory, in bytes: those of services are small.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;

/// Authentication of a request: a token, and the catalog with the endpoints for it.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// Sent in `X-Auth-Token`.
    pub token: &'a Secret,
    /// The service catalog, as in the token's document.
    pub catalog: &'a Value,
}

/// One request to a service.
#[derive(Clone)]
pub struct ServiceRequest<'a> {
    /// The service.
    pub endpoint: &'a Endpoint,
    /// HTTP method.
    pub method: Method,
    /// Path below the endpoint of the catalog, with a leading slash.
    pub path: &'a str,
    /// Query parameters, not percent-encoded.
    pub query: &'a [(&'a str, &'a str)],
    /// `Accept`: the media type of the response.
    pub accept: &'static str,
    /// JSON body.
    pub body: Option<&'a Value>,
    /// Additional headers. Not quoted in errors.
    pub headers: &'a [(&'static str, &'a str)],
    /// Whether the body has a secret: the service's text about a refusal may quote it, so errors leave that out.
    pub has_secret: bool,
}

impl<'a> ServiceRequest<'a> {
    /// GET of a JSON document.
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
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT.min(timeout)));
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

    /// Sends a request to the service's endpoint in the catalog, and reads the whole response, whatever its status.
    ///
    /// # Errors
    /// The catalog has no such endpoint, the service cannot be reached or verified, or the response is larger than 4 MiB
    /// or not complete within the time limit.
    pub async fn send(
        &self,
        access: Access<'_>,
        request: &ServiceRequest<'_>,
    ) -> Result<Response<Bytes>, ServiceError> {
        let url = format!(
            "{}{}{}",
            base(access.catalog, request.endpoint)?,
            request.path,
            encoded(request.query)
        );
        let mut http = Request::builder()
            .method(request.method.clone())
            .uri(url)
            .header("X-Auth-Token", access.token.expose())
            .header(ACCEPT, request.accept);
        for (name, value) in request.headers {
            http = http.header(*name, *value);
        }
        self.exchange(request.endpoint.service, http, request.body).await
    }

    /// Sends a request and reads the whole response, within the limits of time and size.
    pub(super) async fn exchange(
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
        let is_tls = request.uri().scheme() == Some(&Scheme::HTTPS);
        let exchange = async {
            let response = self
                .http
                .request(request)
                .await
                .map_err(|error| self.failure(service, is_tls, &error))?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_RESPONSE_BYTES)
                .collect()
                .await
                .map_err(|error| self.failure(service, is_tls, error.as_ref()))?;
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

    fn failure(
        &self,
        service: &'static str,
        is_tls: bool,
        error: &(dyn std::error::Error + 'static),
    ) -> ServiceError {
        match tls::distrust(self.section, error) {
            Some((reason, advice)) => ServiceError::Untrusted {
                service,
                reason,
                advice,
            },
            None if is_tls && tls::hung_up_unasked(error) => ServiceError::Unavailable {
                service,
                reason: format!(
                    "it hung up before it was asked ({}); {}",
                    with_causes(error),
                    tls::wants_a_certificate(self.section)
                ),
            },
            None => ServiceError::Unavailable {
                service,
                reason: with_causes(error),
            },
        }
    }
}
