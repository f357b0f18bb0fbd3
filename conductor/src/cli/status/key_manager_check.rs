//! Whether certificates can be kept in Barbican: the service user can log in at Keystone, the catalog has the key
//! manager where the options look for it, and it answers. Nothing is stored.

use std::time::Duration;

use magnum_config::{CertManagerType, Settings};
use magnum_openstack::ServiceError;

use super::report::Finding;
use crate::certificates::manager::probe_barbican;

/// Time limit, since a person waits for the result.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// The check; `None` where certificates are kept elsewhere.
pub(super) async fn key_manager(settings: &Settings) -> Option<Finding> {
    if settings.certificates.cert_manager_type != CertManagerType::Barbican {
        return None;
    }
    let mut settings = settings.clone();
    let timeout = settings.keystone_auth.timeout.unwrap_or(ANSWER_WITHIN);
    settings.keystone_auth.timeout = Some(timeout.min(ANSWER_WITHIN));
    let mut finding = Finding::of("Key manager");
    if let Err(error) = probe_barbican(&settings).await {
        finding.fail(format!("{error}. {}", advice(&error)));
    }
    Some(finding)
}

/// Advice, where the error has none.
fn advice(error: &ServiceError) -> &'static str {
    const WITHOUT: &str = "Without it no cluster gets certificates, and none of them are signed: start it, or set \
                           [certificates] cert_manager_type = x509keypair.";
    match error {
        ServiceError::Unavailable { service, .. } if *service == "Keystone" => {
            "Check [keystone_auth] auth_url, and that Keystone runs."
        }
        ServiceError::Refused { service, .. } | ServiceError::NotFound { service, .. }
            if *service == "Keystone" =>
        {
            "Check the service user: username, password, project_name and the domains of [keystone_auth], or of \
             [keystone_authtoken] where the first names no user."
        }
        ServiceError::Refused { .. } => {
            "The service user needs a role that may store secrets in its project, such as creator."
        }
        ServiceError::Answer { .. } | ServiceError::NotFound { .. } => {
            "Check the address that Keystone's catalog has for the key manager: it ends before /v1."
        }
        ServiceError::Unavailable { .. } | ServiceError::Options(_) | ServiceError::Untrusted { .. } => {
            WITHOUT
        }
    }
}
