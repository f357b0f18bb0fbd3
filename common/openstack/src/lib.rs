//! Other OpenStack services, accessed as the service user of `[keystone_auth]`, or with a caller's token.
//!
//! A thin client of our own: `openstack_sdk` knows no key manager, wants a `clouds.yaml` and brings its own idea of
//! state; what is needed here is one token, one catalog look-up and plain JSON. Over hyper: a connector with
//! our own TLS configuration is all that `reqwest` would add to it.
//!
//! Guarantees: one token for all, renewed before it expires and when a service refuses it; every request ends within
//! `[keystone_auth] timeout` (`[keystone_authtoken] http_connect_timeout` where tokens are validated), or twice that
//! where it needs a new token first, however many ask at once; a failure says
//! whether repeating may help. Nothing is repeated in here: the schedule is the caller's. Neither tokens, passwords nor
//! bodies of requests are in an error.

mod catalog;
mod connection;
mod credentials;
mod reply;
mod services;
mod session;
mod tls;
mod user;
mod validation;

pub use catalog::{Endpoint, Root};
pub use connection::{Access, Connection, ServiceRequest};
pub use credentials::Credentials;
pub use hyper::Method;
pub use reply::Reply;
pub use services::{Endpoints, Service};
pub use session::Session;
pub use tls::Trust;
pub use user::UserSession;
pub use validation::{Keystone, ValidationOptions};

use magnum_common::error::ErrorClass;

/// Why a service did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ServiceError {
    /// The options cannot be used. Names them.
    #[error("{0}")]
    Options(String),
    /// It is away, too busy, or broken at the moment.
    #[error("{service} is not available: {reason}")]
    Unavailable {
        /// Keystone or Barbican.
        service: &'static str,
        /// What happened.
        reason: String,
    },
    /// One of the two ends does not trust the other's certificate. Names the option.
    #[error("no TLS connection to {service}: {reason}; {advice}")]
    Untrusted {
        /// Keystone or Barbican.
        service: &'static str,
        /// What is wrong with the certificate.
        reason: String,
        /// What to do about it.
        advice: String,
    },
    /// It does not have it.
    #[error("{service} does not know {what}")]
    NotFound {
        /// Which service.
        service: &'static str,
        /// What was asked for.
        what: String,
    },
    /// It will not do it.
    #[error("{service} refuses {what}: {reason}")]
    Refused {
        /// Which service.
        service: &'static str,
        /// What was asked for.
        what: String,
        /// Its status and its words.
        reason: String,
    },
    /// Its answer is not what its API promises.
    #[error("{service} gave an answer to {what} that cannot be used: {reason}")]
    Answer {
        /// Which service.
        service: &'static str,
        /// What was asked for.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ServiceError {
    /// Whether the same may succeed later.
    pub const fn class(&self) -> ErrorClass {
        match self {
            // A certificate that has run out is replaced without anybody changing the request.
            Self::Unavailable { .. } | Self::Untrusted { .. } => ErrorClass::Transient,
            Self::Options(_) | Self::NotFound { .. } | Self::Refused { .. } | Self::Answer { .. } => {
                ErrorClass::Permanent
            }
        }
    }

    /// Whether it is not known if the request was carried out.
    pub const fn is_open(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Answer { .. })
    }
}
