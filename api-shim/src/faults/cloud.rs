//! What a client gets when a look-up in another OpenStack service has no result.

use axum::http::StatusCode;

use super::ApiFault;
use crate::cloud::CloudError;
use crate::image_catalog::CatalogError;

impl From<CloudError> for ApiFault {
    fn from(error: CloudError) -> Self {
        let fault = match &error {
            CloudError::Refused(fault) | CloudError::Catalog(CatalogError::Refused(fault)) => {
                return fault.clone().into();
            }
            CloudError::Forbidden { service, subject } => {
                return Self::new(
                    StatusCode::FORBIDDEN,
                    format!("{service} does not allow the caller to see {subject}."),
                );
            }
            CloudError::Unreachable { service, .. } | CloudError::Failed { service, .. } => {
                unavailable(format!(
                    "{service} is not available at the moment, and the request cannot be checked without it. Nothing was \
                 changed. Please try again later."
                ))
            }
            CloudError::NoEndpoint { service, .. } => unavailable(format!(
                "{service} cannot be asked: the service catalog of the request's token has no endpoint of it that this \
                 service can use."
            )),
            CloudError::BadResponse { service, .. } => unavailable(format!(
                "{service} gave an answer that cannot be used, and the request cannot be checked without it. Nothing \
                 was changed."
            )),
            CloudError::TokenRejected { service, .. } => Self::new(
                StatusCode::UNAUTHORIZED,
                format!("{service} does not accept the token of the request. Please get a new one."),
            ),
            CloudError::Catalog(CatalogError::NotConfigured) => {
                return unavailable("No image catalog is configured: set [api] image_catalog_file.");
            }
            CloudError::Catalog(CatalogError::Unreadable { .. }) => {
                unavailable("The image catalog cannot be read.")
            }
            CloudError::Catalog(CatalogError::Invalid { .. }) => {
                unavailable("The image catalog is not valid.")
            }
        };
        fault.caused_by(error)
    }
}

fn unavailable(detail: impl Into<String>) -> ApiFault {
    ApiFault::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}
