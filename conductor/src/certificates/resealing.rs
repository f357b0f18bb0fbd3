//! Private keys of the table `x509keypair` in the form that new ones get.

use std::sync::Arc;

use magnum_config::Settings;
use magnum_db::{AnyConnection, DbError};

use super::manager::{Kept, Sealing};
use crate::seal::JournalKey;
use crate::store::key_pairs;
use crate::store::resealing::Resealed;

/// Seals those that may be read (`Sealing::open`) and are not as new ones would be; each is written only if it is still what
/// was read.
///
/// # Errors
/// The database's.
pub fn reseal(conn: &mut AnyConnection, settings: &Settings, key: &JournalKey) -> Result<Resealed, DbError> {
    let mut done = Resealed::default();
    if !settings.certificates.seal_private_keys {
        return Ok(done);
    }
    let sealing = Sealing::new(Arc::new(key.clone()), &settings.certificates);
    for uuid in key_pairs::uuids(conn)? {
        let Some(row) = key_pairs::find(conn, &uuid)? else {
            continue;
        };
        let Some(before) = row.private_key else { continue };
        if sealing.is_current(&uuid, before.expose()) {
            continue;
        }
        let opened = sealing.open(&uuid, before.expose(), Kept::Row(row.created_at));
        match opened.and_then(|plain| sealing.close(&uuid, &plain)) {
            Ok(after) => done.renewed += usize::from(key_pairs::renew(conn, &uuid, &before, &after)?),
            Err(_) => done.refused += 1,
        }
    }
    Ok(done)
}
