//! Keys, certificate requests and certificates, as bytes. No store, no network, no clock but the one that is given.
//!
//! ```text
//! key.rs          private keys and their encrypted form (cost.rs: how much work one may ask for)
//! authority.rs    CAs and the client certificate: what Magnum makes
//! signing.rs      a user's request becomes a certificate, or a reason (signing_error.rs); request.rs and extensions.rs check it
//! certificate.rs  what goes into a certificate      pem.rs  their text
//! ```
//!
//! Guarantees: whatever bytes come in, nothing panics, and work and memory are bounded; private keys are in no error. Where
//! certificates are kept, and who may have them, is the conductor's `certificates`.

pub mod authority;
mod certificate;
mod cost;
pub mod extensions;
pub mod key;
mod pem;
mod request;
pub mod signing;
mod signing_error;

pub use certificate::CertificateFormatError;
pub use signing_error::SigningError;
