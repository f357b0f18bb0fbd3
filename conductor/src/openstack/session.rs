//! One token, and requests with it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use magnum_common::clock::utc_now;
use magnum_common::error::with_causes;
use magnum_common::secret::Secret;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::{Credentials, ServiceError, tls};

const KEYSTONE: &str = "Keystone";
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// A token that ends sooner is not used for another request.
const RENEW_BEFORE: Duration = Duration::from_secs(60);
/// More of an error's text is not shown.
const SHOWN: usize = 300;
/// A service's answers are small; a larger one is not read into memory.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;

/// How a service is found in the catalog.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What people call the service.
    pub service: &'static str,
    /// Its type in the catalog.
    pub kind: &'static str,
    /// `public`, `internal` or `admin`.
    pub interface: String,
    /// Its region; any when none is given.
    pub region: Option<String>,
}

impl Endpoint {
    /// From `endpoint_type` and `region_name`: `publicURL` and `public` are the same.
    pub fn new(
        service: &'static str,
        kind: &'static str,
        endpoint_type: &str,
        region: Option<String>,
    ) -> Self {
        Self {
            service,
            kind,
            interface: endpoint_type.trim_end_matches("URL").to_owned(),
            region,
        }
    }
}

/// A service's answer.
#[derive(Debug)]
pub struct Reply {
    what: String,
    service: &'static str,
    body: Vec<u8>,
}

impl Reply {
    /// The body as JSON.
    pub fn json(&self) -> Result<Value, ServiceError> {
        serde_json::from_slice(&self.body).map_err(|_| self.unusable("it is not JSON"))
    }

    /// The body as text.
    pub fn text(self) -> Result<String, ServiceError> {
        String::from_utf8(self.body).map_err(|_| ServiceError::Answer {
            service: self.service,
            what: self.what.clone(),
            reason: "it is not text".to_owned(),
        })
    }

    /// An error about this answer.
    pub fn unusable(&self, reason: &str) -> ServiceError {
        ServiceError::Answer {
            service: self.service,
            what: self.what.clone(),
            reason: reason.to_owned(),
        }
    }
}

struct Token {
    id: Secret,
    ends: DateTime<Utc>,
    catalog: Value,
}

/// The service user's session. One for a process.
pub struct Session {
    http: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    credentials: Credentials,
    /// Held while a new one is fetched, so that a hundred requests fetch one.
    token: Mutex<Held>,
}

/// The token in use, or what came of the last attempt to get one.
#[derive(Default)]
struct Held {
    token: Option<Arc<Token>>,
    /// When it failed. Who was waiting then does not try again by itself: a hundred requests that wait for a
    /// Keystone that does not answer fail together, not one after the other.
    failed: Option<(Instant, ServiceError)>,
}

impl Session {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// A file of certificates cannot be read.
    pub fn new(credentials: Credentials) -> Result<Self, ServiceError> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN.min(credentials.timeout)));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(&credentials)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        Ok(Self {
            http: Client::builder(TokioExecutor::new()).build(connector),
            credentials,
            token: Mutex::new(Held::default()),
        })
    }

    /// Asks a service. `path` begins with a slash and is put behind the endpoint of the catalog. Answers of 2xx come
    /// back; everything else is an error, 404 a [`ServiceError::NotFound`]. `has_secret`: the service's words about a
    /// refusal may quote the body, so they are left out.
    pub async fn request(
        &self,
        endpoint: &Endpoint,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        has_secret: bool,
    ) -> Result<Reply, ServiceError> {
        let mut refused: Option<Arc<Token>> = None;
        loop {
            let token = self.token(refused.as_ref()).await?;
            let url = format!("{}{path}{}", base(&token.catalog, endpoint)?, encoded(query));
            let accept = if path.ends_with("/payload") {
                "text/plain"
            } else {
                "application/json"
            };
            let request = Request::builder()
                .method(method.clone())
                .uri(url)
                .header("X-Auth-Token", token.id.expose())
                .header(ACCEPT, accept);
            let response = self.send(endpoint.service, request, body).await?;
            if response.status() == StatusCode::UNAUTHORIZED && refused.is_none() {
                // Revoked, or Keystone forgot it: one more try with a new one.
                refused = Some(token);
                continue;
            }
            let what = format!("{method} {path}");
            return take(endpoint.service, what, response, has_secret);
        }
    }

    /// Sends and reads the whole answer, within the limit of time and of size.
    async fn send(
        &self,
        service: &'static str,
        request: hyper::http::request::Builder,
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
        let limit = self.credentials.timeout;
        tokio::time::timeout(limit, exchange).await.unwrap_or_else(|_| {
            Err(ServiceError::Unavailable {
                service,
                reason: format!("no answer within {limit:?} ([keystone_auth] timeout)"),
            })
        })
    }

    fn failure(&self, service: &'static str, error: &(dyn std::error::Error + 'static)) -> ServiceError {
        match tls::distrust(self.credentials.section, error) {
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

    /// The token in use; a new one when there is none, when it ends soon, or when it was `refused`.
    async fn token(&self, refused: Option<&Arc<Token>>) -> Result<Arc<Token>, ServiceError> {
        let asked = Instant::now();
        let mut held = self.token.lock().await;
        if let Some(token) = held.token.as_ref() {
            let is_refused = refused.is_some_and(|refused| Arc::ptr_eq(refused, token));
            if !is_refused && utc_now() + RENEW_BEFORE < token.ends {
                return Ok(Arc::clone(token));
            }
        }
        if let Some((when, error)) = &held.failed
            && asked < *when
        {
            return Err(error.clone());
        }
        match self.authenticate().await {
            Ok(token) => {
                let token = Arc::new(token);
                *held = Held {
                    token: Some(Arc::clone(&token)),
                    failed: None,
                };
                Ok(token)
            }
            Err(error) => {
                held.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    async fn authenticate(&self) -> Result<Token, ServiceError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(format!("{}/auth/tokens", self.credentials.keystone))
            .header(ACCEPT, "application/json");
        let response = self
            .send(KEYSTONE, request, Some(&self.credentials.body()))
            .await?;
        let id = response
            .headers()
            .get("X-Subject-Token")
            .and_then(|id| id.to_str().ok())
            .map(Secret::new);
        let what = "a token for the service user of [keystone_auth]".to_owned();
        let reply = take(KEYSTONE, what, response, false)?;
        let document = reply.json()?;
        let ends = document["token"]["expires_at"]
            .as_str()
            .and_then(|text| DateTime::parse_from_rfc3339(text).ok())
            .ok_or_else(|| reply.unusable("it does not say when the token expires"))?;
        Ok(Token {
            id: id.ok_or_else(|| reply.unusable("it has no X-Subject-Token"))?,
            ends: ends.into(),
            catalog: document["token"]["catalog"].clone(),
        })
    }
}

/// A query's text, with its question mark.
fn encoded(query: &[(&str, &str)]) -> String {
    let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    query
        .iter()
        .enumerate()
        .map(|(index, (name, value))| {
            let sign = if index == 0 { '?' } else { '&' };
            format!("{sign}{}={}", encode(name), encode(value))
        })
        .collect()
}

/// An answer that is one, or what is wrong.
fn take(
    service: &'static str,
    what: String,
    response: Response<Bytes>,
    has_secret: bool,
) -> Result<Reply, ServiceError> {
    let (status, body) = (response.status(), response.into_body().to_vec());
    if status.is_success() {
        return Ok(Reply { what, service, body });
    }
    let words = if has_secret { String::new() } else { words(&body) };
    let reason = format!("HTTP {}{words}", status.as_u16());
    let is_passing = status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
        );
    Err(if is_passing {
        ServiceError::Unavailable { service, reason }
    } else if status == StatusCode::NOT_FOUND {
        ServiceError::NotFound { service, what }
    } else {
        ServiceError::Refused {
            service,
            what,
            reason,
        }
    })
}

/// What an error's body says, in the shapes of Keystone and Barbican.
fn words(body: &[u8]) -> String {
    let Ok(document) = serde_json::from_slice::<Value>(body) else {
        return String::new();
    };
    let found = [
        &document["error"]["message"],
        &document["description"],
        &document["title"],
    ]
    .into_iter()
    .find_map(Value::as_str);
    found.map_or_else(String::new, |text| {
        format!(": {}", text.chars().take(SHOWN).collect::<String>())
    })
}

/// A service's address in a catalog, without a slash at its end.
fn base(catalog: &Value, endpoint: &Endpoint) -> Result<String, ServiceError> {
    let endpoints = catalog
        .as_array()
        .into_iter()
        .flatten()
        .filter(|service| service["type"] == endpoint.kind)
        .filter_map(|service| service["endpoints"].as_array())
        .flatten();
    endpoints
        .filter(|found| found["interface"] == *endpoint.interface)
        .find(|found| {
            endpoint
                .region
                .as_deref()
                .is_none_or(|region| found["region_id"] == *region || found["region"] == *region)
        })
        .and_then(|found| found["url"].as_str())
        .map(|url| url.trim_end_matches('/').to_owned())
        .ok_or_else(|| {
            let region = endpoint
                .region
                .as_deref()
                .map_or_else(String::new, |region| format!(" in region {region}"));
            ServiceError::Options(format!(
                "Keystone's catalog has no {} endpoint of type {}{region} for the service user; check \
                 [barbican_client] region_name and endpoint_type",
                endpoint.interface, endpoint.kind
            ))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(endpoint_type: &str, region: Option<&str>) -> Result<String, ServiceError> {
        let catalog = json!([
            {"type": "identity", "endpoints": [{"interface": "public", "url": "http://k"}]},
            {"type": "key-manager", "endpoints": [
                {"interface": "public", "region_id": "one", "url": "http://b1/"},
                {"interface": "internal", "region_id": "one", "url": "http://i1"},
                {"interface": "public", "region": "two", "url": "http://b2"},
            ]},
        ]);
        base(
            &catalog,
            &Endpoint::new(
                "Barbican",
                "key-manager",
                endpoint_type,
                region.map(str::to_owned),
            ),
        )
    }

    #[test]
    fn the_catalog_is_searched_by_interface_and_region() {
        assert_eq!(find("publicURL", None).unwrap(), "http://b1");
        assert_eq!(find("public", Some("two")).unwrap(), "http://b2");
        assert_eq!(find("internalURL", Some("one")).unwrap(), "http://i1");
        let told = find("adminURL", Some("one")).unwrap_err().to_string();
        assert!(told.contains("admin") && told.contains("region one"), "{told}");
    }

    #[test]
    fn a_services_words_are_found_in_every_shape_and_cut() {
        assert_eq!(words(br#"{"error": {"message": "no"}}"#), ": no");
        assert_eq!(words(br#"{"title": "t", "description": "d"}"#), ": d");
        assert_eq!(words(b"<html>"), "");
        let long = json!({"title": "x".repeat(1000)}).to_string();
        assert_eq!(words(long.as_bytes()).len(), SHOWN + 2);
    }

    #[test]
    fn a_query_is_encoded() {
        assert_eq!(encoded(&[]), "");
        assert_eq!(
            encoded(&[("name", "a (b)/ü"), ("limit", "1")]),
            "?name=a%20%28b%29%2F%C3%BC&limit=1"
        );
    }
}
