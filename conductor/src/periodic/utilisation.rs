//! Asks drivers what their clusters use, shows it, and tells it.
//!
//! ```text
//! the health check has looked at a batch, and given it back
//!    ─▶ ask its drivers (capability `monitor`) ─▶ gauges on /metrics ─▶ notification, if the option says so
//! ```
//!
//! The health check decides which clusters, and when: see [`HealthCheck`](super::health::HealthCheck). It never waits
//! for this part; what comes while too many drivers are being asked is left out until the next interval.
//!
//! Guarantees: each cluster is asked about once an interval, after its health was written, by the conductor that looked
//! at that; at most [`Pace::parallelism`] drivers are asked at once; an answer that does not come before the cluster is
//! due again is not waited for (ten seconds it has in any case). Nothing is written to the database, and it costs it one
//! short read for each batch of clusters that are shown, a few times an interval. A driver that fails at a cluster
//! is logged when it begins to and not each time.
//!
//! Not guaranteed: that figures are shown without gaps. They live in this process.
//!
//! Where Magnum differs: it did this for Kubernetes by itself, as a periodic task of every conductor for every cluster,
//! until release 16 removed it; and had no gauges.

mod board;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::ClusterStatus;
use magnum_db::Database;
use magnum_driver_api::{ClusterRef, Driver, DriverError, UtilisationReport, limits};
use magnum_telemetry::field;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};
use tokio_util::sync::CancellationToken;

pub use self::board::Board;
use super::Trouble;
use super::polling::{Group, Held, Pace};
use crate::metric_definitions as metric;
use crate::operations::notice::{Notice, NoticeQueue, Used};
use crate::store::health_polls::{self, HealthClaim};

/// Groups of clusters that wait for their driver to be asked.
const QUEUE: usize = 256;

/// Looks at what is shown, in an interval.
const LOOKS: u32 = 10;

/// Fewer seconds are not enough for a driver that asks a cloud.
const SHORTEST_LOOK: Duration = Duration::from_secs(10);

/// For so long a driver's failure at a cluster is no news, also when other conductors have looked at it meanwhile.
const NEWS: Duration = Duration::from_secs(3600);

/// Clusters in these statuses are asked about: their nodes run, whatever else happens.
const MONITORED: &[ClusterStatus] = &[
    ClusterStatus::CreateComplete,
    ClusterStatus::UpdateInProgress,
    ClusterStatus::UpdateComplete,
    ClusterStatus::UpdateFailed,
];

/// Clusters of one driver whose health was looked at a moment ago.
pub(super) struct Watched {
    driver: Arc<dyn Driver>,
    clusters: Vec<ClusterRef>,
    /// By the number of the claim.
    epochs: HashMap<ClusterUuid, i64>,
}

impl Watched {
    /// Those of `group`, if its driver tells what they use.
    pub(super) fn of(group: &Group, held: &Held<HealthClaim>) -> Option<Self> {
        let epoch = |one: &ClusterRef| {
            let uuid = one.cluster.uuid.clone();
            held.claim(&uuid).map(|claim| (uuid, claim.epoch))
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

/// The health check's end of the queue.
#[derive(Clone)]
pub struct UtilisationQueue {
    queue: mpsc::Sender<(Instant, Watched)>,
    board: Board,
    interval: Duration,
}

impl UtilisationQueue {
    /// These clusters are ours again, before their claims are given back: their figures stay until there are new ones.
    pub(super) fn announce(&self, watched: &[Watched]) {
        for one in watched {
            self.board.claimed(&one.epochs);
        }
    }

    /// Has them asked about. Never waits.
    pub(super) fn hand_over(&self, watched: Vec<Watched>) {
        let due = Instant::now() + self.interval.mul_f64(0.8).max(SHORTEST_LOOK);
        for one in watched {
            let clusters = one.clusters.len();
            if self.queue.try_send((due, one)).is_err() {
                left_out(clusters);
            }
        }
    }
}

fn left_out(clusters: usize) {
    tracing::debug!(
        clusters,
        "too many drivers are being asked what their clusters use"
    );
    metrics::counter!(metric::UTILISATION_POLLED, "outcome" => "left_out").increment(clusters as u64);
}

/// What one driver said of a group of clusters.
struct Answered {
    watched: Watched,
    said: Result<HashMap<ClusterUuid, Result<UtilisationReport, DriverError>>, DriverError>,
}

/// The part of one conductor.
pub struct Utilisation {
    db: Database,
    me: ConductorId,
    pace: Pace,
    board: Board,
    /// Where to tell.
    notices: Option<NoticeQueue>,
    queued: mpsc::Receiver<(Instant, Watched)>,
}

impl Utilisation {
    /// Shows on `board`; tells `notices`, if there are any. With the end of the queue for the health check.
    pub fn new(
        db: Database,
        me: ConductorId,
        pace: Pace,
        board: Board,
        notices: Option<NoticeQueue>,
    ) -> (Self, UtilisationQueue) {
        let (sender, queued) = mpsc::channel(QUEUE);
        let queue = UtilisationQueue {
            queue: sender,
            board: board.clone(),
            interval: pace.interval,
        };
        let part = Self {
            db,
            me,
            pace,
            board,
            notices,
            queued,
        };
        (part, queue)
    }

    /// Asks until `shutdown`; what drivers are being asked then is dropped.
    pub async fn run(mut self, shutdown: CancellationToken) {
        // Not `Rounds`: its pause would begin anew with each answer.
        let mut looks = interval((self.pace.interval / LOOKS).max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut trouble = Trouble::with("the look at who asks what clusters use");
        let mut asked = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                Some((due, watched)) = self.queued.recv(), if asked.len() < self.pace.parallelism.max(1) => {
                    if Instant::now() < due {
                        asked.push(ask(due, watched));
                    } else {
                        left_out(watched.clusters.len());
                    }
                }
                Some(answered) = asked.next() => self.note(answered),
                _ = looks.tick() => drop(trouble.note(self.forget_others().await)),
            }
        }
    }

    /// Takes off the board what is gone, or what another conductor has looked at since.
    async fn forget_others(&self) -> Result<(), magnum_db::DbError> {
        self.board.forget_old();
        let shown = self.board.claims();
        for claims in shown.chunks(self.pace.batch.max(1)) {
            let (me, asked) = (self.me.clone(), claims.to_vec());
            let ours = self
                .db
                .run(move |conn| health_polls::latest_is_ours(conn, &me, &asked))
                .await?;
            self.board.forget_others(claims, &ours);
        }
        Ok(())
    }

    fn note(&self, answered: Answered) {
        let Answered { watched, said } = answered;
        let driver = watched.driver.info();
        let keep = self.pace.interval * 2 + SHORTEST_LOOK;
        let all = said.as_ref().err().cloned();
        let mut said = said.unwrap_or_default();
        let mut told_of_all = false;
        for one in &watched.clusters {
            let uuid = &one.cluster.uuid;
            let epoch = watched.epochs.get(uuid).copied().unwrap_or_default();
            let missing = || DriverError::Transient("the driver said nothing about the cluster".to_owned());
            let result = match &all {
                Some(error) => Err(error.clone()),
                None => said.remove(uuid).unwrap_or_else(|| Err(missing())),
            };
            let accepted = limits::accept_utilisation(driver, one, result);
            let outcome = if accepted.is_ok() { "answered" } else { "failed" };
            metrics::counter!(metric::UTILISATION_POLLED, "outcome" => outcome).increment(1);
            match accepted {
                Ok(report) => {
                    self.tell(one, &report);
                    self.board.show(uuid, epoch, report, keep);
                }
                Err(error) => {
                    let is_new = self.board.failed(uuid, epoch, keep.max(NEWS));
                    // One line for an error that is about all of them.
                    if is_new && !std::mem::replace(&mut told_of_all, all.is_some()) {
                        tracing::warn!(
                            { field::CLUSTER } = %uuid, { field::DRIVER } = driver.name, %error,
                            "the driver cannot tell what the cluster uses"
                        );
                    }
                }
            }
        }
    }

    fn tell(&self, one: &ClusterRef, report: &UtilisationReport) {
        let Some(notices) = &self.notices else { return };
        let used = Used {
            cluster: one.cluster.uuid.clone(),
            project_id: one.cluster.project_id.clone(),
            user_id: one.cluster.user_id.clone(),
            used: report.cluster,
        };
        let has_any = used.used.cpu_percent.or(used.used.memory_percent).is_some();
        if has_any && !notices.send_if_there_is_room(Notice::Used(Box::new(used))) {
            tracing::debug!({ field::CLUSTER } = %one.cluster.uuid, "too many notifications wait; its use is not told");
        }
    }
}

async fn ask(due: Instant, watched: Watched) -> Answered {
    let begun = Instant::now();
    let asked = AssertUnwindSafe(watched.driver.utilisation(&watched.clusters)).catch_unwind();
    let said = match timeout_at(due, asked).await {
        Ok(Ok(said)) => said,
        Ok(Err(_)) => Err(DriverError::Transient("the driver panicked".to_owned())),
        Err(_) => Err(DriverError::Transient(format!(
            "the driver did not answer within {:?}",
            due - begun
        ))),
    };
    let driver = watched.driver.info().name.clone();
    metrics::histogram!(metric::UTILISATION_SECONDS, "driver" => driver)
        .record(begun.elapsed().as_secs_f64());
    let said = said.map(|seen| seen.into_iter().map(|one| (one.cluster, one.result)).collect());
    Answered { watched, said }
}
