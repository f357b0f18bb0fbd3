//! Signing what users ask for: from the text of a certificate request to the text of a certificate, or to a
//! reason that names what is wrong. Pure: no clock, no store, no options but those given.
//!
//! Differs from Magnum, which signs whatever can be read: the request must be signed by its own key, the key must
//! be strong enough, an extension is never there twice, and the certificate does not outlive its CA. Whatever
//! bytes come in, nothing panics, and work and memory are bounded by the limit that `pem.rs` sets to the text.

use std::time::SystemTime;

use super::authority::Authority;
use super::certificate::{self, CertificateFormatError, Draft};
use super::extensions::{self, Rules};
use super::request::Request;
use super::signing_error::SigningError;

/// The certificate for a request, as PEM without a newline at its end. Blocks for some milliseconds.
///
/// # Errors
/// See [`SigningError`].
pub fn sign(csr: &str, ca: &Authority, rules: &Rules, now: SystemTime) -> Result<String, SigningError> {
    let der = Request::bytes(csr)?;
    let request = Request::read(&der)?;
    request.check_key_and_signature()?;
    let mut allowed = extensions::allowed(request.extensions()?, rules)?;
    allowed.extend(
        certificate::key_identifiers(&request.key_id()?, &ca.facts.key_id)
            .map_err(CertificateFormatError::from)?,
    );
    let certificate = certificate::issue(
        Draft {
            issuer: &ca.facts.subject,
            subject: request.subject(),
            public_key: request.public_key(),
            period: ca.period(rules.days, now)?,
            extensions: allowed,
        },
        &ca.key,
    )?;
    Ok(certificate)
}
