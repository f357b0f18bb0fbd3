//! Clusters that this conductor holds by a lease.

use std::collections::HashMap;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_db::{AnyConnection, DbError};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{Claim, Poller};

/// Prolongs what a conductor still holds of some clusters, and returns how many that are.
pub(in crate::periodic) type Renew =
    fn(&mut AnyConnection, &ConductorId, &[ClusterUuid], Duration) -> Result<usize, DbError>;

/// Claims that were not given back yet.
pub(in crate::periodic) struct Held<C> {
    claims: HashMap<ClusterUuid, C>,
    renew: Renew,
    /// Until then nobody else can hold them, by our own clock.
    safe_until: Instant,
}

impl<C: Claim> Held<C> {
    /// What was claimed a moment ago for `lease`.
    pub(in crate::periodic) fn new(claims: Vec<C>, lease: Duration, renew: Renew) -> Self {
        Self {
            claims: claims
                .into_iter()
                .map(|claim| (claim.cluster().clone(), claim))
                .collect(),
            renew,
            // The claim was sent before now; the margin covers that.
            safe_until: Instant::now() + safe_part(lease),
        }
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

    /// Hands out a claim, to be given back by the caller.
    pub(in crate::periodic) fn take(&mut self, cluster: &ClusterUuid) -> Option<C> {
        self.claims.remove(cluster)
    }

    /// All that is left, likewise.
    pub(in crate::periodic) fn take_rest(&mut self) -> Vec<C> {
        std::mem::take(&mut self.claims).into_values().collect()
    }

    /// Does `work`, and renews meanwhile. `None`: `shutdown` came, or the leases may have ended; `work` was dropped,
    /// which stops what the drivers do for it.
    pub(in crate::periodic) async fn keep_while<T>(
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
                () = sleep_until(self.safe_until) => return None,
                () = sleep(poller.pace.lease / 3) => self.prolong(poller).await,
            }
        }
    }

    async fn prolong(&mut self, poller: &Poller) {
        let sent = Instant::now();
        let (me, lease, renew, held) = (poller.me.clone(), poller.pace.lease, self.renew, self.uuids());
        let wanted = held.len();
        let renewal = poller.db.run(move |conn| renew(conn, &me, &held, lease));
        match timeout_at(self.safe_until, renewal).await {
            Ok(Ok(renewed)) if renewed == wanted => self.safe_until = sent + safe_part(lease),
            // Some are lost (their cluster was removed, or another conductor has them): the write of each
            // compares, so only the time until which all are safe stays as it was.
            Ok(Ok(renewed)) => tracing::debug!(renewed, wanted, "some polled clusters are not ours any more"),
            Ok(Err(error)) => tracing::debug!(%error, "polled clusters could not be kept"),
            Err(_) => {}
        }
    }
}

/// How much of a lease is used, by our own clock.
fn safe_part(lease: Duration) -> Duration {
    lease * 5 / 6
}
