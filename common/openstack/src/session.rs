//! A token of one of our own users, most often the service user, and requests with it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hyper::header::ACCEPT;
use hyper::{Method, Request, StatusCode};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::reply::take;
use super::{Access, Connection, Credentials, Endpoint, Reply, ServiceError, ServiceRequest};
use magnum_common::clock::utc_now;
use magnum_common::secret::Secret;

pub(super) const KEYSTONE: &str = "Keystone";
/// A token that ends sooner is not used for another request.
const RENEW_BEFORE: Duration = Duration::from_secs(60);

struct Token {
    id: Secret,
    ends: DateTime<Utc>,
    catalog: Value,
    /// Of a token whose scope is a domain.
    domain: Option<String>,
    /// Whose it is, for people.
    identity: String,
}

/// A user's session: the service user's is one for a process.
pub struct Session {
    pub(super) connection: Connection,
    pub(super) credentials: Credentials,
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
        Ok(Self {
            connection: Connection::new(&credentials.trust, credentials.timeout)?
                .limited_by(credentials.timeout_option),
            credentials,
            token: Mutex::new(Held::default()),
        })
    }

    /// Keystone, where this session logs in.
    pub fn keystone(&self) -> Endpoint {
        Endpoint::at_address(KEYSTONE, self.credentials.keystone.clone())
    }

    /// The id of the domain that the session is for; `None` for one with another scope.
    ///
    /// # Errors
    /// The session cannot be opened.
    pub async fn domain_id(&self) -> Result<Option<String>, ServiceError> {
        Ok(self.token(None).await?.domain.clone())
    }

    /// Logs in where that was not done yet, and says as whom and where, such as `magnum of project service at
    /// http://keystone:5000/v3`.
    ///
    /// # Errors
    /// The session cannot be opened.
    pub async fn identity(&self) -> Result<String, ServiceError> {
        let identity = self.token(None).await?.identity.clone();
        Ok(format!("{identity} at {}", self.credentials.keystone))
    }

    /// Asks Keystone, also where a token is at hand: for one who wants to know whether it answers. Says the same as
    /// [`Session::identity`].
    ///
    /// # Errors
    /// Keystone does not answer, or does not let the session's user in.
    pub async fn reach(&self) -> Result<String, ServiceError> {
        let keystone = self.keystone();
        let token = self.token(None).await?;
        let subject = [("X-Subject-Token", token.id.expose())];
        let question = ServiceRequest {
            headers: &subject,
            has_secret: true,
            ..ServiceRequest::get(&keystone, "/auth/tokens", &[("nocatalog", "")])
        };
        match self.request(&question).await {
            // That it does not know an old token is an answer, too: the request was sent with a new one then.
            Ok(_) | Err(ServiceError::NotFound { .. }) => self.identity().await,
            Err(error) => Err(error),
        }
    }

    /// Sends a request to a service as the session's user; a rejected token is renewed once.
    ///
    /// # Errors
    /// The session cannot be opened, the service cannot be reached, or its status is not 2xx: for 404 that is
    /// [`ServiceError::NotFound`].
    pub async fn request(&self, request: &ServiceRequest<'_>) -> Result<Reply, ServiceError> {
        let mut refused: Option<Arc<Token>> = None;
        loop {
            let token = self.token(refused.as_ref()).await?;
            let access = Access {
                token: &token.id,
                catalog: &token.catalog,
            };
            let response = self.connection.send(access, request).await?;
            if response.status() == StatusCode::UNAUTHORIZED && refused.is_none() {
                // Revoked, or Keystone forgot it: one more try with a new one.
                refused = Some(token);
                continue;
            }
            return take(
                request.endpoint.service,
                request.what(),
                response,
                request.has_secret,
            );
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
            .connection
            .exchange(KEYSTONE, request, Some(&self.credentials.body()))
            .await?;
        let id = response
            .headers()
            .get("X-Subject-Token")
            .and_then(|id| id.to_str().ok())
            .map(Secret::new);
        let what = format!("a token for {}", self.credentials.who);
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
            domain: document["token"]["domain"]["id"].as_str().map(str::to_owned),
            identity: identity(&document["token"]),
        })
    }
}

/// Whose token it is, and of which project or domain.
fn identity(token: &Value) -> String {
    let name = |what: &str| {
        let named = &token[what]["name"];
        named.as_str().or_else(|| token[what]["id"].as_str())
    };
    let user = name("user").unwrap_or("somebody");
    let scope = ["project", "domain"]
        .into_iter()
        .find_map(|scope| name(scope).map(|name| format!(" of {scope} {name}")));
    format!("{user}{}", scope.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_identity_is_shown_by_names_where_there_are_any() {
        let token = json!({"user": {"id": "1", "name": "magnum"}, "project": {"id": "2", "name": "service"}});
        assert_eq!(identity(&token), "magnum of project service");
        let token = json!({"user": {"id": "1"}, "domain": {"id": "d"}});
        assert_eq!(identity(&token), "1 of domain d");
        assert_eq!(identity(&json!({"user": {"name": "magnum"}})), "magnum");
    }
}
