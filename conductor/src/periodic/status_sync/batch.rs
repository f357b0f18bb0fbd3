//! One claimed batch: drivers polled, results judged, changes written, clusters given back.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::{Cluster, NodeGroup};
use magnum_db::{DbError, lock};
use magnum_telemetry::field;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::StatusSync;
use super::record::{notice_of, record};
use super::verdict::{Verdict, pause_after};
use crate::metric_definitions as metric;
use crate::operations::JournalError;
use crate::operations::notice::ClusterSnapshot;
use crate::periodic::polling::{ClaimedBatch, Group, Poller};
use crate::store::polls::{self, Claimed};
use crate::workflows::outcome;
use magnum_driver_api::{DriverError, DriverReport, limits};

/// A cluster after its poll.
struct Polled {
    claimed: Claimed,
    cluster: Cluster,
    node_groups: Vec<NodeGroup>,
    verdict: Verdict,
}

/// The results of one poll of a driver by cluster, or the error of the whole poll.
type Observations = Result<HashMap<ClusterUuid, Result<DriverReport, DriverError>>, DriverError>;

impl StatusSync {
    /// Polls the drivers of all claimed clusters.
    ///
    /// # Errors
    /// The database failed; clusters not given back by then come free when their lease expires.
    pub(super) async fn poll(
        &self,
        mut batch: ClaimedBatch<Claimed>,
        shutdown: &CancellationToken,
    ) -> Result<(), DbError> {
        let groups = self.poller.groups(&batch).await?;
        let polls = join_all(groups.iter().map(|group| observe(&self.poller, group)));
        let observed = batch.renew_while(&self.poller, shutdown, polls).await;
        let mut polled = Vec::new();
        for (group, observations) in groups.into_iter().zip(observed.unwrap_or_default()) {
            polled.extend(judge(&mut batch, group, observations));
        }
        self.write(polled).await?;
        self.give_back_rest(batch.take_rest(), shutdown.is_cancelled())
            .await
    }

    async fn write(&self, polled: Vec<Polled>) -> Result<(), DbError> {
        let (mut unchanged, mut failed) = (Vec::new(), Vec::new());
        for one in polled {
            match one.verdict {
                Verdict::Unchanged => unchanged.push(one.claimed.cluster),
                Verdict::Failed(reason) => failed.push(self.count_failure(one.claimed, &reason)),
                Verdict::Changed(report) => {
                    let snapshot = ClusterSnapshot {
                        cluster: one.cluster,
                        node_groups: one.node_groups,
                    };
                    let span = tracing::info_span!(
                        "settle",
                        { field::CLUSTER } = %one.claimed.cluster,
                        { field::OPERATION } = one.claimed.operation.as_ref().map(OperationId::as_str),
                    );
                    self.write_report(one.claimed, snapshot, *report)
                        .instrument(span)
                        .await;
                }
            }
        }
        self.give_back(unchanged, self.pause(), 0).await?;
        self.give_back_failed(failed).await
    }

    async fn write_report(&self, claimed: Claimed, mut snapshot: ClusterSnapshot, report: DriverReport) {
        let (me, pause) = (self.poller.me.clone(), self.pause());
        let (cluster, operation) = (snapshot.cluster.clone(), claimed.operation.clone());
        outcome::applied(&report, &mut snapshot.cluster, &mut snapshot.node_groups);
        let written = self
            .poller
            .db
            .brief_transaction(move |conn| {
                // The cluster first: all transactions lock in this order.
                if !lock::cluster(conn, &cluster.uuid)? || !polls::give_back(conn, &me, &claimed, pause, 0)? {
                    return Ok(None);
                }
                record(conn, &cluster, &report)
            })
            .await;
        match written {
            Ok(Some(status)) if !status.is_in_progress() => {
                tracing::info!(%status, "the cluster reached its end");
                // Its next operation may begin.
                self.signals.work.notify_one();
                self.notices.send(notice_of(status, operation, snapshot));
            }
            Ok(Some(_)) => {}
            Ok(None) => {
                tracing::debug!("somebody else went ahead with the cluster")
            }
            Err(error) => {
                let error: JournalError = error;
                tracing::warn!(%error, "a cluster's status could not be written");
            }
        }
    }

    /// Counts and logs a failed poll.
    fn count_failure(&self, claimed: Claimed, reason: &str) -> Claimed {
        let failures = claimed.failures.saturating_add(1);
        // Not each failure: the 1st, 2nd, 4th, 8th and so on.
        if failures.count_ones() == 1 {
            tracing::warn!(
                { field::CLUSTER } = %claimed.cluster, failures,
                next = ?pause_after(failures, self.poller.pace.interval), reason,
                "the driver cannot tell how the cluster stands"
            );
        }
        Claimed { failures, ..claimed }
    }

    /// Gives back clusters whose poll failed, due after a pause that grows with the failures: one statement for all with
    /// the same number of failures.
    async fn give_back_failed(&self, failed: Vec<Claimed>) -> Result<(), DbError> {
        let mut by_failures: HashMap<i32, Vec<ClusterUuid>> = HashMap::new();
        for claimed in failed {
            by_failures
                .entry(claimed.failures)
                .or_default()
                .push(claimed.cluster);
        }
        for (failures, clusters) in by_failures {
            let pause = pause_after(failures, self.poller.pace.interval);
            self.give_back(clusters, pause, failures).await?;
        }
        Ok(())
    }

    async fn give_back(
        &self,
        clusters: Vec<ClusterUuid>,
        pause: Duration,
        failures: i32,
    ) -> Result<(), DbError> {
        if clusters.is_empty() {
            return Ok(());
        }
        let me = self.poller.me.clone();
        self.poller
            .db
            .run(move |conn| polls::give_back_many(conn, &me, &clusters, pause, failures))
            .await
            .map(drop)
    }

    /// Gives back clusters that were not polled: their driver is not loaded here, their row is unreadable, or the
    /// conductor stops.
    async fn give_back_rest(&self, rest: Vec<Claimed>, stopping: bool) -> Result<(), DbError> {
        if !stopping {
            let failed = rest.into_iter().map(|claimed| Claimed {
                failures: claimed.failures.saturating_add(1),
                ..claimed
            });
            return self.give_back_failed(failed.collect()).await;
        }
        // Another conductor may poll at once; the number of failures stays as it was.
        for claimed in rest {
            let (me, failures) = (self.poller.me.clone(), claimed.failures);
            self.poller
                .db
                .run(move |conn| polls::give_back(conn, &me, &claimed, Duration::ZERO, failures))
                .await?;
        }
        Ok(())
    }
}

async fn observe(poller: &Poller, group: &Group) -> Observations {
    let (begun, observed) = poller
        .with_permit(async {
            let span = tracing::info_span!("observe", { field::DRIVER } = group.driver.info().name);
            let begun = Instant::now();
            (
                begun,
                group.driver.observe(&group.clusters).instrument(span).await,
            )
        })
        .await;
    metrics::histogram!(metric::OBSERVE_SECONDS, "driver" => group.driver.info().name.clone())
        .record(begun.elapsed().as_secs_f64());
    let accepted = observed?
        .into_iter()
        .map(|one| (one.cluster, limits::accept(group.driver.info(), one.result)));
    Ok(accepted.collect())
}

fn judge(batch: &mut ClaimedBatch<Claimed>, group: Group, observations: Observations) -> Vec<Polled> {
    let mut observations = observations.unwrap_or_else(|error| {
        let all = group.clusters.iter();
        all.map(|one| (one.cluster.uuid.clone(), Err(error.clone())))
            .collect()
    });
    let polled = group.clusters.into_iter().filter_map(|one| {
        let claimed = batch.take(&one.cluster.uuid)?;
        let verdict = Verdict::of(
            &one.cluster,
            &one.node_groups,
            observations.remove(&one.cluster.uuid),
        );
        metrics::counter!(metric::CLUSTERS_POLLED, "outcome" => verdict.as_str()).increment(1);
        Some(Polled {
            claimed,
            cluster: one.cluster,
            node_groups: one.node_groups,
            verdict,
        })
    });
    polled.collect()
}
