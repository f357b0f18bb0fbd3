//! One claimed batch: drivers polled, results judged, changes written, clusters given back.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use magnum_common::clock;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Cluster;
use magnum_db::DbError;
use magnum_driver_api::{DriverError, HealthReport, Reason, limits};
use magnum_telemetry::field;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::HealthCheck;
use super::verdict::{Verdict, has_own_healer};
use crate::metric_definitions as metric;
use crate::periodic::polling::{ClaimedBatch, Group};
use crate::periodic::utilisation::MonitoredGroup;
use crate::store::cluster_health;
use crate::store::health_polls::{self, Answer, HealthClaim};

/// A cluster after its poll.
struct Polled {
    claim: HealthClaim,
    cluster: Cluster,
    verdict: Verdict,
}

/// The results of one poll of a driver by cluster, or the error of the whole poll.
type HealthResults = Result<HashMap<ClusterUuid, Result<HealthReport, DriverError>>, DriverError>;

impl HealthCheck {
    /// Polls the drivers of all claimed clusters.
    ///
    /// # Errors
    /// The database failed; clusters not given back by then come free when their lease expires.
    pub(super) async fn poll(
        &self,
        mut batch: ClaimedBatch<HealthClaim>,
        shutdown: &CancellationToken,
    ) -> Result<(), DbError> {
        let mut groups = self.poller.groups(&batch).await?;
        let monitored = match &self.utilisation {
            Some(_) => groups
                .iter()
                .filter_map(|group| MonitoredGroup::of(group, &batch))
                .collect(),
            None => Vec::new(),
        };
        groups.retain(|group| group.driver.info().capabilities.health);
        for group in &mut groups {
            group.clusters.retain(|one| !has_own_healer(&one.cluster));
        }
        groups.retain(|group| !group.clusters.is_empty());
        let polls = join_all(groups.iter().map(|group| self.poll_group(group)));
        let Some(results) = batch.renew_while(&self.poller, shutdown, polls).await else {
            return self.hand_over(batch.take_rest()).await;
        };
        let mut polled = Vec::new();
        for (group, results) in groups.into_iter().zip(results) {
            polled.extend(self.judge(&mut batch, group, results));
        }
        let mut answers: HashMap<Answer, Vec<ClusterUuid>> = HashMap::new();
        for one in &polled {
            let cluster = one.claim.cluster.clone();
            answers.entry(one.verdict.answer).or_default().push(cluster);
        }
        // Their labels name an auto-healer, their driver has no `health` or is not loaded here, or their row is unreadable.
        let rest = batch.take_rest().into_iter().map(|claim| claim.cluster);
        answers.entry(Answer::NotAsked).or_default().extend(rest);
        self.write(polled).await?;
        if let Some(queue) = &self.utilisation {
            queue.keep_figures(&monitored);
        }
        self.give_back(answers).await?;
        if let Some(queue) = &self.utilisation {
            queue.enqueue(monitored);
        }
        Ok(())
    }

    async fn poll_group(&self, group: &Group) -> HealthResults {
        let limit = self.poll_timeout();
        let poll = async {
            (
                Instant::now(),
                timeout(limit, group.driver.health(&group.clusters)).await,
            )
        };
        let (begun, results) = self.poller.with_permit(poll).await;
        let driver = group.driver.info();
        metrics::histogram!(metric::HEALTH_SECONDS, "driver" => driver.name.clone())
            .record(begun.elapsed().as_secs_f64());
        let late = || {
            DriverError::Transient(Reason::open(format!(
                "the driver did not answer within {limit:?}"
            )))
        };
        let results = results.unwrap_or_else(|_| Err(late()))?.into_iter();
        let accepted = results.map(|one| (one.cluster, limits::accept_health(driver, one.result)));
        Ok(accepted.collect())
    }

    fn judge(
        &self,
        batch: &mut ClaimedBatch<HealthClaim>,
        group: Group,
        results: HealthResults,
    ) -> Vec<Polled> {
        let mut results = results.unwrap_or_else(|error| {
            let (all, error) = (group.clusters.iter(), as_transient(error));
            all.map(|one| (one.cluster.uuid.clone(), Err(error.clone())))
                .collect()
        });
        let polled = group.clusters.into_iter().filter_map(|one| {
            let (claim, cluster) = (batch.take(&one.cluster.uuid)?, one.cluster);
            let verdict = Verdict::of(
                &cluster,
                results.remove(&cluster.uuid),
                claim.failures,
                time_without_report(&claim, &cluster),
                self.timing.unknown_after,
            );
            metrics::counter!(metric::HEALTH_POLLED, "outcome" => verdict.as_str()).increment(1);
            if let (Answer::Missing { failures }, Some(reason)) = (verdict.answer, &verdict.failure)
                // Not each failure: the 1st, 2nd, 4th, 8th and so on.
                && failures.count_ones() == 1
            {
                tracing::warn!(
                    { field::CLUSTER } = %cluster.uuid, failures, reason = reason.whole(),
                    "the driver cannot tell the cluster's health"
                );
            }
            Some(Polled {
                claim,
                cluster,
                verdict,
            })
        });
        polled.collect()
    }

    /// Writes changed health: one statement that reads the current health, and one for each cluster that changed.
    async fn write(&self, polled: Vec<Polled>) -> Result<(), DbError> {
        let changed: Vec<(HealthClaim, Cluster, HealthReport)> = polled
            .into_iter()
            .filter_map(|one| Some((one.claim, one.cluster, one.verdict.health?)))
            .collect();
        if changed.is_empty() {
            return Ok(());
        }
        let me = self.poller.me.clone();
        let written = self
            .poller
            .db
            .run(move |conn| {
                let uuids: Vec<_> = changed.iter().map(|(claim, ..)| claim.cluster.clone()).collect();
                let mut stored = cluster_health::stored(conn, &uuids)?;
                let mut written = Vec::new();
                for (claim, cluster, report) in changed {
                    let Some(before) = stored.remove(&cluster.uuid) else {
                        continue;
                    };
                    // Somebody else wrote during the poll: that health is as new as the polled one.
                    if !before.says(cluster.health_status, &cluster.health_status_reason) {
                        continue;
                    }
                    let (uuid, fence) = (&cluster.uuid, Some((&me, &claim)));
                    if cluster_health::replace(conn, fence, uuid, &before, report.status, &report.reasons)? {
                        written.push((cluster, report.status));
                    }
                }
                Ok(written)
            })
            .await?;
        for (cluster, health) in written {
            if cluster.health_status != Some(health) {
                tracing::info!({ field::CLUSTER } = %cluster.uuid, %health, "the cluster's health changed");
            }
        }
        Ok(())
    }

    async fn give_back(&self, answers: HashMap<Answer, Vec<ClusterUuid>>) -> Result<(), DbError> {
        for (answer, clusters) in answers {
            if clusters.is_empty() {
                continue;
            }
            let (me, pause) = (self.poller.me.clone(), self.pause());
            self.poller
                .db
                .run(move |conn| health_polls::give_back(conn, &me, &clusters, pause, answer))
                .await?;
        }
        Ok(())
    }

    /// After a stop, or when the leases may have expired: another conductor may poll the clusters at once.
    async fn hand_over(&self, rest: Vec<HealthClaim>) -> Result<(), DbError> {
        let clusters: Vec<ClusterUuid> = rest.into_iter().map(|claim| claim.cluster).collect();
        let me = self.poller.me.clone();
        self.poller
            .db
            .run(move |conn| health_polls::hand_over(conn, &me, &clusters))
            .await
            .map(drop)
    }
}

/// The error of a whole poll is never permanent for its clusters: it says nothing about any of them, so none of them
/// becomes UNKNOWN at once.
fn as_transient(error: DriverError) -> DriverError {
    match error {
        DriverError::Permanent(reason) => DriverError::Transient(reason),
        other => other,
    }
}

/// How long the cluster has been without a health report: at most the time since its row was last written, by an
/// operation or by another writer of its health.
fn time_without_report(claim: &HealthClaim, cluster: &Cluster) -> Duration {
    let written = cluster.updated_at.or(cluster.created_at);
    let since_written = written.map_or(Duration::MAX, |time| {
        (clock::row_now() - time).to_std().unwrap_or_default()
    });
    claim.unanswered.unwrap_or_default().min(since_written)
}
