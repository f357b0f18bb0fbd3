//! One claimed batch: read, observed, written, given back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use magnum_common::context::RequestContext;
use magnum_common::ids::{ClusterUuid, OperationId};
use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use magnum_db::{AnyConnection, DbError, lock};
use magnum_driver_api::{ClusterRef, Driver, DriverError, DriverReport, limits};
use magnum_telemetry::field;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::StatusSync;
use super::verdict::{Verdict, pause_after, status_after};
use crate::metric_definitions as metric;
use crate::operations::notice::{Notice, NoticeOutcome, Seen, Told};
use crate::operations::{JournalError, OperationKind, settle};
use crate::store::polls::{self, Claimed};
use crate::store::{clusters, node_groups};
use crate::workflows::{choose_driver, outcome};

/// Most clusters in one look of a driver that does not say how many it wants: a simple one asks its cloud about one
/// after the other.
const LARGEST_GROUP: usize = 50;

/// Clusters that this conductor holds for polling.
pub(super) struct Batch<'a> {
    sync: &'a StatusSync,
    claimed: HashMap<ClusterUuid, Claimed>,
    /// Until then nobody else can hold them, by our own clock.
    safe_until: Instant,
}

/// Clusters of one driver.
struct Group {
    driver: Arc<dyn Driver>,
    clusters: Vec<ClusterRef>,
}

/// A cluster after the look.
struct Looked {
    claimed: Claimed,
    cluster: Cluster,
    node_groups: Vec<NodeGroup>,
    verdict: Verdict,
}

impl<'a> Batch<'a> {
    pub(super) fn new(sync: &'a StatusSync, claimed: Vec<Claimed>) -> Self {
        Self {
            sync,
            claimed: claimed
                .into_iter()
                .map(|claimed| (claimed.cluster.clone(), claimed))
                .collect(),
            // The claim was sent a moment ago, so this is a little late; the margin of the term covers it.
            safe_until: Instant::now() + sync.pace.lease * 5 / 6,
        }
    }

    /// Looks at all of them. An error is the database's: what is still held comes free when the lease ends.
    pub(super) async fn look(mut self, shutdown: &CancellationToken) -> Result<(), DbError> {
        let refs = self.read().await?;
        let groups = self.group(refs);
        let observed = {
            let sync = self.sync;
            let observing = join_all(groups.iter().map(|group| observe(sync, group)));
            tokio::pin!(observing);
            loop {
                tokio::select! {
                    biased;
                    observed = &mut observing => break observed,
                    // Dropping an observation stops its program.
                    () = shutdown.cancelled() => break Vec::new(),
                    () = sleep_until(self.safe_until) => break Vec::new(),
                    () = tokio::time::sleep(self.sync.pace.lease / 3) => self.renew().await,
                }
            }
        };
        let mut looked = Vec::new();
        for (group, seen) in groups.into_iter().zip(observed) {
            looked.extend(self.judge(group, seen));
        }
        self.write(looked).await?;
        self.give_back_rest(shutdown.is_cancelled()).await
    }

    async fn read(&self) -> Result<Vec<ClusterRef>, DbError> {
        let uuids: Vec<ClusterUuid> = self.claimed.keys().cloned().collect();
        let (mut found, mut groups, templates) = self
            .sync
            .db
            .run(move |conn| {
                let uuids: Vec<&str> = uuids.iter().map(ClusterUuid::as_str).collect();
                let found = clusters::find_many(conn, &uuids)?;
                let groups = node_groups::of_many(conn, &uuids)?;
                let wanted: Vec<&str> = found
                    .values()
                    .map(|cluster| cluster.cluster_template_id.as_str())
                    .collect();
                let templates = clusters::templates(conn, &wanted)?;
                Ok((found, groups, templates))
            })
            .await?;
        let refs = self.claimed.values().filter_map(|claimed| {
            let uuid = claimed.cluster.as_str();
            let cluster = found.remove(uuid)?;
            let Some(template) = templates.get(cluster.cluster_template_id.as_str()) else {
                tracing::warn!(
                    { field::CLUSTER } = uuid,
                    "the cluster's template is gone; it is not polled"
                );
                return None;
            };
            Some(ClusterRef {
                node_groups: groups.remove(uuid).unwrap_or_default(),
                template: template.clone(),
                operation: claimed.operation.clone(),
                cluster,
            })
        });
        Ok(refs.collect())
    }

    /// By driver and version, cut so that the slots are used.
    fn group(&self, refs: Vec<ClusterRef>) -> Vec<Group> {
        let drivers = self.sync.drivers.as_ref();
        let mut by_driver: HashMap<_, Group> = HashMap::new();
        for one in refs {
            let pinned = self
                .claimed
                .get(&one.cluster.uuid)
                .and_then(|claimed| claimed.driver.as_ref());
            let existing = choose_driver::Wanted::Existing;
            let chosen = choose_driver::choose(drivers, &one.template, existing, pinned, None);
            let Some((name, driver)) = chosen
                .ok()
                .and_then(|wanted| drivers.get(&wanted).map(|driver| (wanted, driver)))
            else {
                tracing::debug!(
                    { field::CLUSTER } = %one.cluster.uuid,
                    "the cluster's driver is not loaded here; another conductor may look at it"
                );
                continue;
            };
            let group = by_driver.entry(name).or_insert_with(|| Group {
                driver,
                clusters: Vec::new(),
            });
            group.clusters.push(one);
        }
        let slots = self.sync.pace.parallelism.max(1);
        by_driver
            .into_values()
            .flat_map(|group| {
                let driver = group.driver;
                let size = group_size(group.clusters.len(), driver.observe_batch(), slots);
                chunks(group.clusters, size)
                    .into_iter()
                    .map(move |clusters| Group {
                        driver: Arc::clone(&driver),
                        clusters,
                    })
            })
            .collect()
    }

    async fn renew(&mut self) {
        let sent = Instant::now();
        let (me, lease) = (self.sync.me.clone(), self.sync.pace.lease);
        let held: Vec<ClusterUuid> = self.claimed.keys().cloned().collect();
        let wanted = held.len();
        let renewal = self
            .sync
            .db
            .run(move |conn| polls::renew(conn, &me, &held, lease));
        match timeout_at(self.safe_until, renewal).await {
            Ok(Ok(renewed)) if renewed == wanted => self.safe_until = sent + lease * 5 / 6,
            // Some are lost (their cluster was removed, or another conductor has them): the write of each
            // compares, so only the time until which all are safe stays as it was.
            Ok(Ok(renewed)) => tracing::debug!(renewed, wanted, "some polled clusters are not ours any more"),
            Ok(Err(error)) => tracing::debug!(%error, "polled clusters could not be kept"),
            Err(_) => {}
        }
    }

    fn judge(&mut self, group: Group, seen: Sights) -> Vec<Looked> {
        let mut seen = seen.unwrap_or_else(|error| {
            let all = group.clusters.iter();
            all.map(|one| (one.cluster.uuid.clone(), Err(error.clone())))
                .collect()
        });
        group
            .clusters
            .into_iter()
            .filter_map(|one| {
                let claimed = self.claimed.remove(&one.cluster.uuid)?;
                let verdict = Verdict::of(&one.cluster, &one.node_groups, seen.remove(&one.cluster.uuid));
                metrics::counter!(metric::CLUSTERS_POLLED, "outcome" => verdict.as_str()).increment(1);
                Some(Looked {
                    claimed,
                    cluster: one.cluster,
                    node_groups: one.node_groups,
                    verdict,
                })
            })
            .collect()
    }

    async fn write(&self, looked: Vec<Looked>) -> Result<(), DbError> {
        let (mut unchanged, mut failed) = (Vec::new(), Vec::new());
        for one in looked {
            match one.verdict {
                Verdict::Unchanged => unchanged.push(one.claimed.cluster),
                Verdict::Failed(reason) => failed.push(self.looks_later(one.claimed, &reason)),
                Verdict::Changed(report) => {
                    let seen = Seen {
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
        self.give_back(unchanged, self.sync.pace.pause(), 0).await?;
        self.give_back_failed(failed).await
    }

    /// A look that failed, counted.
    fn looks_later(&self, claimed: Claimed, reason: &str) -> Claimed {
        let failures = claimed.failures.saturating_add(1);
        // Not each of them: the first, and then seldom.
        if failures.count_ones() == 1 {
            tracing::warn!(
                { field::CLUSTER } = %claimed.cluster, failures,
                next = ?pause_after(failures, self.sync.pace.interval), reason,
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
            let pause = pause_after(failures, self.sync.pace.interval);
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
        let me = self.sync.me.clone();
        self.sync
            .db
            .run(move |conn| polls::give_back_many(conn, &me, &clusters, pause, failures))
            .await
            .map(drop)
    }

    async fn write_one(&self, claimed: Claimed, mut seen: Seen, report: DriverReport) {
        let (me, pause) = (self.sync.me.clone(), self.sync.pace.pause());
        let (cluster, operation) = (seen.cluster.clone(), claimed.operation.clone());
        outcome::applied(&report, &mut seen.cluster, &mut seen.node_groups);
        let written = self
            .sync
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
                self.sync.signals.work.notify_one();
                self.sync.notices.send(notice_of(status, operation, seen));
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

    /// What was not looked at: its driver is not here, its row cannot be read, or we stop.
    async fn give_back_rest(&mut self, stopping: bool) -> Result<(), DbError> {
        let rest: Vec<Claimed> = std::mem::take(&mut self.claimed).into_values().collect();
        if !stopping {
            let failed = rest.into_iter().map(|claimed| Claimed {
                failures: claimed.failures.saturating_add(1),
                ..claimed
            });
            return self.give_back_failed(failed.collect()).await;
        }
        // Another conductor may look at once; how often looks failed before is as it was.
        for claimed in rest {
            let (me, failures) = (self.sync.me.clone(), claimed.failures);
            self.sync
                .db
                .run(move |conn| polls::give_back(conn, &me, &claimed, Duration::ZERO, failures))
                .await?;
        }
        Ok(())
    }
}

/// What is told of a cluster that reached its end: by its operation, if one of ours waited for it.
fn notice_of(status: ClusterStatus, operation: Option<OperationId>, mut seen: Seen) -> Notice {
    if let Some(operation) = operation {
        return Notice::Ended {
            operation,
            seen: Some(Box::new(seen)),
        };
    }
    seen.cluster.status = Some(status);
    Notice::Told(Box::new(Told {
        kind: match status {
            ClusterStatus::CreateComplete | ClusterStatus::CreateFailed => OperationKind::ClusterCreate,
            ClusterStatus::DeleteComplete | ClusterStatus::DeleteFailed => OperationKind::ClusterDelete,
            _ => OperationKind::ClusterUpdate,
        },
        outcome: if status.is_failed() {
            NoticeOutcome::Failure
        } else {
            NoticeOutcome::Success
        },
        cluster: seen.cluster.uuid.clone(),
        seen: Some(seen),
        context: RequestContext::admin(),
        refusal: None,
    }))
}

type Sights = Result<HashMap<ClusterUuid, Result<DriverReport, DriverError>>, DriverError>;

async fn observe(sync: &StatusSync, group: &Group) -> Sights {
    // Never closed; without a permit the look is taken all the same.
    let _slot = sync.slots.acquire().await.ok();
    let begun = Instant::now();
    let span = tracing::info_span!("observe", { field::DRIVER } = group.driver.info().name);
    let seen = group.driver.observe(&group.clusters).instrument(span).await;
    metrics::histogram!(metric::OBSERVE_SECONDS, "driver" => group.driver.info().name.clone())
        .record(begun.elapsed().as_secs_f64());
    let info = group.driver.info();
    let seen = seen?.into_iter();
    Ok(seen
        .map(|one| (one.cluster, limits::accept(info, one.result)))
        .collect())
}

/// Writes a report over the status that was looked at. `None`: the cluster has another status by now.
fn record(
    conn: &mut AnyConnection,
    cluster: &Cluster,
    report: &DriverReport,
) -> Result<Option<ClusterStatus>, JournalError> {
    // Only clusters in a known status are claimed.
    let Some(before) = cluster.status else {
        return Ok(None);
    };
    let after = status_after(before, report);
    let reason = report
        .cluster
        .status_reason
        .as_deref()
        .or_else(|| cluster.status_reason.as_deref().filter(|_| after == before));
    if !clusters::set_status(conn, &cluster.uuid, Some(before), after, reason)? {
        return Ok(None);
    }
    clusters::apply(conn, &cluster.uuid, &report.cluster)?;
    for group in &report.node_groups {
        node_groups::apply(conn, &cluster.uuid, group, true)?;
    }
    if let Some(stack) = &report.cluster.stack_id {
        node_groups::adopt_stack(conn, &cluster.uuid, stack)?;
    }
    settle::observed(conn, &cluster.uuid, after, reason)?;
    Ok(Some(after))
}

/// How many of a driver's clusters are looked at together: as many as it wants, or so few that every slot has some.
fn group_size(clusters: usize, wanted: Option<usize>, slots: usize) -> usize {
    wanted
        .unwrap_or_else(|| clusters.div_ceil(slots).min(LARGEST_GROUP))
        .max(1)
}

fn chunks<T>(mut items: Vec<T>, size: usize) -> Vec<Vec<T>> {
    let mut chunks = Vec::new();
    while items.len() > size {
        let rest = items.split_off(size);
        chunks.push(std::mem::replace(&mut items, rest));
    }
    if !items.is_empty() {
        chunks.push(items);
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_spread_over_the_slots_unless_the_driver_wants_them_together() {
        assert_eq!(group_size(500, None, 32), 16);
        assert_eq!(group_size(3, None, 32), 1);
        assert_eq!(group_size(500, None, 1), LARGEST_GROUP);
        assert_eq!(group_size(500, Some(500), 32), 500);
        assert_eq!(group_size(500, Some(200), 32), 200);
        assert_eq!(chunks(vec![1, 2, 3, 4, 5], 2), [vec![1, 2], vec![3, 4], vec![5]]);
    }
}
