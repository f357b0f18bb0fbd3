//! Why a look-up in another OpenStack service has no result.

use std::sync::Arc;

use axum::http::StatusCode;
use magnum_common::error::Fault;
use magnum_openstack::ServiceError;

use crate::image_catalog::CatalogError;
use magnum_openstack::Service;

/// Why a look-up has no result. [`crate::faults`] says what a client gets for it.
///
/// It can be cloned, since look-ups that ask for the same thing share one result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CloudError {
    /// The service could not be reached, or did not respond within `[api] lookup_timeout`.
    #[error("the look-up of {path} in {service} failed: {source}")]
    Unreachable {
        /// The service.
        service: Service,
        /// Path of the request.
        path: String,
        /// What happened.
        source: Arc<ServiceError>,
    },
    /// The service catalog of the caller's token has no endpoint of the service that can be used.
    #[error("the look-up of {path} in {service} failed: {source}")]
    NoEndpoint {
        /// The service.
        service: Service,
        /// Path of the request.
        path: String,
        /// What is missing.
        source: Arc<ServiceError>,
    },
    /// The service responded that it cannot serve the request at the moment.
    #[error("the look-up of {path} in {service} failed: status {status}")]
    Failed {
        /// The service.
        service: Service,
        /// Path of the request.
        path: String,
        /// 5xx, 408 or 429.
        status: StatusCode,
    },
    /// The response is not what the service's API promises, or the catalog names the wrong service.
    #[error("the response of {service} to the look-up of {subject} cannot be used: {reason}")]
    BadResponse {
        /// The service.
        service: Service,
        /// Path of the request, or what was looked for in the response.
        subject: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The service does not accept the caller's token.
    #[error("{service} does not accept the caller's token for the look-up of {path}")]
    TokenRejected {
        /// The service.
        service: Service,
        /// Path of the request.
        path: String,
    },
    /// The caller's roles do not allow the look-up.
    #[error("{service} does not allow the caller to see {subject}")]
    Forbidden {
        /// The service.
        service: Service,
        /// What was looked for, in the plural.
        subject: &'static str,
    },
    /// There is no Glance, and the file that stands in for it does not work.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The look-ups worked, and the request is refused: it names something that the caller cannot see, or that does not
    /// fit.
    #[error(transparent)]
    Refused(#[from] Fault),
}
