//! Who is asking.
//!
//! [`authenticate`] stands before every route but the public ones (`/`, `/v1`, the health check) and leaves the
//! [`Caller`] for the request's context. `[api] auth_strategy` says how the caller is known: by a Keystone token
//! (`keystone`, the default), or by what the request itself says (`noauth`, for one machine).
//!
//! Guarantees: behind the strategy `keystone` no handler runs for a request without a valid token, not even the one that
//! says 404; identity headers that a client sends are not looked at. On public routes nobody is identified, so a bad
//! token does no harm there. Where this differs from Keystone's middleware is in `docs/differences.md`.

mod access_rules;
mod cache;
mod identity;
mod keystone;
mod memcached;
mod noauth;
mod shared_cache;
mod strangers;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use magnum_common::context::Caller;
use magnum_config::{AuthStrategy, Settings};
use magnum_openstack::ServiceError;
use serde_json::json;

use crate::edge::arrival::Noted;
use crate::edge::forwarded::Outside;
use crate::edge::path::method_sent;

use self::keystone::Strategy;

/// How callers are identified.
pub enum Authenticator {
    /// By their own words.
    Noauth {
        /// What drivers get as the authentication URL.
        auth_url: Option<String>,
    },
    /// Keystone tokens.
    Keystone(Box<Strategy>),
}

/// What of a request says who sends it.
pub struct Credentials<'a> {
    /// All headers of the request.
    pub headers: &'a HeaderMap,
    /// The method that the client has sent.
    pub method: Method,
    /// The path in its one form, which begins with `/v1`.
    pub path: &'a str,
    /// The address that it comes from, as the nearest trusted proxy has seen it.
    pub address: &'a str,
}

/// Why a request goes no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// No valid token: 401, with the place where there are some.
    Unauthorized {
        /// The value of `WWW-Authenticate`.
        challenge: HeaderValue,
    },
    /// Nobody can tell at the moment: 503.
    Unavailable,
}

impl Authenticator {
    /// The strategy that the settings name. Connects to nothing yet.
    ///
    /// # Errors
    /// Names the option that is missing or cannot be used.
    pub fn from_settings(settings: &Settings) -> Result<Self, ServiceError> {
        match settings.api.auth_strategy {
            AuthStrategy::Noauth => {
                tracing::warn!(
                    "[api] auth_strategy = noauth: every client of this API is an administrator. Keep it on \
                     127.0.0.1."
                );
                Ok(Self::Noauth {
                    auth_url: settings.keystone_authtoken.www_authenticate_uri.clone(),
                })
            }
            AuthStrategy::Keystone => Ok(Self::Keystone(Box::new(Strategy::new(settings)?))),
        }
    }

    /// As whom Keystone is asked about tokens, and where it is; `None` where it is not asked.
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user in.
    pub async fn service_user(&self) -> Result<Option<String>, ServiceError> {
        match self {
            Self::Noauth { .. } => Ok(None),
            Self::Keystone(strategy) => strategy.service_user().await.map(Some),
        }
    }

    /// Asks Keystone now, whether a token of the service user is at hand or not, and says the same as
    /// [`Authenticator::service_user`].
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user in.
    pub async fn reach_keystone(&self) -> Result<Option<String>, ServiceError> {
        match self {
            Self::Noauth { .. } => Ok(None),
            Self::Keystone(strategy) => strategy.reach_keystone().await.map(Some),
        }
    }

    /// Who sends a request.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn identify(&self, credentials: &Credentials<'_>) -> Result<Caller, Refusal> {
        match self {
            Self::Noauth { auth_url } => Ok(noauth::caller(credentials.headers, auth_url.clone())),
            Self::Keystone(strategy) => strategy.identify(credentials).await,
        }
    }
}

/// Middleware around the routes: finds out who asks, or answers 401 or 503.
pub async fn authenticate(
    State(authenticator): State<Arc<Authenticator>>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_public(request.uri().path()) {
        return next.run(request).await;
    }
    let credentials = Credentials {
        method: method_sent(&request),
        headers: request.headers(),
        path: request.uri().path(),
        address: request
            .extensions()
            .get::<Outside>()
            .map_or("", |outside| outside.nearest.as_str()),
    };
    match authenticator.identify(&credentials).await {
        Ok(caller) => {
            if let Some(noted) = request.extensions().get::<Arc<Noted>>() {
                noted.caller(&caller);
            }
            request.extensions_mut().insert(Arc::new(caller));
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

/// Paths, in their one form, at which nobody is identified. The `.json` ones are Magnum's; they are a 404.
fn is_public(path: &str) -> bool {
    matches!(path, "/" | "/v1" | "/v1/.json" | "/v1/v1.json" | "/healthcheck")
        || path.starts_with("/healthcheck/")
}

/// Magnum's policy rule `context_is_admin`. Role names compare without case, as oslo.policy does.
fn is_admin(roles: &[String]) -> bool {
    roles.iter().any(|role| role.eq_ignore_ascii_case("admin"))
}

impl IntoResponse for Refusal {
    /// In the shape of Keystone's middleware, which clients tell from the API's own errors: `error`, not `errors`.
    fn into_response(self) -> Response {
        let (status, title, message) = match &self {
            Self::Unauthorized { .. } => (
                StatusCode::UNAUTHORIZED,
                "Unauthorized",
                "The request you have made requires authentication.",
            ),
            Self::Unavailable => (
                StatusCode::SERVICE_UNAVAILABLE,
                "Service Unavailable",
                "The Keystone service is temporarily unavailable.",
            ),
        };
        let body = json!({"error": {"code": status.as_u16(), "title": title, "message": message}});
        let mut response = (
            status,
            [(header::CONTENT_TYPE, "application/json")],
            body.to_string(),
        )
            .into_response();
        if let Self::Unauthorized { challenge } = self {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_version_documents_are_public() {
        for path in ["/", "/v1", "/healthcheck", "/healthcheck/x", "/v1/v1.json"] {
            assert!(is_public(path), "{path}");
        }
        for path in [
            "/v1/",
            "/v1/clusters",
            "/v1/healthcheck",
            "/healthchecks",
            "/v1/v1",
            "//",
            "",
        ] {
            assert!(!is_public(path), "{path}");
        }
    }
}
