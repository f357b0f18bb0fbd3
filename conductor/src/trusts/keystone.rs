//! What is asked of Keystone for the user and the trust of a cluster. Every request may be repeated.

use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_openstack::{Credentials, Method, ServiceError, ServiceRequest, Session};
use serde_json::{Value, json};

/// The domain of clusters' users, by its administrator.
pub(super) struct TrusteeDomain {
    admin: Session,
    credentials: Credentials,
}

/// Who trusts, and in what.
pub(super) struct Trustor {
    /// The user's token.
    pub(super) token: Secret,
    /// The user.
    pub(super) user: String,
    /// The project in which the trustee may act.
    pub(super) project: String,
    /// The roles with which it may.
    pub(super) roles: Vec<String>,
}

impl TrusteeDomain {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// An option of `[trust]` or `[keystone_auth]` is missing, or a file of certificates cannot be read.
    pub(super) fn new(settings: &Settings) -> Result<Self, ServiceError> {
        let credentials = Credentials::of_trustee_domain_admin(settings)?;
        Ok(Self {
            admin: Session::new(credentials.clone())?,
            credentials,
        })
    }

    /// Makes the user, or gives the one of that name the password. Returns its id.
    pub(super) async fn make_user(&self, name: &str, password: &Secret) -> Result<String, ServiceError> {
        if let Some(id) = self.find_user(name).await? {
            self.set_password(&id, password).await?;
            return Ok(id);
        }
        let domain = self.admin.domain_id().await?;
        let body = json!({"user": {
            "name": name, "password": password.expose(), "domain_id": domain, "enabled": true,
        }});
        let made = self.send(Method::POST, "/users", Some(&body)).await?;
        id_in(&made, "user")
    }

    /// Gives a user a password. One that is gone has none.
    pub(super) async fn set_password(&self, id: &str, password: &Secret) -> Result<(), ServiceError> {
        let body = json!({"user": {"password": password.expose(), "enabled": true}});
        match self
            .send(Method::PATCH, &format!("/users/{id}"), Some(&body))
            .await
        {
            Ok(_) | Err(ServiceError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn find_user(&self, name: &str) -> Result<Option<String>, ServiceError> {
        let keystone = self.admin.keystone();
        let domain = self.admin.domain_id().await?.unwrap_or_default();
        let query = [("name", name), ("domain_id", domain.as_str())];
        let found = self
            .admin
            .request(&ServiceRequest::get(&keystone, "/users", &query))
            .await?
            .json()?;
        let first = found["users"].as_array().and_then(|users| users.first());
        Ok(first.and_then(|user| user["id"].as_str()).map(str::to_owned))
    }

    /// Makes a trust in this user. With `looks_first`, one that is there already is used: an attempt before this one may
    /// have made it. Returns its id.
    pub(super) async fn make_trust(
        &self,
        trustor: &Trustor,
        trustee: &str,
        looks_first: bool,
    ) -> Result<String, ServiceError> {
        let keystone = self.admin.keystone();
        let user = self.admin.of_user(trustor.token.clone()).await?;
        if looks_first {
            let query = [("trustor_user_id", trustor.user.as_str())];
            let request = ServiceRequest::get(&keystone, "/OS-TRUST/trusts", &query);
            let found = user.request(&request).await?.json()?;
            let mut trusts = found["trusts"].as_array().into_iter().flatten();
            let ours = trusts.find(|trust| trust["trustee_user_id"] == trustee);
            if let Some(id) = ours.and_then(|trust| trust["id"].as_str()) {
                return Ok(id.to_owned());
            }
        }
        let roles: Vec<Value> = trustor.roles.iter().map(|name| json!({"name": name})).collect();
        let body = json!({"trust": {
            "trustor_user_id": trustor.user,
            "trustee_user_id": trustee,
            "project_id": trustor.project,
            "impersonation": true,
            "allow_redelegation": false,
            "roles": roles,
        }});
        let request = ServiceRequest {
            method: Method::POST,
            body: Some(&body),
            ..ServiceRequest::get(&keystone, "/OS-TRUST/trusts", &[])
        };
        id_in(&user.request(&request).await?.json()?, "trust")
    }

    /// Removes a trust as its trustee: the one who made it may be gone. A trust that cannot be used any more is none.
    pub(super) async fn remove_trust(
        &self,
        trust: &str,
        trustee: &str,
        password: Secret,
    ) -> Result<(), ServiceError> {
        let session = Session::new(self.credentials.of_trustee(trustee, password, trust))?;
        let keystone = session.keystone();
        let path = format!("/OS-TRUST/trusts/{trust}");
        let request = ServiceRequest {
            method: Method::DELETE,
            ..ServiceRequest::get(&keystone, &path, &[])
        };
        match session.request(&request).await {
            Ok(_) | Err(ServiceError::NotFound { .. }) => Ok(()),
            Err(error @ ServiceError::Refused { .. }) => {
                tracing::debug!(%error, "the trust cannot be used any more");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Removes a user, by its id where that is known, else by its name.
    pub(super) async fn remove_user(&self, id: Option<&str>, name: &str) -> Result<(), ServiceError> {
        let id = match id {
            Some(id) => id.to_owned(),
            None => match self.find_user(name).await? {
                Some(id) => id,
                None => return Ok(()),
            },
        };
        let keystone = self.admin.keystone();
        let path = format!("/users/{id}");
        let request = ServiceRequest {
            method: Method::DELETE,
            ..ServiceRequest::get(&keystone, &path, &[])
        };
        match self.admin.request(&request).await {
            Ok(_) | Err(ServiceError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A request with a password in its body.
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ServiceError> {
        let keystone = self.admin.keystone();
        let request = ServiceRequest {
            method,
            body,
            has_secret: true,
            ..ServiceRequest::get(&keystone, path, &[])
        };
        self.admin.request(&request).await?.json()
    }
}

fn id_in(document: &Value, what: &str) -> Result<String, ServiceError> {
    let id = document[what]["id"].as_str();
    id.map(str::to_owned).ok_or_else(|| ServiceError::Answer {
        service: "Keystone",
        what: format!("a new {what}"),
        reason: "it has no id".to_owned(),
    })
}
