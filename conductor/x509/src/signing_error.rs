//! Why a request for a certificate is refused, and the exception that its sender gets.

use magnum_common::error::{Exception, Fault};

use super::certificate::CertificateFormatError;

/// Why a request is not signed.
#[derive(Debug, thiserror::Error)]
pub enum SigningError {
    /// The request itself cannot be taken. What is wrong with it.
    #[error("Received invalid csr: {0}.")]
    Request(String),
    /// It asks for something that is not allowed.
    #[error("Extension '{extension}' not allowed: {reason}")]
    Extension {
        /// The extension's name in OpenSSL, or its number.
        extension: String,
        /// What to change.
        reason: String,
    },
    /// The CA cannot sign.
    #[error(transparent)]
    Authority(#[from] CertificateFormatError),
}

impl From<SigningError> for Fault {
    fn from(error: SigningError) -> Self {
        let exception = match &error {
            SigningError::Request(_) => Exception::InvalidCsr,
            SigningError::Extension { .. } => Exception::CertificateValidationError,
            SigningError::Authority(_) => Exception::MagnumException,
        };
        Self::new(exception, error.to_string())
    }
}
