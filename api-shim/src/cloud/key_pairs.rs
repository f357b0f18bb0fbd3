//! Key pairs in Nova: the caller's own, by name.

use magnum_common::error::{Exception, Fault};

use super::endpoints::Service;
use super::inquiry::{Answer, Inquiry, forbidden, part};
use crate::faults::ApiFault;

impl Inquiry {
    /// Whether the caller has a key pair of that name.
    pub async fn key_pair(&self, name: &str) -> Result<(), ApiFault> {
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
            Answer::Document(_) => Ok(()),
            Answer::Missing | Answer::Unfit => missing(),
            Answer::Forbidden => Err(forbidden(Service::Nova, "key pairs")),
        }
    }
}
