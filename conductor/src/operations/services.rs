//! What the executor, the sweep and the replies share: one per process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use crate::seal::JournalKey;
use magnum_common::ids::{ConductorId, OperationId};
use magnum_common::retry::RetryPolicy;
use magnum_config::ConductorSection;
use magnum_db::Database;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::at_work::AtWork;
use super::breakers::{Breakers, MissingVersion};
use super::keeper::LeaseKeeper;
use super::lease_watch::LeaseWatch;
use super::monitor::CallMonitors;
use super::notice::{Notice, NoticeQueue};
use super::replies::ReplyQueue;
use super::retry::Limits;
use crate::certificates::Certificates;
use crate::objects_rpc::ObjectsRpc;
use crate::workflows::choose_driver::Whereabouts;
use crate::workflows::description::TimeLimit;
use crate::workflows::{Args, DriverRef, DriverSource, Work};

/// Handles and settings of this conductor's operations.
#[derive(Clone)]
pub struct OperationServices {
    /// The database.
    pub db: Database,
    /// Loaded drivers.
    pub drivers: Arc<dyn DriverSource>,
    /// Opens sealed contexts.
    pub key: Arc<JournalKey>,
    /// This process.
    pub me: ConductorId,
    /// Certificates of clusters.
    pub certificates: Certificates,
    /// Renews the leases of what runs here.
    pub keeper: LeaseKeeper,
    /// Tells which leases are over.
    pub lease_watch: LeaseWatch,
    /// Lease, retries, limits.
    pub timing: Arc<OperationTiming>,
    /// Wake-ups inside this process.
    pub signals: Arc<Signals>,
    /// Where answers of calls go.
    pub answers: ReplyQueue,
    /// Signs of life for callers that want them.
    pub monitors: CallMonitors,
    /// Where it is told that operations end.
    pub notices: NoticeQueue,
    /// What runs here.
    pub at_work: AtWork,
    /// What this conductor leaves to others for a while.
    pub breakers: Breakers,
}

impl OperationServices {
    /// Remembers for a while that a version is not here. Returns whether another conductor has it.
    pub(super) fn lacks(&self, driver: &DriverRef) -> Whereabouts {
        let whereabouts = self.drivers.whereabouts(driver);
        let missing = MissingVersion {
            driver: driver.clone(),
            is_nowhere: whereabouts == Whereabouts::Nowhere,
        };
        self.breakers.lacks(missing, Instant::now());
        whereabouts
    }

    /// Tells whoever waits that an operation ended without having run here.
    pub(super) fn tell_given_up(&self, operation: OperationId) {
        self.signals.work.notify_one();
        self.answers.send(&operation);
        self.notices.send(Notice::Ended {
            operation,
            snapshot: None,
        });
    }

    /// Methods of objects on the same database, with keys opened.
    pub(crate) fn objects(&self) -> ObjectsRpc {
        ObjectsRpc::new(self.db.clone()).with_sealing(self.certificates.sealing())
    }
}

/// How long everything may take.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationTiming {
    /// A lease's term.
    pub lease: Duration,
    /// Operations that run at once here.
    pub workers: usize,
    /// Retries.
    pub limits: Limits,
    /// Updates, resizes and node groups; zero means no limit, here and below.
    pub update_timeout: Duration,
    /// Deletions of clusters.
    pub delete_timeout: Duration,
    /// Upgrades.
    pub upgrade_timeout: Duration,
    /// Rotations of credentials and certificates.
    pub rotation_timeout: Duration,
    /// How long a shutdown waits for steps to reach a step boundary.
    pub shutdown: Duration,
    /// Longest time without looking for work: a safety net under the wake-ups.
    pub poll: Duration,
    /// How long a conductor counts as alive after it announced its drivers.
    pub driver_alive: Duration,
    /// How long an operation waits for a conductor that has its driver.
    pub driver_patience: Duration,
}

impl OperationTiming {
    /// From the configuration.
    pub fn new(conductor: &ConductorSection, service_down_time: Duration) -> Self {
        Self {
            lease: conductor.operation_lease,
            workers: conductor.operation_workers,
            limits: Limits {
                policy: RetryPolicy {
                    initial: conductor.operation_retry_initial,
                    max_interval: conductor.operation_retry_max_interval,
                    multiplier: conductor.operation_retry_multiplier,
                    jitter: conductor.operation_retry_jitter,
                },
                max_attempts: conductor.operation_retry_max_attempts,
            },
            update_timeout: conductor.update_timeout,
            delete_timeout: conductor.delete_timeout,
            upgrade_timeout: conductor.upgrade_timeout,
            rotation_timeout: conductor.rotation_timeout,
            shutdown: conductor.shutdown_timeout,
            poll: Duration::from_secs(5),
            driver_alive: service_down_time,
            driver_patience: conductor.missing_driver_timeout,
        }
    }

    /// How long an operation may take as a whole.
    pub fn time_limit(&self, args: &Args) -> Option<Duration> {
        if let Work::ClusterCreate(create) = &args.work {
            return create.time_limit();
        }
        let limit = match args.kind().description().time_limit {
            // Of a create, whose arguments have said it.
            TimeLimit::CreateTimeout => Duration::ZERO,
            TimeLimit::Update => self.update_timeout,
            TimeLimit::Delete => self.delete_timeout,
            TimeLimit::Upgrade => self.upgrade_timeout,
            TimeLimit::Rotation => self.rotation_timeout,
        };
        Some(limit).filter(|limit| !limit.is_zero())
    }

    /// The reason of an operation that ran out of time: names the limit.
    pub fn timed_out(&self, args: &Args) -> String {
        let description = args.kind().description();
        let (what, limit) = (description.timed_out_as, description.time_limit.set_by());
        let minutes = self.time_limit(args).unwrap_or_default().as_secs_f64() / 60.0;
        format!("Timed out: the cluster was not {what} within {minutes} minutes ({limit}).")
    }
}

/// Wake-ups between the parts of this process. They save time and nothing depends on them: everything they
/// announce is also found by polling.
#[derive(Debug, Default)]
pub struct Signals {
    /// There may be work: something was accepted, or ended and freed its cluster.
    pub work: Notify,
    /// A delete was accepted, which may want an operation here to stop.
    pub stops: Notify,
    /// An operation began to wait for the cloud: the status sync may look.
    pub observing: Notify,
    /// Operations that run in this process.
    pub running: AtomicUsize,
    /// Messages that this process has received.
    pub messages: AtomicU64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflows::kinds::{ClusterCreate, ClusterDelete, NodegroupUpdate};

    fn timing() -> OperationTiming {
        OperationTiming {
            lease: Duration::from_secs(30),
            workers: 1,
            limits: Limits {
                policy: RetryPolicy {
                    initial: Duration::from_secs(1),
                    max_interval: Duration::from_secs(1),
                    multiplier: 1.0,
                    jitter: 0.0,
                },
                max_attempts: 1,
            },
            update_timeout: Duration::ZERO,
            delete_timeout: Duration::from_secs(90),
            upgrade_timeout: Duration::ZERO,
            rotation_timeout: Duration::ZERO,
            shutdown: Duration::ZERO,
            poll: Duration::ZERO,
            driver_alive: Duration::ZERO,
            driver_patience: Duration::ZERO,
        }
    }

    #[test]
    fn the_reason_of_a_timeout_names_the_limit_and_where_it_is_set() {
        let create = ClusterCreate {
            create_timeout: Some(5),
        };
        let reason = timing().timed_out(&create.into());
        assert_eq!(
            reason,
            "Timed out: the cluster was not created within 5 minutes (create_timeout of the cluster)."
        );
        assert!(
            timing()
                .timed_out(&ClusterDelete {}.into())
                .contains("1.5 minutes (option [conductor] delete_timeout")
        );
    }

    #[test]
    fn zero_is_no_limit() {
        let update = NodegroupUpdate {
            node_group: "n".into(),
        };
        assert_eq!(timing().time_limit(&update.into()), None);
    }
}
