//! A batch of clusters that this conductor has claimed under a lease.

use std::collections::HashMap;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_db::{AnyConnection, DbError};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Claim, Poller};

/// Renews the claims that a conductor still has on these clusters. Returns their number.
pub(in crate::periodic) type Renew =
    fn(&mut AnyConnection, &ConductorId, &[ClusterUuid], Duration) -> Result<usize, DbError>;

/// Claims that have not been given back yet.
pub(in crate::periodic) struct ClaimedBatch<C> {
    claims: HashMap<ClusterUuid, C>,
    renew: Renew,
    /// Until then no other conductor can claim the clusters, by the clock of this process.
    valid_until: Instant,
    /// Cancelled when the batch is: what its looks still wait for is of no more use.
    over: CancellationToken,
}

impl<C> Drop for ClaimedBatch<C> {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl<C: Claim> ClaimedBatch<C> {
    /// A batch that was claimed for `lease`; the claim was sent at `sent` or after it.
    pub(in crate::periodic) fn new(claims: Vec<C>, sent: Instant, lease: Duration, renew: Renew) -> Self {
        Self {
            claims: claims
                .into_iter()
                .map(|claim| (claim.cluster().clone(), claim))
                .collect(),
            renew,
            valid_until: sent + usable_part(lease),
            over: CancellationToken::new(),
        }
    }

    /// How many claims have not been given back yet.
    pub(in crate::periodic) fn len(&self) -> usize {
        self.claims.len()
    }

    /// Is cancelled when the batch is dropped.
    pub(super) const fn over(&self) -> &CancellationToken {
        &self.over
    }

    pub(super) fn uuids(&self) -> Vec<ClusterUuid> {
        self.claims.keys().cloned().collect()
    }

    pub(super) fn claims(&self) -> impl Iterator<Item = &C> {
        self.claims.values()
    }

    pub(in crate::periodic) fn claim(&self, cluster: &ClusterUuid) -> Option<&C> {
        self.claims.get(cluster)
    }

    /// Takes one claim out; the caller gives it back.
    pub(in crate::periodic) fn take(&mut self, cluster: &ClusterUuid) -> Option<C> {
        self.claims.remove(cluster)
    }

    /// Takes all remaining claims out; the caller gives them back.
    pub(in crate::periodic) fn take_rest(&mut self) -> Vec<C> {
        std::mem::take(&mut self.claims).into_values().collect()
    }

    /// Runs `work` and renews the claims meanwhile. `None`: `shutdown` came, or the leases may have expired; `work` was
    /// dropped, which stops its calls of drivers.
    pub(in crate::periodic) async fn renew_while<T>(
        &mut self,
        poller: &Poller,
        shutdown: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Some(done),
                () = shutdown.cancelled() => return None,
                () = sleep_until(self.valid_until) => return None,
                () = sleep(poller.pace.lease / 3) => self.renew_claims(poller).await,
            }
        }
    }

    async fn renew_claims(&mut self, poller: &Poller) {
        let sent = Instant::now();
        let (me, lease, renew, clusters) = (poller.me.clone(), poller.pace.lease, self.renew, self.uuids());
        let wanted = clusters.len();
        let renewal = poller.db.run(move |conn| renew(conn, &me, &clusters, lease));
        match timeout_at(self.valid_until, renewal).await {
            Ok(Ok(renewed)) if renewed == wanted => self.valid_until = sent + usable_part(lease),
            // Some claims are lost (their cluster was deleted, or another conductor has them). Writes are fenced, so
            // it is enough that the time until which all claims are valid stays as it was.
            Ok(Ok(renewed)) => tracing::debug!(renewed, wanted, "some polled clusters are not ours any more"),
            Ok(Err(error)) => tracing::debug!(%error, "polled clusters could not be kept"),
            Err(_) => {}
        }
    }
}

/// The part of a lease that is used: in the rest calls of drivers are stopped.
fn usable_part(lease: Duration) -> Duration {
    lease * 5 / 6
}
