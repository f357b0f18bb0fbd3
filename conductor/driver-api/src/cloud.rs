//! Sessions to OpenStack services, as the service user and as the user who asked.

use std::sync::Arc;

use magnum_common::context::RequestContext;
use magnum_common::secret::Secret;
use magnum_config::Settings;
use magnum_openstack::{Credentials, Endpoints, ServiceError, Session, UserSession};

use crate::{DriverError, Reason};

/// The way to OpenStack services. Cheap to clone; connects when it is used.
#[derive(Clone)]
pub struct Cloud {
    session: Result<Arc<Session>, ServiceError>,
    endpoints: Arc<Endpoints>,
}

impl Cloud {
    /// With the service user and the Keystone of these settings. What is missing in them is told by the first use: a
    /// conductor whose drivers need no cloud runs without.
    pub fn new(settings: &Settings) -> Self {
        Self {
            session: Credentials::new(settings).and_then(Session::new).map(Arc::new),
            endpoints: Arc::new(Endpoints::new(settings)),
        }
    }

    /// As the service user.
    ///
    /// # Errors
    /// Names the option that is missing or cannot be used.
    pub fn service(&self) -> Result<&Session, ServiceError> {
        self.session.as_deref().map_err(Clone::clone)
    }

    /// How services are found in a catalog.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// As the user who asked: with the token of the call's context, and the catalog that belongs to it.
    ///
    /// # Errors
    /// The context has no token (an operator retries the operation), Keystone does not take it any more, or is away.
    pub async fn user(&self, context: &RequestContext) -> Result<UserSession<'_>, ServiceError> {
        let token = context.get("auth_token");
        let token = token
            .as_ref()
            .and_then(|token| token.as_str())
            .unwrap_or_default();
        if token.is_empty() {
            return Err(ServiceError::Refused {
                service: "Keystone",
                what: "to act for the user".to_owned(),
                reason: "the request has no token any more".to_owned(),
            });
        }
        self.service()?.of_user(Secret::new(token)).await
    }
}

impl From<ServiceError> for DriverError {
    fn from(error: ServiceError) -> Self {
        Self::of(error.class(), Reason::from(&error))
    }
}

/// Which service it is and whether it answers is for everybody; where it is and what it said is not.
impl From<&ServiceError> for Reason {
    fn from(error: &ServiceError) -> Self {
        let told = match error {
            ServiceError::Options(_) => {
                "another service cannot be used by this conductor's options".to_owned()
            }
            ServiceError::Unavailable { service, .. } | ServiceError::Untrusted { service, .. } => {
                format!("{service} is not available")
            }
            ServiceError::NotFound { service, .. } => {
                format!("{service} does not know what it was asked for")
            }
            ServiceError::Refused { service, .. } => format!("{service} refuses what it was asked for"),
            ServiceError::Answer { service, .. } => format!("{service} gave an answer that cannot be used"),
        };
        Self::internal(told, error.to_string())
    }
}
