//! `[api] auth_strategy = keystone`: Keystone validates the token in `X-Auth-Token`, as
//! Keystone's own middleware finds it out with `delay_auth_decision = false`.
//!
//! A service that acts for a user may add its own token in `X-Service-Token`. Then the user's token may have expired,
//! if the service has one of `service_token_roles`; and access rules of the user's application credential do not apply,
//! since the request was not the user's. An invalid service token spoils the request.
//!
//! Guarantees: what is not known for certain is refused. 401 when a token is missing, unknown, expired, revoked, bound to
//! something that cannot be checked, or not made for this request; 503 when Keystone cannot be asked and nothing is
//! remembered. Neither says which.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue};
use magnum_common::context::Caller;
use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_openstack::{Keystone, ServiceError, ValidationOptions};

use super::cache::{NotKnown, Tokens};
use super::identity::Identity;
use super::{Credentials, Refusal};

/// Validates tokens as `[keystone_authtoken]` says.
pub struct Strategy {
    tokens: Tokens,
    challenge: HeaderValue,
    auth_url: Option<String>,
    service_roles: Vec<String>,
    service_roles_required: bool,
    service_type: Option<String>,
    binding: Binding,
}

/// `enforce_token_bind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    Ignored,
    /// What is bound in an unknown way is accepted.
    Permissive,
    Strict,
    /// Any token must be bound. Nothing that a token can be bound to is checked here.
    Required,
}

impl Binding {
    fn named(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "disabled" => Self::Ignored,
            "permissive" => Self::Permissive,
            "strict" => Self::Strict,
            _ => Self::Required,
        }
    }

    fn accepts(self, bound_to: &[String]) -> bool {
        match self {
            Self::Ignored => true,
            Self::Permissive => !bound_to.iter().any(|kind| kind == "kerberos"),
            Self::Strict => bound_to.is_empty(),
            Self::Required => false,
        }
    }
}

/// What a service token does for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    /// The request has no token.
    Absent,
    /// It is one, without the roles that would let it do more.
    Present,
    /// The user's token may have expired.
    Trusted,
}

impl Strategy {
    /// Connects to nothing yet. Says what an operator should know about the options.
    ///
    /// # Errors
    /// Names the option that is missing or cannot be used.
    pub fn new(settings: &Settings) -> Result<Self, ServiceError> {
        let options = ValidationOptions::new(settings)?;
        for remark in &options.remarks {
            tracing::warn!("{remark}");
        }
        let section = &settings.keystone_authtoken;
        let challenge = format!("Keystone uri=\"{}\"", options.www_authenticate_uri);
        Ok(Self {
            tokens: Tokens::new(Keystone::new(&options)?, section),
            challenge: HeaderValue::from_str(&challenge).map_err(|_| {
                ServiceError::Options("[keystone_authtoken] www_authenticate_uri is not a URL".to_owned())
            })?,
            auth_url: section.www_authenticate_uri.clone(),
            service_roles: section.service_token_roles.clone(),
            service_roles_required: section.service_token_roles_required,
            service_type: section.service_type.clone(),
            binding: Binding::named(&section.enforce_token_bind),
        })
    }

    /// As whom Keystone is asked about tokens, and where it is.
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user in.
    pub async fn service_user(&self) -> Result<String, ServiceError> {
        self.tokens.service_user().await
    }

    /// Asks Keystone now, and says the same as [`Strategy::service_user`].
    ///
    /// # Errors
    /// Keystone is away, broken, or does not let the service user in.
    pub async fn reach_keystone(&self) -> Result<String, ServiceError> {
        self.tokens.reach_keystone().await
    }

    /// Who sends a request.
    ///
    /// # Errors
    /// See [`Refusal`].
    pub async fn identify(&self, credentials: &Credentials<'_>) -> Result<Caller, Refusal> {
        let headers = credentials.headers;
        let Some(token) = token(headers, "x-auth-token").or_else(|| token(headers, "x-storage-token")) else {
            return Err(self.unauthorized("there is no token"));
        };
        let service = self.service(headers, credentials.address).await?;
        let found = self
            .tokens
            .look_up(&token, service == Service::Trusted, credentials.address)
            .await?;
        let Some(identity) = found else {
            return Err(self.unauthorized("the token is not valid"));
        };
        if service == Service::Absent {
            if !self.binding.accepts(&identity.bound_to) {
                return Err(self.unauthorized("the token is bound to something that is not checked here"));
            }
            self.check_access_rules(&identity, credentials)?;
        }
        Ok(Caller {
            auth_token: Some(token),
            auth_url: self.auth_url.clone(),
            ..identity.caller.clone()
        })
    }

    async fn service(&self, headers: &HeaderMap, address: &str) -> Result<Service, Refusal> {
        if headers.get("x-service-token").is_none_or(HeaderValue::is_empty) {
            return Ok(Service::Absent);
        }
        let found: Option<Arc<Identity>> = match token(headers, "x-service-token") {
            Some(token) => self.tokens.look_up(&token, false, address).await?,
            None => None,
        };
        let Some(identity) = found.filter(|identity| self.binding.accepts(&identity.bound_to)) else {
            return Err(self.unauthorized("the service token is not valid"));
        };
        match (
            identity.has_any_role(&self.service_roles),
            self.service_roles_required,
        ) {
            (true, _) => Ok(Service::Trusted),
            (false, false) => Ok(Service::Present),
            (false, true) => {
                Err(self
                    .unauthorized("the service token has none of [keystone_authtoken] service_token_roles"))
            }
        }
    }

    /// Keeps to the access rules of an application credential.
    fn check_access_rules(&self, identity: &Identity, credentials: &Credentials<'_>) -> Result<(), Refusal> {
        let Some(rules) = &identity.access_rules else {
            return Ok(());
        };
        let Some(service) = self.service_type.as_deref() else {
            return Err(self.unauthorized(
                "the token has access rules, which need [keystone_authtoken] service_type to be checked",
            ));
        };
        if !identity.knows_service(service) {
            return Err(self.unauthorized(
                "the token has access rules, and [keystone_authtoken] service_type is not in its catalog",
            ));
        }
        let (method, path) = (credentials.method.as_str(), credentials.path);
        if rules.iter().any(|rule| rule.allows(service, method, path)) {
            return Ok(());
        }
        Err(self.unauthorized("no access rule of the token allows this request"))
    }

    fn unauthorized(&self, reason: &str) -> Refusal {
        tracing::debug!(reason, "a request is refused");
        Refusal::Unauthorized {
            challenge: self.challenge.clone(),
        }
    }
}

impl From<NotKnown> for Refusal {
    fn from(NotKnown: NotKnown) -> Self {
        Self::Unavailable
    }
}

/// The longest text that is taken for a token. Those of Keystone have 32 to some thousand characters.
const LONGEST_TOKEN: usize = 8192;

/// A header's token. One that cannot be a token of Keystone's (Fernet, JWS, UUID, or PKI of old) counts as none: Keystone is not
/// asked about it.
fn token(headers: &HeaderMap, name: &str) -> Option<Secret> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    let is_possible = (1..=LONGEST_TOKEN).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.=~+/".contains(&byte));
    is_possible.then(|| Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_a_token_counts_as_none() {
        let is_taken = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-auth-token", HeaderValue::from_str(value).unwrap());
            token(&headers, "x-auth-token").is_some()
        };
        for possible in ["gAAAAABm-_=", " 0123456789abcdef ", "eyJh.eyJz.c2ln", "MII+/=="] {
            assert!(is_taken(possible), "{possible}");
        }
        for impossible in ["", " ", "two words", "a:b", "tok%20en", "<x>"] {
            assert!(!is_taken(impossible), "{impossible}");
        }
        assert!(is_taken(&"a".repeat(LONGEST_TOKEN)) && !is_taken(&"a".repeat(LONGEST_TOKEN + 1)));
    }

    #[test]
    fn a_binding_that_cannot_be_checked_is_refused() {
        let (free, kerberos, other) = (vec![], vec!["kerberos".to_owned()], vec!["x".to_owned()]);
        for (word, expected) in [
            ("disabled", [true, true, true]),
            ("permissive", [true, false, true]),
            ("strict", [true, false, false]),
            ("required", [false, false, false]),
            ("kerberos", [false, false, false]),
        ] {
            let binding = Binding::named(word);
            assert_eq!(
                [&free, &kerberos, &other].map(|bound| binding.accepts(bound)),
                expected,
                "{word}"
            );
        }
    }
}
