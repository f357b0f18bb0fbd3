//! Where certificates and their keys are kept: one of three stores, by `[certificates] cert_manager_type`. All three
//! are available, since certificates that were stored before that option was changed are removed from their old store.
//!
//! Stored certificates are found by the operation they were made for ([`Entry`]). A conductor that is killed between
//! storing one and writing its reference loses nothing: the next attempt of the operation finds it.

pub mod barbican;
pub mod local;
mod managers;
mod sealing;
pub mod x509keypair;

use std::path::PathBuf;

use crate::seal::SealError;
use async_trait::async_trait;
use magnum_common::error::ErrorClass;
use magnum_common::ids::OperationId;
use magnum_config::CertManagerType;
use magnum_db::DbError;
use magnum_openstack::ServiceError;
use uuid::Uuid;

use magnum_x509::authority::KeyPair;

pub(super) use managers::Managers;
pub use managers::probe_barbican;
pub(crate) use sealing::{Kept, Sealing};

/// Namespace of the ids that are derived from an operation's: a random one, never to be changed.
const NAMESPACE: Uuid = Uuid::from_u128(0x8d6f_2c1e_5b0a_4e7d_9c43_1f2a_7be8_60d5);

/// Which certificate of a cluster's set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// The CA of the cluster's API.
    KubernetesCa,
    /// The CA of its etcd.
    EtcdCa,
    /// The CA of the API's front proxy.
    FrontProxyCa,
    /// The conductor's client certificate, signed by the first.
    Client,
}

impl Slot {
    /// All four.
    pub const ALL: &[Self] = &[Self::KubernetesCa, Self::EtcdCa, Self::FrontProxyCa, Self::Client];

    /// Its name, in ids and for people. Stored certificates are found by it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::KubernetesCa => "kubernetes-ca",
            Self::EtcdCa => "etcd-ca",
            Self::FrontProxyCa => "front-proxy-ca",
            Self::Client => "conductor-client",
        }
    }
}

/// The purpose of a stored certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The operation that makes it. Together with the slot it is what the entry is found by.
    pub operation: OperationId,
    /// Which of the operation's certificates.
    pub slot: Slot,
    /// Magnum's name for it, in a store that has names.
    pub name: String,
    /// The cluster's project.
    pub project_id: Option<String>,
    /// The cluster's user.
    pub user_id: Option<String>,
}

impl Entry {
    /// An id that is the same in every attempt of the operation.
    pub fn id(&self) -> Uuid {
        let name = format!("{}/{}", self.operation, self.slot.as_str());
        Uuid::new_v5(&NAMESPACE, name.as_bytes())
    }
}

/// A stored pair with its reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The reference in the cluster's row: a uuid, or a URL of Barbican.
    pub reference: String,
    /// Certificate and key.
    pub pair: KeyPair,
}

/// The error of a store.
#[derive(Debug, thiserror::Error)]
pub enum ManagerError {
    /// There is no certificate of this reference (any more).
    #[error("there is no certificate {0} in the store that [certificates] cert_manager_type names")]
    Missing(String),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The file system failed.
    #[error("{path}: {source}")]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// Another OpenStack service failed.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// A sealed key cannot be sealed or opened.
    #[error("certificate {reference}: {source}")]
    Seal {
        /// Which certificate.
        reference: String,
        /// What is wrong.
        source: SealError,
    },
    /// Its private key is not sealed, in a row in which it should be.
    #[error(
        "certificate {0}: the private key in its row of x509keypair is not sealed, and [certificates] seal_private_keys is \
         on and older than the row. Who wrote it has no journal key: a Python Magnum, which [certificates] unsealed_keys = \
         accept allows, or somebody who should not"
    )]
    NotSealed(String),
    /// The stored certificate or key cannot be used.
    #[error("certificate {reference} cannot be used: {reason}")]
    Unusable {
        /// Which certificate.
        reference: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It belongs to a store that this conductor does not know how to reach (any more).
    #[error(
        "it is kept by the certificate manager {kind}, which is not the one of [certificates] cert_manager_type any more \
         and cannot be used: {reason}; it stays there until this is set right"
    )]
    NotConfigured {
        /// The manager.
        kind: CertManagerType,
        /// What is missing.
        reason: String,
    },
    /// A blocking thread ended without a result.
    #[error("work on a certificate was interrupted: {0}")]
    Interrupted(String),
}

impl ManagerError {
    /// Transient if a retry may succeed.
    pub fn class(&self) -> ErrorClass {
        let is_transient = match self {
            Self::Missing(_)
            | Self::Seal { .. }
            | Self::NotSealed(_)
            | Self::Unusable { .. }
            | Self::NotConfigured { .. } => false,
            Self::Database(error) => error.is_transient(),
            Self::Service(error) => return error.class(),
            // Space, mounts and permissions come back without anybody changing the request.
            Self::File { .. } | Self::Interrupted(_) => true,
        };
        if is_transient {
            ErrorClass::Transient
        } else {
            ErrorClass::Permanent
        }
    }
}

/// One of the stores.
#[async_trait]
pub trait CertificateManager: Send + Sync {
    /// The pair that an earlier attempt has stored for this entry.
    async fn find(&self, entry: &Entry) -> Result<Option<Stored>, ManagerError>;

    /// Stores a pair and returns the stored one: that of another attempt, if it was faster.
    async fn store(&self, entry: &Entry, pair: KeyPair) -> Result<Stored, ManagerError>;

    /// The pair behind a reference.
    async fn get(&self, reference: &str) -> Result<KeyPair, ManagerError>;

    /// The certificate behind a reference, without its key.
    async fn certificate(&self, reference: &str) -> Result<String, ManagerError> {
        Ok(self.get(reference).await?.certificate)
    }

    /// Removes everything behind a reference. `Ok` also when nothing is there.
    async fn delete(&self, reference: &str) -> Result<(), ManagerError>;

    /// Removes everything that attempts stored for an entry, finished or not. `Ok` also when nothing is there.
    async fn delete_made(&self, entry: &Entry) -> Result<(), ManagerError> {
        self.delete(&entry.id().to_string()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_same_id_in_every_attempt_and_every_release() {
        let entry = |operation: &str, slot| Entry {
            operation: operation.into(),
            slot,
            name: "k8s".into(),
            project_id: None,
            user_id: None,
        };
        let id = entry("6a1f7e0c-0000-4000-8000-000000000001", Slot::EtcdCa).id();
        assert_eq!(id.to_string(), "c326c4a8-2bdd-53d1-8855-99c9d07a8b7d");
        assert_ne!(
            id,
            entry("6a1f7e0c-0000-4000-8000-000000000001", Slot::Client).id()
        );
        assert_ne!(
            id,
            entry("6a1f7e0c-0000-4000-8000-000000000002", Slot::EtcdCa).id()
        );
    }
}
