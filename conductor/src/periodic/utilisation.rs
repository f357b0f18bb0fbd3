//! Polls drivers for the utilisation of their clusters, and publishes it as metrics and notifications.
//!
//! ```text
//! the health check has polled a batch, and given it back
//!    ─▶ poll its drivers (capability `monitor`) ─▶ gauges on /metrics ─▶ notification, if the option is set
//! ```
//!
//! The health check decides which clusters, and when: see [`HealthCheck`](super::health::HealthCheck). It never waits
//! for this part; clusters that are queued while too many polls run are left out until the next interval.
//!
//! Guarantees: each cluster is polled once an interval, after its health was written, by the same conductor; at most
//! [`Pace::parallelism`] polls run at once; a poll that has no result when the cluster is due again is dropped, but not
//! within its first ten seconds. Nothing is written to the database; reads are one short statement for each batch of
//! exported clusters, ten times an interval. The first failure of a driver for a cluster is logged, not each of them.
//!
//! Not guaranteed: figures without gaps. They are in the memory of this process.
//!
//! Where Magnum differs: it did this for Kubernetes by itself, as a periodic task of every conductor for every cluster,
//! until release 16 removed it; and had no gauges.

mod figures;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::ClusterStatus;
use magnum_db::Database;
use magnum_driver_api::{ClusterRef, Driver, DriverError, Reason, UtilisationReport, limits};
use magnum_telemetry::field;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tokio_util::sync::CancellationToken;

pub use self::figures::UtilisationFigures;
use super::FailureLog;
use super::polling::{ClaimedBatch, Group, Pace};
use crate::metric_definitions as metric;
use crate::operations::notice::{Notice, NoticeQueue, UtilisationNotice};
use crate::store::health_polls::{self, HealthClaim};

/// Most groups of clusters that wait for a poll.
const QUEUE_LENGTH: usize = 256;

/// Checks in an interval of whether exported clusters are still polled here.
const CHECKS_PER_INTERVAL: u32 = 10;

/// Shortest time limit of a poll, however short the interval is: drivers ask their cloud.
const MIN_POLL_TIMEOUT: Duration = Duration::from_secs(10);

/// Time after which a driver's failure for a cluster is logged again, also when other conductors have polled the cluster
/// meanwhile.
const FAILURE_LOG_INTERVAL: Duration = Duration::from_secs(3600);

/// Clusters in these statuses are polled: their nodes run.
const MONITORED: &[ClusterStatus] = &[
    ClusterStatus::CreateComplete,
    ClusterStatus::UpdateInProgress,
    ClusterStatus::UpdateComplete,
    ClusterStatus::UpdateFailed,
];

/// Clusters of one driver whose health was polled a moment ago.
pub(super) struct MonitoredGroup {
    driver: Arc<dyn Driver>,
    clusters: Vec<ClusterRef>,
    /// The epoch of each claim.
    epochs: HashMap<ClusterUuid, i64>,
}

impl MonitoredGroup {
    /// The clusters of `group` whose nodes run, if its driver has the capability `monitor`.
    pub(super) fn of(group: &Group, batch: &ClaimedBatch<HealthClaim>) -> Option<Self> {
        let epoch = |one: &ClusterRef| {
            let uuid = one.cluster.uuid.clone();
            batch.claim(&uuid).map(|claim| (uuid, claim.epoch))
        };
        if !group.driver.info().capabilities.monitor {
            return None;
        }
        let runs = |one: &&ClusterRef| {
            one.cluster
                .status
                .is_some_and(|status| MONITORED.contains(&status))
        };
        let clusters: Vec<ClusterRef> = group.clusters.iter().filter(runs).cloned().collect();
        (!clusters.is_empty()).then(|| Self {
            driver: Arc::clone(&group.driver),
            epochs: clusters.iter().filter_map(epoch).collect(),
            clusters,
        })
    }
}

/// The health check's end of the queue of polls.
#[derive(Clone)]
pub struct UtilisationQueue {
    queue: mpsc::Sender<(Instant, MonitoredGroup)>,
    figures: UtilisationFigures,
    interval: Duration,
}

impl UtilisationQueue {
    /// Keeps the figures of these clusters until there are new ones. Called before their claims are given back.
    pub(super) fn keep_figures(&self, groups: &[MonitoredGroup]) {
        for group in groups {
            self.figures.set_epochs(&group.epochs);
        }
    }

    /// Queues these groups for their poll, or leaves them out when the queue is full. Never waits.
    pub(super) fn enqueue(&self, groups: Vec<MonitoredGroup>) {
        let due = Instant::now() + self.interval.mul_f64(0.8).max(MIN_POLL_TIMEOUT);
        for group in groups {
            let clusters = group.clusters.len();
            if self.queue.try_send((due, group)).is_err() {
                count_left_out(clusters);
            }
        }
    }
}

fn count_left_out(clusters: usize) {
    tracing::debug!(
        clusters,
        "too many drivers are being asked what their clusters use"
    );
    metrics::counter!(metric::UTILISATION_POLLED, "outcome" => "left_out").increment(clusters as u64);
}

/// The result of one poll of a driver for a group of clusters.
struct GroupResult {
    group: MonitoredGroup,
    reports: Result<HashMap<ClusterUuid, Result<UtilisationReport, DriverError>>, DriverError>,
}

/// The poll of utilisation of one conductor.
pub struct Utilisation {
    db: Database,
    me: ConductorId,
    pace: Pace,
    figures: UtilisationFigures,
    /// Takes the notifications; `None` where `[drivers] send_cluster_metrics` is off.
    notices: Option<NoticeQueue>,
    queued: mpsc::Receiver<(Instant, MonitoredGroup)>,
}

impl Utilisation {
    /// Writes to `figures`, and to `notices` if there are any. The second value is the health check's end of the queue.
    pub fn new(
        db: Database,
        me: ConductorId,
        pace: Pace,
        figures: UtilisationFigures,
        notices: Option<NoticeQueue>,
    ) -> (Self, UtilisationQueue) {
        let (sender, queued) = mpsc::channel(QUEUE_LENGTH);
        let queue = UtilisationQueue {
            queue: sender,
            figures: figures.clone(),
            interval: pace.interval,
        };
        let utilisation = Self {
            db,
            me,
            pace,
            figures,
            notices,
            queued,
        };
        (utilisation, queue)
    }

    /// Polls until `shutdown`; polls that run then are dropped.
    pub async fn run(mut self, shutdown: CancellationToken) {
        // Not `Rounds`: its pause would start again with each result.
        let mut checks = interval((self.pace.interval / CHECKS_PER_INTERVAL).max(Duration::from_millis(1)));
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failures = FailureLog::of("the check of exported utilisation");
        let mut polls = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some((due, group)) = self.queued.recv(), if polls.len() < self.pace.parallelism.max(1) => {
                    if Instant::now() < due {
                        polls.push(poll(due, group));
                    } else {
                        count_left_out(group.clusters.len());
                    }
                }
                Some(result) = polls.next() => self.publish(result),
                _ = checks.tick() => drop(failures.record(self.remove_foreign().await)),
            }
        }
    }

    /// Removes the figures of deleted clusters, and of clusters that another conductor has claimed since.
    async fn remove_foreign(&self) -> Result<(), magnum_db::DbError> {
        self.figures.remove_expired();
        let exported = self.figures.claims();
        for claims in exported.chunks(self.pace.batch.max(1)) {
            let (me, checked) = (self.me.clone(), claims.to_vec());
            let ours = self
                .db
                .run(move |conn| health_polls::latest_is_ours(conn, &me, &checked))
                .await?;
            self.figures.remove_foreign(claims, &ours);
        }
        Ok(())
    }

    /// Writes the figures and notifications of one group, and logs failures.
    fn publish(&self, result: GroupResult) {
        let GroupResult { group, reports } = result;
        let driver = group.driver.info();
        let keep = self.pace.interval * 2 + MIN_POLL_TIMEOUT;
        let poll_error = reports.as_ref().err().cloned();
        let mut reports = reports.unwrap_or_default();
        let mut poll_error_logged = false;
        for one in &group.clusters {
            let uuid = &one.cluster.uuid;
            let epoch = group.epochs.get(uuid).copied().unwrap_or_default();
            let missing = || DriverError::Transient("the driver said nothing about the cluster".into());
            let result = match &poll_error {
                Some(error) => Err(error.clone()),
                None => reports.remove(uuid).unwrap_or_else(|| Err(missing())),
            };
            let accepted = limits::accept_utilisation(driver, one, result);
            let outcome = if accepted.is_ok() { "answered" } else { "failed" };
            metrics::counter!(metric::UTILISATION_POLLED, "outcome" => outcome).increment(1);
            match accepted {
                Ok(report) => {
                    self.notify(one, &report);
                    self.figures.set(uuid, epoch, report, keep);
                }
                Err(error) => {
                    let is_new = self
                        .figures
                        .set_failed(uuid, epoch, keep.max(FAILURE_LOG_INTERVAL));
                    // The error of the whole poll is logged once, not for each cluster.
                    if is_new && !std::mem::replace(&mut poll_error_logged, poll_error.is_some()) {
                        tracing::warn!(
                            { field::CLUSTER } = %uuid, { field::DRIVER } = driver.name, error = error.reason().whole(),
                            "the driver cannot tell what the cluster uses"
                        );
                    }
                }
            }
        }
    }

    fn notify(&self, one: &ClusterRef, report: &UtilisationReport) {
        let Some(notices) = &self.notices else { return };
        let notice = UtilisationNotice {
            cluster: one.cluster.uuid.clone(),
            project_id: one.cluster.project_id.clone(),
            user_id: one.cluster.user_id.clone(),
            utilisation: report.cluster,
        };
        let has_any = notice
            .utilisation
            .cpu_percent
            .or(notice.utilisation.memory_percent)
            .is_some();
        if has_any && !notices.send_if_there_is_room(Notice::Utilisation(Box::new(notice))) {
            tracing::debug!({ field::CLUSTER } = %one.cluster.uuid, "too many notifications wait; none is sent of its utilisation");
        }
    }
}

async fn poll(due: Instant, group: MonitoredGroup) -> GroupResult {
    let begun = Instant::now();
    let polled = AssertUnwindSafe(group.driver.utilisation(&group.clusters)).catch_unwind();
    let polled = match timeout_at(due, polled).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(DriverError::Transient("the driver panicked".into())),
        Err(_) => Err(DriverError::Transient(Reason::open(format!(
            "the driver did not answer within {:?}",
            due - begun
        )))),
    };
    let driver = group.driver.info().name.clone();
    metrics::histogram!(metric::UTILISATION_SECONDS, "driver" => driver)
        .record(begun.elapsed().as_secs_f64());
    let reports = polled.map(|all| all.into_iter().map(|one| (one.cluster, one.result)).collect());
    GroupResult { group, reports }
}
