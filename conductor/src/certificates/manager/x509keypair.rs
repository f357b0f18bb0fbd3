//! The table `x509keypair`: one row holds the certificate, the key and its passphrase, as Magnum writes them.
//!
//! A row belongs to the cluster's owner. In Magnum it belongs to whoever sent the request, so that a cluster which
//! an administrator changed becomes unreadable for its owner.

use async_trait::async_trait;
use magnum_common::model::X509KeyPair;
use magnum_db::Database;

use super::{CertificateManager, Entry, Kept, ManagerError, Sealing, Stored};
use crate::store::key_pairs;
use magnum_x509::authority::KeyPair;

/// The store in the database.
pub(in crate::certificates) struct Table {
    db: Database,
    sealing: Sealing,
}

impl Table {
    pub(in crate::certificates) fn new(db: Database, sealing: Sealing) -> Self {
        Self { db, sealing }
    }

    async fn row(&self, reference: &str) -> Result<Option<X509KeyPair>, ManagerError> {
        let uuid = reference.to_owned();
        Ok(self.db.run(move |conn| key_pairs::find(conn, &uuid)).await?)
    }

    fn pair(&self, reference: &str, row: X509KeyPair) -> Result<KeyPair, ManagerError> {
        let unusable = |what: &str| ManagerError::Unusable {
            reference: reference.to_owned(),
            reason: format!("its row in x509keypair has no {what}"),
        };
        let kept = row.private_key.ok_or_else(|| unusable("private_key"))?;
        Ok(KeyPair {
            certificate: row.certificate.ok_or_else(|| unusable("certificate"))?,
            private_key: self
                .sealing
                .open(reference, kept.expose(), Kept::Row(row.created_at))?,
            passphrase: row.private_key_passphrase,
            intermediates: row.intermediates,
        })
    }
}

#[async_trait]
impl CertificateManager for Table {
    async fn find(&self, entry: &Entry) -> Result<Option<Stored>, ManagerError> {
        let reference = entry.id().to_string();
        let Some(row) = self.row(&reference).await? else {
            return Ok(None);
        };
        let pair = self.pair(&reference, row)?;
        Ok(Some(Stored { reference, pair }))
    }

    async fn store(&self, entry: &Entry, pair: KeyPair) -> Result<Stored, ManagerError> {
        let reference = entry.id().to_string();
        let row = X509KeyPair {
            id: None,
            uuid: Some(reference.clone()),
            certificate: Some(pair.certificate.clone()),
            private_key: Some(self.sealing.close(&reference, &pair.private_key)?),
            intermediates: pair.intermediates.clone(),
            private_key_passphrase: pair.passphrase.clone(),
            project_id: entry.project_id.clone(),
            user_id: entry.user_id.clone(),
            created_at: None,
            updated_at: None,
        };
        let is_new = self
            .db
            .transaction(move |conn| key_pairs::insert_unless_exists(conn, &row))
            .await?;
        if is_new {
            return Ok(Stored { reference, pair });
        }
        let pair = self.get(&reference).await?;
        Ok(Stored { reference, pair })
    }

    async fn get(&self, reference: &str) -> Result<KeyPair, ManagerError> {
        let row = self
            .row(reference)
            .await?
            .ok_or_else(|| ManagerError::Missing(reference.to_owned()))?;
        self.pair(reference, row)
    }

    async fn delete(&self, reference: &str) -> Result<(), ManagerError> {
        let uuid = reference.to_owned();
        Ok(self
            .db
            .transaction(move |conn| key_pairs::delete(conn, &uuid))
            .await?)
    }
}
