//! Removes users and trusts of deleted clusters from Keystone: see [`crate::trusts`].
//!
//! Conductors share the work by claims, which end by themselves. A removal is retried until it succeeds, with pauses that
//! grow to an hour; it is in the log and in the table with its reason until then.

use std::time::Duration;

use magnum_common::ids::ConductorId;
use magnum_common::retry::RetryPolicy;
use magnum_db::{Database, DbError};
use magnum_telemetry::field;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::{FailureLog, Rounds};
use crate::store::cluster_trusts::{self, TrustRow};
use crate::trusts::Trusts;

/// Time between two rounds.
const INTERVAL: Duration = Duration::from_secs(5);
/// Most removals claimed at once.
const BATCH: i64 = 10;
/// How long a claim lasts: longer than the requests of a whole batch take while Keystone responds.
const CLAIM_DURATION: Duration = Duration::from_secs(5 * 60);
const POLICY: RetryPolicy = RetryPolicy {
    initial: Duration::from_secs(10),
    max_interval: Duration::from_secs(60 * 60),
    multiplier: 2.0,
    jitter: 0.2,
};

/// Removes trusts, for one conductor.
#[derive(Clone)]
pub struct TrustRemoval {
    /// The database.
    pub db: Database,
    /// The id of this conductor.
    pub me: ConductorId,
    /// Keystone.
    pub trusts: Trusts,
}

impl TrustRemoval {
    /// Removes until `shutdown`.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut rounds = Rounds::new(INTERVAL, shutdown.clone());
        let mut failures = FailureLog::of("looking for trusts to remove");
        while rounds.next().await {
            tokio::select! {
                pass = self.pass() => drop(failures.record(pass)),
                () = shutdown.cancelled() => return,
            }
        }
    }

    /// Removes all trusts whose removal is due.
    ///
    /// # Errors
    /// The database failed; what is claimed then is due again at the end of the claim.
    pub async fn pass(&self) -> Result<(), DbError> {
        loop {
            let me = self.me.clone();
            let claimed = self
                .db
                .transaction(move |conn| cluster_trusts::claim_removals(conn, &me, CLAIM_DURATION, BATCH))
                .await?;
            if claimed.is_empty() {
                return Ok(());
            }
            for row in claimed {
                let span = tracing::info_span!("trust removal", { field::CLUSTER } = %row.cluster_uuid);
                self.remove(row).instrument(span).await?;
            }
        }
    }

    async fn remove(&self, row: TrustRow) -> Result<(), DbError> {
        let Err(error) = self.trusts.remove(&row).await else {
            tracing::debug!("the trust is removed");
            let cluster = row.cluster_uuid;
            return self
                .db
                .run(move |conn| cluster_trusts::removed(conn, &cluster))
                .await;
        };
        let failures = u32::try_from(row.failures).unwrap_or(0).saturating_add(1);
        let delay = POLICY.delay_after(failures);
        let reason = error.to_string();
        tracing::warn!(
            error = reason,
            failures,
            again_in_s = delay.as_secs(),
            "the user and the trust of a cluster that is gone cannot be removed from Keystone now"
        );
        let me = self.me.clone();
        self.db
            .run(move |conn| cluster_trusts::retry_later(conn, &me, &row, delay, &reason))
            .await
    }
}
