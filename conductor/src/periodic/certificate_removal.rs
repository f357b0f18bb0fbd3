//! Removes certificates of deleted clusters and failed operations from their store: see
//! [`crate::store::certificate_removals`].
//!
//! Conductors share the work by claims. A removal is retried until it succeeds, with pauses that grow to an hour: a
//! certificate that cannot be removed (the service user lacks the permission) can be once an operator has seen to it,
//! and is in the log and in the table with its reason until then. Each is removed by the manager that stores it; a
//! manager that is not configured any more is logged once, and the reference is kept.
//!
//! A conductor that stops gives its claims back; those of a killed one end after ten minutes.

use std::time::Duration;

use magnum_common::ids::ConductorId;
use magnum_common::retry::RetryPolicy;
use magnum_db::Database;
use magnum_telemetry::field;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{FailureLog, Rounds};
use crate::certificates::Certificates;
use crate::operations::journal::{JournalError, read};
use crate::store::certificate_removals::MadeBy;
use crate::store::certificate_removals::queue::{self, Claimed};

/// Time between two rounds, unless [`Certificates::wake_removal`] starts one earlier.
const INTERVAL: Duration = Duration::from_secs(5);
/// Most removals claimed at once.
const BATCH: i64 = 20;
/// Longest time to give claims back when the conductor stops.
const GIVE_BACK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a claim lasts: longer than the requests of a whole batch take while the service responds.
const CLAIM_DURATION: Duration = Duration::from_secs(10 * 60);
const POLICY: RetryPolicy = RetryPolicy {
    initial: Duration::from_secs(10),
    max_interval: Duration::from_secs(60 * 60),
    multiplier: 2.0,
    jitter: 0.2,
};

/// Removes certificates, for one conductor.
#[derive(Clone)]
pub struct CertificateRemoval {
    /// The database.
    pub db: Database,
    /// The id of this conductor.
    pub me: ConductorId,
    /// The stores of certificates.
    pub certificates: Certificates,
}

impl CertificateRemoval {
    /// Removes until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(INTERVAL, shutdown.clone());
        let mut failures = FailureLog::of("looking for certificates to remove");
        loop {
            tokio::select! {
                pass = self.pass() => drop(failures.record(pass)),
                () = shutdown.cancelled() => break,
            }
            if !rounds.next_or(self.certificates.removal_wanted()).await {
                break;
            }
        }
        self.give_back().await;
    }

    /// Gives all claims back. A removal that was begun is repeated by another conductor, as after a failure.
    async fn give_back(&self) {
        let me = self.me.clone();
        let released = self.db.transaction(move |conn| queue::release(conn, &me));
        match tokio::time::timeout(GIVE_BACK_TIMEOUT, released).await {
            Ok(Ok(0)) => {}
            Ok(Ok(given)) => tracing::info!(given, "certificates to remove were given back"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "certificates to remove stay claimed for up to {CLAIM_DURATION:?}")
            }
            Err(_) => tracing::warn!(
                "certificates to remove stay claimed for up to {CLAIM_DURATION:?}: no answer of the database"
            ),
        }
    }

    /// Removes all certificates whose removal is due. Returns how many were removed.
    ///
    /// # Errors
    /// The database failed; what is claimed then is given back at the end of the claim.
    pub async fn pass(&self) -> Result<usize, JournalError> {
        let mut removed = 0;
        let own = self.certificates.kind();
        self.db
            .transaction(move |conn| queue::assign_managers(conn, own))
            .await?;
        loop {
            let me = self.me.clone();
            let batch = self
                .db
                .transaction(move |conn| queue::claim(conn, &me, CLAIM_DURATION, BATCH))
                .await?;
            if batch.is_empty() {
                return Ok(removed);
            }
            for due in batch {
                let span = tracing::info_span!("certificate removal", { field::CLUSTER } = %due.cluster);
                removed += usize::from(self.remove(due).instrument(span).await?);
            }
        }
    }

    /// Whether the operation has not ended: one that an operator retries uses the certificates it has stored.
    async fn is_open(&self, made: &MadeBy) -> Result<bool, JournalError> {
        let operation = made.operation.clone();
        Ok(self.db.run(move |conn| read::is_open(conn, &operation)).await?)
    }

    async fn remove(&self, due: Claimed) -> Result<bool, JournalError> {
        let manager = due.manager.unwrap_or_else(|| self.certificates.kind());
        let outcome = match MadeBy::read(&due.reference) {
            None => self.certificates.remove_from(manager, &due.reference).await,
            Some(made) if self.is_open(&made).await? => Ok(()),
            Some(made) => {
                self.certificates
                    .remove_made_by(manager, &made.operation, &made.name)
                    .await
            }
        };
        match outcome {
            Ok(()) => {
                tracing::debug!(certificate = due.reference, "removed");
                let id = due.id;
                self.db.transaction(move |conn| queue::complete(conn, id)).await?;
                Ok(true)
            }
            Err(error) => {
                let delay = POLICY.delay_after(due.failures + 1);
                let reason = error.to_string();
                // A store that is not configured does not come back by itself: it is logged once.
                let is_logged = error.is_not_configured() && due.reason.as_ref() == Some(&reason);
                if !is_logged {
                    tracing::warn!(
                        %error,
                        certificate = due.reference,
                        failures = due.failures + 1,
                        again_in_s = delay.as_secs(),
                        "a certificate of a cluster that is gone cannot be removed now"
                    );
                }
                let me = self.me.clone();
                self.db
                    .transaction(move |conn| queue::retry_later(conn, &me, &due, delay, &reason))
                    .await?;
                Ok(false)
            }
        }
    }
}
