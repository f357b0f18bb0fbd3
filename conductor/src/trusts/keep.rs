//! Keeps users and trusts of clusters of Magnum 22, before the revision of 23 drops their columns.

use std::path::Path;

use magnum_common::ids::ClusterUuid;
use magnum_common::secret::Secret;
use magnum_db::migrate::Report;
use magnum_db::{AnyConnection, DbError};

use crate::seal::JournalKey;
use crate::store::cluster_trusts::{self, TrustRow};
use crate::store::former_trusts::{self, FormerTrust};

/// Copies them to our table, passwords sealed with the journal key, which is made if there is none. May be repeated; those
/// that are there stay as they are.
///
/// # Errors
/// The database failed, or there is no key.
pub fn keep(conn: &mut AnyConnection, key: &Path) -> Result<Report, DbError> {
    let former = former_trusts::list(conn)?;
    if former.is_empty() {
        return Ok(Report::new());
    }
    let key = JournalKey::load_or_create(key)
        .map_err(|error| DbError::Schema(format!("trusts of clusters cannot be kept: {error}")))?;
    let mut kept = 0;
    for one in former {
        let row = row(one, &key)?;
        kept += usize::from(cluster_trusts::insert(conn, &row)?);
    }
    Ok(match kept {
        0 => Report::new(),
        _ => vec![format!(
            "kept the users and trusts of {kept} clusters in conductor_cluster_trust, their passwords sealed"
        )],
    })
}

fn row(former: FormerTrust, key: &JournalKey) -> Result<TrustRow, DbError> {
    let password = Secret::new(former.trustee_password.unwrap_or_default());
    let cluster = ClusterUuid::from(former.uuid);
    let sealed_password =
        super::seal(key, &cluster, &password).map_err(|error| DbError::Schema(error.to_string()))?;
    Ok(TrustRow {
        cluster_uuid: cluster,
        trustee_username: former.trustee_username.unwrap_or_default(),
        trustee_user_id: former.trustee_user_id,
        trust_id: former.trust_id,
        sealed_password,
        failures: 0,
        created_ms: 0,
    })
}
