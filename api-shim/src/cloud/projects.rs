//! Projects in Keystone, which quotas are for.

use magnum_common::error::{Exception, Fault};

use super::error::CloudError;
use super::inquiry::{Inquiry, LookupResponse, part};
use magnum_openstack::Service;

impl Inquiry {
    /// Whether Keystone has a project with this id.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub async fn project(&self, id: &str) -> Result<(), CloudError> {
        let Some(keystone) = self.services() else {
            return Ok(());
        };
        let missing = || {
            let detail = format!("The project_id {id} could not be found.");
            Err(Fault::new(Exception::ProjectNotFound, detail).into())
        };
        let Some(part) = part(id) else {
            return missing();
        };
        let answer = self
            .get(keystone, Service::Keystone, &format!("/projects/{part}"), &[])
            .await?;
        match &*answer {
            LookupResponse::Document(_) => Ok(()),
            LookupResponse::Missing | LookupResponse::BadName => missing(),
            LookupResponse::Forbidden => Err(CloudError::Forbidden {
                service: Service::Keystone,
                subject: "projects",
            }),
        }
    }
}
