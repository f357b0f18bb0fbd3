//! Key pairs in Nova: the caller's own, by name.

use magnum_common::error::{Exception, Fault};

use super::error::CloudError;
use super::inquiry::{Inquiry, LookupResponse, part};
use magnum_openstack::Service;

impl Inquiry {
    /// Whether the caller has a key pair of that name.
    ///
    /// # Errors
    /// The service is away, refuses, or does not have it: see [`CloudError`].
    pub async fn key_pair(&self, name: &str) -> Result<(), CloudError> {
        let Some(nova) = self.services() else {
            return Ok(());
        };
        let missing = || {
            let detail = format!("Unable to find keypair {name}.");
            Err(Fault::new(Exception::KeyPairNotFound, detail).into())
        };
        let Some(id) = part(name) else {
            return missing();
        };
        let answer = self
            .get(nova, Service::Nova, &format!("/os-keypairs/{id}"), &[])
            .await?;
        match &*answer {
            LookupResponse::Document(_) => Ok(()),
            LookupResponse::Missing | LookupResponse::BadName => missing(),
            LookupResponse::Forbidden => Err(CloudError::Forbidden {
                service: Service::Nova,
                subject: "key pairs",
            }),
        }
    }
}
