//! Removes what clusters left in the store of certificates: see [`crate::store::certificate_removals`].
//!
//! Conductors share the work by claims. A removal is repeated until it succeeds, ever more rarely, at last once an
//! hour: what cannot be removed (a service user without the right to) can be once an operator has seen to it, and is
//! in the log and in the table with its reason until then. Each is removed by the manager that has it; of one that is
//! not configured any more the log speaks once, and the reference is kept.
//!
//! A conductor that stops gives back what it has claimed; one that is killed keeps it until the claim ends.

use std::time::Duration;

use magnum_common::ids::ConductorId;
use magnum_common::retry::RetryPolicy;
use magnum_db::Database;
use magnum_telemetry::field;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{Rounds, Trouble};
use crate::certificates::Certificates;
use crate::operations::journal::{JournalError, read};
use crate::store::certificate_removals::MadeBy;
use crate::store::certificate_removals::queue::{self, Claimed};

/// Time between two looks, when nobody wakes us.
const EVERY: Duration = Duration::from_secs(5);
/// Claimed at a time.
const BATCH: i64 = 20;
/// Longest time to give claims back at the end.
const GIVE_BACK_WITHIN: Duration = Duration::from_secs(5);
/// A claim. Longer than the requests that a batch may need take when the service answers at all.
const TERM: Duration = Duration::from_secs(10 * 60);
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
    /// This process.
    pub me: ConductorId,
    /// The store.
    pub certificates: Certificates,
}

impl CertificateRemoval {
    /// Removes until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(EVERY, shutdown.clone());
        let mut trouble = Trouble::with("looking for certificates to remove");
        loop {
            tokio::select! {
                pass = self.pass() => drop(trouble.note(pass)),
                () = shutdown.cancelled() => break,
            }
            if !rounds.next_or(self.certificates.removal_wanted()).await {
                break;
            }
        }
        self.give_back().await;
    }

    /// What was begun is repeated by another conductor, as after a failure.
    async fn give_back(&self) {
        let me = self.me.clone();
        let released = self.db.transaction(move |conn| queue::release(conn, &me));
        match tokio::time::timeout(GIVE_BACK_WITHIN, released).await {
            Ok(Ok(0)) => {}
            Ok(Ok(given)) => tracing::info!(given, "certificates to remove were given back"),
            Ok(Err(error)) => {
                tracing::warn!(%error, "certificates to remove stay claimed for up to {TERM:?}")
            }
            Err(_) => tracing::warn!(
                "certificates to remove stay claimed for up to {TERM:?}: no answer of the database"
            ),
        }
    }

    /// Removes what is due. Returns how many are gone.
    ///
    /// # Errors
    /// The database failed.
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
                .transaction(move |conn| queue::claim(conn, &me, TERM, BATCH))
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

    /// An operation that an operator tries again finds what it has made.
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
                // A store that is not configured does not come back by itself: said once is enough.
                let is_told = error.is_not_configured() && due.reason.as_ref() == Some(&reason);
                if !is_told {
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
