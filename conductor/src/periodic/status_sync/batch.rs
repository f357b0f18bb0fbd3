//! One claimed batch: put to the drivers, judged, written, given back.

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
use crate::periodic::polling::{Group, Held, Poller};
use crate::store::polls::{self, Claimed};
use crate::workflows::outcome;
use magnum_driver_api::{DriverError, DriverReport, limits};

/// A cluster after the look.
struct Looked {
    claimed: Claimed,
    cluster: Cluster,
    node_groups: Vec<NodeGroup>,
    verdict: Verdict,
}

/// What a driver saw of the clusters that it was asked about together.
type Sights = Result<HashMap<ClusterUuid, Result<DriverReport, DriverError>>, DriverError>;

impl StatusSync {
    /// Looks at all of them. An error is the database's: what is still held comes free when the lease ends.
    pub(super) async fn look(
        &self,
        claimed: Vec<Claimed>,
        shutdown: &CancellationToken,
    ) -> Result<(), DbError> {
        let mut held = Held::new(claimed, self.poller.pace.lease, polls::renew);
        let groups = self.poller.groups(&held).await?;
        let asking = join_all(groups.iter().map(|group| observe(&self.poller, group)));
        let seen = held.keep_while(&self.poller, shutdown, asking).await;
        let mut looked = Vec::new();
        for (group, seen) in groups.into_iter().zip(seen.unwrap_or_default()) {
            looked.extend(judge(&mut held, group, seen));
        }
        self.write(looked).await?;
        self.give_back_rest(held.take_rest(), shutdown.is_cancelled())
            .await
    }

    async fn write(&self, looked: Vec<Looked>) -> Result<(), DbError> {
        let (mut unchanged, mut failed) = (Vec::new(), Vec::new());
        for one in looked {
            match one.verdict {
                Verdict::Unchanged => unchanged.push(one.claimed.cluster),
                Verdict::Failed(reason) => failed.push(self.failed_again(one.claimed, &reason)),
                Verdict::Changed(report) => {
                    let seen = ClusterSnapshot {
                        cluster: one.cluster,
                        node_groups: one.node_groups,
                    };
                    let span = tracing::info_span!(
                        "settle",
                        { field::CLUSTER } = %one.claimed.cluster,
                        { field::OPERATION } = one.claimed.operation.as_ref().map(OperationId::as_str),
                    );
                    self.write_one(one.claimed, seen, *report).instrument(span).await;
                }
            }
        }
        self.give_back(unchanged, self.pause(), 0).await?;
        self.give_back_failed(failed).await
    }

    async fn write_one(&self, claimed: Claimed, mut seen: ClusterSnapshot, report: DriverReport) {
        let (me, pause) = (self.poller.me.clone(), self.pause());
        let (cluster, operation) = (seen.cluster.clone(), claimed.operation.clone());
        outcome::applied(&report, &mut seen.cluster, &mut seen.node_groups);
        let written = self
            .poller
            .db
            .transaction(move |conn| {
                // The cluster first: the order in which everybody locks.
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
                self.notices.send(notice_of(status, operation, seen));
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

    /// A look that failed, counted.
    fn failed_again(&self, claimed: Claimed, reason: &str) -> Claimed {
        let failures = claimed.failures.saturating_add(1);
        // Not each of them: the first, and then seldom.
        if failures.count_ones() == 1 {
            tracing::warn!(
                { field::CLUSTER } = %claimed.cluster, failures,
                next = ?pause_after(failures, self.poller.pace.interval), reason,
                "the driver cannot tell how the cluster stands"
            );
        }
        Claimed { failures, ..claimed }
    }

    /// Gives back what could not be looked at, to be looked at later and later: one statement for all that failed
    /// equally often.
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

    /// What was not looked at: its driver is not here, its row cannot be read, or we stop.
    async fn give_back_rest(&self, rest: Vec<Claimed>, stopping: bool) -> Result<(), DbError> {
        if !stopping {
            let failed = rest.into_iter().map(|claimed| Claimed {
                failures: claimed.failures.saturating_add(1),
                ..claimed
            });
            return self.give_back_failed(failed.collect()).await;
        }
        // Another conductor may look at once; how often looks failed before is as it was.
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

async fn observe(poller: &Poller, group: &Group) -> Sights {
    let (begun, seen) = poller
        .in_turn(async {
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
    let seen = seen?.into_iter();
    let accepted = seen.map(|one| (one.cluster, limits::accept(group.driver.info(), one.result)));
    Ok(accepted.collect())
}

fn judge(held: &mut Held<Claimed>, group: Group, seen: Sights) -> Vec<Looked> {
    let mut seen = seen.unwrap_or_else(|error| {
        let all = group.clusters.iter();
        all.map(|one| (one.cluster.uuid.clone(), Err(error.clone())))
            .collect()
    });
    let looked = group.clusters.into_iter().filter_map(|one| {
        let claimed = held.take(&one.cluster.uuid)?;
        let verdict = Verdict::of(&one.cluster, &one.node_groups, seen.remove(&one.cluster.uuid));
        metrics::counter!(metric::CLUSTERS_POLLED, "outcome" => verdict.as_str()).increment(1);
        Some(Looked {
            claimed,
            cluster: one.cluster,
            node_groups: one.node_groups,
            verdict,
        })
    });
    looked.collect()
}
