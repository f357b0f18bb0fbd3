//! What the deployment has agreed on about sealed values ([`crate::store::sealing`]): read at the start and once a minute.

use std::time::Duration;

use magnum_config::{CertManagerType, Settings};
use magnum_db::{Database, DbError};
use tokio_util::sync::CancellationToken;

use super::{FailureLog, Rounds};
use crate::seal::{Beginning, JournalKey};
use crate::store::sealing;

/// Far below [`sealing::GRACE`].
const INTERVAL: Duration = Duration::from_secs(60);

/// Reads it, and says what begins with this conductor: binding, in a database that is not used yet, and the sealing of private
/// keys, where that is turned on.
///
/// # Errors
/// The database's.
pub async fn at_start(settings: &Settings, db: &Database, key: &JournalKey) -> Result<(), DbError> {
    let certificates = &settings.certificates;
    let seals_keys =
        certificates.seal_private_keys && certificates.cert_manager_type == CertManagerType::X509KeyPair;
    let key = key.clone();
    let problems = db
        .transaction(move |conn| {
            sealing::complete_if_unused(conn, &key)?;
            if seals_keys {
                // Not at once: conductors beside may be restarted with that option in a while.
                sealing::begin(conn, &key, Beginning::SealedKeys, sealing::GRACE)?;
            }
            sealing::refresh(conn, &key)
        })
        .await?;
    report(&problems);
    Ok(())
}

/// Reads it until `shutdown`.
pub async fn run(db: Database, key: JournalKey, shutdown: CancellationToken) {
    let mut rounds = Rounds::new(INTERVAL, shutdown);
    let mut failures = FailureLog::of("reading since when values are sealed");
    while rounds.next().await {
        let key = key.clone();
        let read = db.transaction(move |conn| sealing::refresh(conn, &key)).await;
        report(&failures.record::<_, DbError>(read).unwrap_or_default());
    }
}

fn report(problems: &[String]) {
    for problem in problems {
        tracing::error!(problem, "sealed values");
    }
}
