//! Errors of certificates, by their remedy.

use magnum_common::error::{ErrorClass, Exception, Fault};
use magnum_common::ids::ClusterUuid;
use magnum_driver_api::Reason;
use magnum_x509::{CertificateFormatError, SigningError};

use super::manager::ManagerError;

/// The cause of an error.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The store.
    #[error(transparent)]
    Store(#[from] ManagerError),
    /// Making or reading a certificate.
    #[error(transparent)]
    Format(#[from] CertificateFormatError),
    /// The user's request.
    #[error(transparent)]
    Signing(#[from] SigningError),
    /// The store takes longer than the caller waits.
    #[error("the store of certificates gave no answer within {0:?}, half of [DEFAULT] rpc_response_timeout")]
    Late(std::time::Duration),
    /// A thread ended without a result.
    #[error("work on a certificate was interrupted: {0}")]
    Interrupted(String),
}

impl Cause {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Store(error) => error.class(),
            Self::Interrupted(_) | Self::Late(_) => ErrorClass::Transient,
            Self::Format(_) | Self::Signing(_) => ErrorClass::Permanent,
        }
    }
}

/// The error of a task about certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A set is not complete. Begins as Magnum's message.
    #[error("Failed to create certificates for Cluster: {cluster}: {cause}")]
    NotCreated {
        /// Whose set.
        cluster: ClusterUuid,
        /// The cause; of several, a permanent one.
        cause: Cause,
        /// References of certificates stored by now: a retry takes them over, a failed operation has to remove them.
        stored: Vec<String>,
    },
    /// Anything else.
    #[error(transparent)]
    Failed(#[from] Cause),
}

impl CertificateError {
    pub(super) fn not_created(cluster: ClusterUuid, causes: Vec<Cause>, stored: Vec<String>) -> Self {
        // Of several reasons the one that ends the operation counts: retrying would not get past it.
        let cause = causes
            .into_iter()
            .reduce(|told, next| match told.class() {
                ErrorClass::Transient => next,
                ErrorClass::Permanent | ErrorClass::NotSupported => told,
            })
            .unwrap_or_else(|| Cause::Interrupted("no reason is known".to_owned()));
        Self::NotCreated {
            cluster,
            cause,
            stored,
        }
    }

    /// Transient if a retry may succeed.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::NotCreated { cause, .. } | Self::Failed(cause) => cause.class(),
        }
    }

    /// Whether it concerns a store that this conductor cannot reach by its options.
    pub fn is_not_configured(&self) -> bool {
        matches!(
            self,
            Self::Failed(Cause::Store(ManagerError::NotConfigured { .. }))
        )
    }

    /// What tenants are told, and the whole.
    pub fn reason(self) -> Reason {
        let whole = self.to_string();
        Reason::internal(Fault::from(self).message, whole)
    }

    /// References of what was stored before it failed.
    pub fn stored(&self) -> &[String] {
        match self {
            Self::NotCreated { stored, .. } => stored,
            Self::Failed(_) => &[],
        }
    }
}

/// The fault for a caller. Errors that only the operator can resolve have no details of this host in it.
impl From<CertificateError> for Fault {
    fn from(error: CertificateError) -> Self {
        let text = error.to_string();
        let is_passing = matches!(error.class(), ErrorClass::Transient);
        match error {
            CertificateError::NotCreated { cluster, .. } => Self::new(
                Exception::CertificatesToClusterFailed,
                format!("Failed to create certificates for Cluster: {cluster}"),
            ),
            CertificateError::Failed(Cause::Signing(error)) => error.into(),
            CertificateError::Failed(Cause::Format(CertificateFormatError::Expired(_))) => {
                Self::new(Exception::CertificateStorageException, text)
            }
            CertificateError::Failed(Cause::Store(ManagerError::Missing(reference))) => Self::new(
                Exception::X509KeyPairNotFound,
                format!("A key pair {} could not be found.", id_of(&reference)),
            ),
            CertificateError::Failed(_) if is_passing => Self::new(
                Exception::CertificateStorageException,
                "The store of the cluster's certificates is not available at the moment; try again later",
            ),
            CertificateError::Failed(_) => Self::new(
                Exception::CertificateStorageException,
                "The cluster's certificate cannot be read from its store; the conductor's log says why",
            ),
        }
    }
}

/// Where Barbican is does not belong into a fault.
fn id_of(reference: &str) -> &str {
    reference
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
}
