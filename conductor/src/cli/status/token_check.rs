//! Whether an API with this configuration can validate tokens: the options are complete, their user can log in, the
//! catalog has Keystone where the options look for it, and Keystone lets that user ask about tokens.

use std::time::Duration;

use magnum_common::secret::Secret;
use magnum_config::{AuthStrategy, Settings};
use magnum_openstack::{Keystone, ServiceError, ValidationOptions};

use super::report::Finding;

/// Time limit, since a person waits for the result.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A token that does not exist.
const NO_TOKEN: &str = "magnum-status-upgrade-check";

/// The check; `None` where clients are not identified by tokens.
pub(super) async fn tokens(settings: &Settings) -> Option<Finding> {
    if settings.api.auth_strategy != AuthStrategy::Keystone {
        return None;
    }
    let mut settings = settings.clone();
    let section = &mut settings.keystone_authtoken;
    let timeout = section.http_connect_timeout.unwrap_or(ANSWER_WITHIN);
    section.http_connect_timeout = Some(timeout.min(ANSWER_WITHIN));
    let mut finding = Finding::of("Tokens");
    match ValidationOptions::new(&settings) {
        // This host may run conductors only.
        Err(error) => finding.warn(format!(
            "{error}. magnum-api does not start with this configuration."
        )),
        Ok(options) => {
            for remark in &options.remarks {
                finding.warn(remark.clone());
            }
            if let Err(error) = ask(&options).await {
                finding.fail(format!("{error}. {}", advice(&error)));
            }
        }
    }
    Some(finding)
}

async fn ask(options: &ValidationOptions) -> Result<(), ServiceError> {
    Keystone::new(options)?
        .validate(&Secret::new(NO_TOKEN), false)
        .await
        .map(|_| ())
}

/// Advice, where the error has none.
fn advice(error: &ServiceError) -> &'static str {
    match error {
        ServiceError::Unavailable { .. } => {
            "Check [keystone_authtoken] auth_url, and that Keystone runs: without it every request gets a 503."
        }
        ServiceError::Refused { .. } | ServiceError::NotFound { .. } => {
            "Check the user of [keystone_authtoken]: username, password, project_name and the domains; it needs the \
             role admin or service to ask about tokens."
        }
        ServiceError::Answer { .. } => "Check that [keystone_authtoken] auth_url is Keystone's.",
        ServiceError::Options(_) | ServiceError::Untrusted { .. } => "Without it every request gets a 503.",
    }
}
