//! The three stores side by side. Making them touches neither network nor disk.

use std::path::PathBuf;
use std::sync::Arc;

use crate::seal::JournalKey;
use magnum_config::{CertManagerType, Settings};
use magnum_db::Database;
use magnum_openstack::{Credentials, ServiceError};

use super::barbican::Barbican;
use super::local::Files;
use super::x509keypair::Table;
use super::{CertificateManager, Sealing};

/// Checks that Keystone and Barbican accept the service user of these settings.
///
/// # Errors
/// The options are incomplete; Keystone does not respond or refuses the user; its catalog has no Barbican; or Barbican
/// does not respond or refuses the user.
pub async fn probe_barbican(settings: &Settings) -> Result<(), ServiceError> {
    let client = &settings.barbican_client;
    let credentials = Credentials::new(settings);
    Barbican::new(credentials, &client.endpoint_type, client.region_name.clone())
        .probe()
        .await
}

/// All stores. Missing options of Barbican, the default, are an error of the first certificate that needs it, so that a
/// conductor of clusters without certificates runs without them.
pub(in crate::certificates) struct Managers {
    sealing: Sealing,
    table: Table,
    files: Files,
    storage_path: PathBuf,
    barbican: Barbican,
}

impl Managers {
    pub(in crate::certificates) fn new(settings: &Settings, db: Database, key: JournalKey) -> Self {
        let section = &settings.certificates;
        let sealing = Sealing::new(Arc::new(key), section);
        let client = &settings.barbican_client;
        let credentials = Credentials::new(settings);
        Self {
            table: Table::new(db, sealing.clone()),
            files: Files::new(section.storage_path.clone(), sealing.clone()),
            sealing,
            storage_path: section.storage_path.clone(),
            barbican: Barbican::new(credentials, &client.endpoint_type, client.region_name.clone()),
        }
    }

    pub(in crate::certificates) fn sealing(&self) -> &Sealing {
        &self.sealing
    }

    pub(in crate::certificates) fn get(&self, kind: CertManagerType) -> &dyn CertificateManager {
        match kind {
            CertManagerType::X509KeyPair => &self.table,
            CertManagerType::Local => &self.files,
            CertManagerType::Barbican => &self.barbican,
        }
    }

    /// What a store lacks that is no longer the configured one; `None`: it can be used.
    pub(in crate::certificates) fn missing(&self, kind: CertManagerType) -> Option<String> {
        match kind {
            CertManagerType::X509KeyPair => None,
            // Without its folder every file would look as if it were gone.
            CertManagerType::Local => (!self.storage_path.is_dir()).then(|| {
                format!(
                    "[certificates] storage_path: there is no directory {}",
                    self.storage_path.display()
                )
            }),
            CertManagerType::Barbican => self.barbican.missing().map(str::to_owned),
        }
    }
}
