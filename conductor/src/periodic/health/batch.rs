//! One claimed batch: put to the drivers, judged, written, given back.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use magnum_common::clock;
use magnum_common::ids::ClusterUuid;
use magnum_common::model::Cluster;
use magnum_db::DbError;
use magnum_driver_api::{DriverError, HealthReport, limits};
use magnum_telemetry::field;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::HealthCheck;
use super::verdict::{Verdict, has_own_healer};
use crate::metric_definitions as metric;
use crate::periodic::polling::{Group, Held};
use crate::periodic::utilisation::Watched;
use crate::store::cluster_health;
use crate::store::health_polls::{self, Answer, HealthClaim};

/// A cluster after the look.
struct Looked {
    claim: HealthClaim,
    cluster: Cluster,
    verdict: Verdict,
}

/// What a driver said of the clusters that it was asked about together.
type Sights = Result<HashMap<ClusterUuid, Result<HealthReport, DriverError>>, DriverError>;

impl HealthCheck {
    /// Looks at all of them. An error is the database's: what is still held comes free when the lease ends.
    pub(super) async fn look(
        &self,
        claims: Vec<HealthClaim>,
        shutdown: &CancellationToken,
    ) -> Result<(), DbError> {
        let mut held = Held::new(claims, self.poller.pace.lease, health_polls::renew);
        let mut groups = self.poller.groups(&held).await?;
        let monitored = match &self.utilisation {
            Some(_) => groups
                .iter()
                .filter_map(|group| Watched::of(group, &held))
                .collect(),
            None => Vec::new(),
        };
        groups.retain(|group| group.driver.info().capabilities.health);
        for group in &mut groups {
            group.clusters.retain(|one| !has_own_healer(&one.cluster));
        }
        groups.retain(|group| !group.clusters.is_empty());
        let asking = join_all(groups.iter().map(|group| self.ask(group)));
        let Some(seen) = held.keep_while(&self.poller, shutdown, asking).await else {
            return self.hand_over(held.take_rest()).await;
        };
        let mut looked = Vec::new();
        for (group, seen) in groups.into_iter().zip(seen) {
            looked.extend(self.judge(&mut held, group, seen));
        }
        let mut answers: HashMap<Answer, Vec<ClusterUuid>> = HashMap::new();
        for one in &looked {
            let cluster = one.claim.cluster.clone();
            answers.entry(one.verdict.answer).or_default().push(cluster);
        }
        // Their labels name somebody else, their driver does not tell or is not loaded here, or their row cannot be read.
        let rest = held.take_rest().into_iter().map(|claim| claim.cluster);
        answers.entry(Answer::NotAsked).or_default().extend(rest);
        self.write(looked).await?;
        if let Some(queue) = &self.utilisation {
            queue.announce(&monitored);
        }
        self.give_back(answers).await?;
        if let Some(queue) = &self.utilisation {
            queue.hand_over(monitored);
        }
        Ok(())
    }

    async fn ask(&self, group: &Group) -> Sights {
        let limit = self.longest_look();
        let asked = async {
            (
                Instant::now(),
                timeout(limit, group.driver.health(&group.clusters)).await,
            )
        };
        let (begun, seen) = self.poller.in_turn(asked).await;
        let driver = group.driver.info();
        metrics::histogram!(metric::HEALTH_SECONDS, "driver" => driver.name.clone())
            .record(begun.elapsed().as_secs_f64());
        let late = || DriverError::Transient(format!("the driver did not answer within {limit:?}"));
        let seen = seen.unwrap_or_else(|_| Err(late()))?.into_iter();
        let accepted = seen.map(|one| (one.cluster, limits::accept_health(driver, one.result)));
        Ok(accepted.collect())
    }

    fn judge(&self, held: &mut Held<HealthClaim>, group: Group, seen: Sights) -> Vec<Looked> {
        let mut seen = seen.unwrap_or_else(|error| {
            let (all, error) = (group.clusters.iter(), of_batch(error));
            all.map(|one| (one.cluster.uuid.clone(), Err(error.clone())))
                .collect()
        });
        let looked = group.clusters.into_iter().filter_map(|one| {
            let (claim, cluster) = (held.take(&one.cluster.uuid)?, one.cluster);
            let verdict = Verdict::of(
                &cluster,
                seen.remove(&cluster.uuid),
                claim.failures,
                unanswered(&claim, &cluster),
                self.timing.silence,
            );
            metrics::counter!(metric::HEALTH_POLLED, "outcome" => verdict.as_str()).increment(1);
            if let (Answer::Missing { failures }, Some(reason)) = (verdict.answer, &verdict.failure)
                // Not each of them: the first, and then seldom.
                && failures.count_ones() == 1
            {
                tracing::warn!(
                    { field::CLUSTER } = %cluster.uuid, failures, reason,
                    "the driver cannot tell the cluster's health"
                );
            }
            Some(Looked {
                claim,
                cluster,
                verdict,
            })
        });
        looked.collect()
    }

    /// One statement that reads what is there now, and one for each cluster whose health changed.
    async fn write(&self, looked: Vec<Looked>) -> Result<(), DbError> {
        let changed: Vec<(HealthClaim, Cluster, HealthReport)> = looked
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
                    // Somebody wrote while the driver was asked: that is as new as what the driver said.
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

    /// We stop, or were away for too long: another conductor may ask at once.
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

/// An error about a whole batch says nothing about any of its clusters: none is unknown at once, even if the driver
/// will not do better the next time.
fn of_batch(error: DriverError) -> DriverError {
    match error {
        DriverError::Permanent(reason) => DriverError::Transient(reason),
        other => other,
    }
}

/// For how long nobody has known the cluster's health: no longer than since its row was written, by its last operation
/// or by whoever else looks after it.
fn unanswered(claim: &HealthClaim, cluster: &Cluster) -> Duration {
    let written = cluster.updated_at.or(cluster.created_at);
    let since_written = written.map_or(Duration::MAX, |time| {
        (clock::row_now() - time).to_std().unwrap_or_default()
    });
    claim.unanswered.unwrap_or_default().min(since_written)
}
