//! Requests with the token of somebody else than the service user.

use hyper::header::ACCEPT;
use hyper::{Method, Request};
use serde_json::Value;

use super::catalog::base;
use super::reply::take;
use super::session::KEYSTONE;
use super::{Access, Endpoint, Reply, ServiceError, ServiceRequest, Session};
use magnum_common::secret::Secret;

/// A user's token with the catalog that belongs to it: endpoints may have the user's project in their path.
pub struct UserSession<'a> {
    service: &'a Session,
    token: Secret,
    catalog: Value,
}

impl Session {
    /// A session of whoever has `token`, through the same Keystone and the same connections.
    ///
    /// # Errors
    /// [`ServiceError::Refused`]: the token has expired or was revoked. Otherwise Keystone is away.
    pub async fn of_user(&self, token: Secret) -> Result<UserSession<'_>, ServiceError> {
        let request = Request::builder()
            .method(Method::GET)
            .uri(format!("{}/auth/catalog", self.credentials.keystone))
            .header(ACCEPT, "application/json")
            .header("X-Auth-Token", token.expose());
        let response = self.connection.exchange(KEYSTONE, request, None).await?;
        let reply = take(
            KEYSTONE,
            "the catalog of the user's token".to_owned(),
            response,
            false,
        )?;
        Ok(UserSession {
            service: self,
            catalog: reply.json()?["catalog"].take(),
            token,
        })
    }
}

impl UserSession<'_> {
    /// Where the user's catalog has a service.
    ///
    /// # Errors
    /// It does not have it.
    pub fn address(&self, endpoint: &Endpoint) -> Result<String, ServiceError> {
        base(&self.catalog, endpoint)
    }

    /// Sends a request to a service. As [`Session::request`], but a token that is refused stays refused.
    ///
    /// # Errors
    /// As those of [`Session::request`].
    pub async fn request(&self, request: &ServiceRequest<'_>) -> Result<Reply, ServiceError> {
        let access = Access {
            token: &self.token,
            catalog: &self.catalog,
        };
        let response = self.service.connection.send(access, request).await?;
        take(
            request.endpoint.service,
            request.what(),
            response,
            request.has_secret,
        )
    }
}
