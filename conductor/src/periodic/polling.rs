//! Polling of drivers, shared by the status sync and the health check: a batch of clusters is claimed and the drivers of
//! these clusters are asked.
//!
//! ```text
//! claim ─▶ ClaimedBatch ─▶ Poller::groups (read, by driver) ─▶ ClaimedBatch::renew_while (ask, renew)
//!    ─▶ write and give back, by each of the two
//! ```
//!
//! Guarantees: a cluster is polled by one conductor at a time; at most [`Pace::parallelism`] drivers are asked at once;
//! work stops before the lease can have expired. Reading a batch costs three statements, however large it is.

mod claimed_batch;
mod cluster_objects;
mod groups;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_config::ConductorSection;
use magnum_db::{Database, DbError};
use magnum_telemetry::field;
use tokio::sync::Semaphore;

pub(super) use self::claimed_batch::ClaimedBatch;
pub(super) use self::cluster_objects::IsHeld;
use self::cluster_objects::{LookRight, of_look};
pub(super) use self::groups::Group;
use crate::objects_rpc::ObjectsRpc;
use crate::store::{clusters, node_groups};
use crate::workflows::{DriverRef, DriverSource, choose_driver};
use magnum_driver_api::ClusterRef;

/// How often and how many clusters are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time between two polls of a cluster.
    pub interval: Duration,
    /// Most clusters claimed at once.
    pub batch: usize,
    /// Most polls of drivers at once.
    pub parallelism: usize,
    /// How long a claim lasts unless it is renewed.
    pub lease: Duration,
}

impl Pace {
    /// The pace of the options; each kind of poll has an interval of its own.
    pub fn every(interval: Duration, options: &ConductorSection) -> Self {
        Self {
            interval,
            batch: options.status_poll_batch,
            parallelism: options.status_poll_parallelism,
            lease: options.operation_lease,
        }
    }
}

/// A cluster that this conductor has claimed for a poll.
pub(super) trait Claim {
    /// The claimed cluster.
    fn cluster(&self) -> &ClusterUuid;
    /// The driver that built it, when that is known.
    fn driver(&self) -> Option<&DriverRef>;
    /// The operation that is finished by the outcome of the poll.
    fn operation(&self) -> Option<&OperationId>;
    /// The claim's number.
    fn epoch(&self) -> i64;
    /// Whether a conductor still has a claim.
    const IS_HELD: IsHeld;
    /// Whether the poll is of the status of clusters in progress.
    const READS_STATUS: bool;
}

/// Reads claimed clusters and limits the polls of their drivers.
#[derive(Clone)]
pub(super) struct Poller {
    pub(super) db: Database,
    /// The id of this conductor.
    pub(super) me: ConductorId,
    pub(super) drivers: Arc<dyn DriverSource>,
    pub(super) pace: Pace,
    /// The rows of clusters, for drivers that write them.
    objects: ObjectsRpc,
    /// One permit for each poll that may run, of all batches together.
    permits: Arc<Semaphore>,
}

impl Poller {
    pub(super) fn new(db: Database, me: ConductorId, drivers: Arc<dyn DriverSource>, pace: Pace) -> Self {
        Self {
            objects: ObjectsRpc::new(db.clone()),
            db,
            me,
            drivers,
            pace,
            permits: Arc::new(Semaphore::new(pace.parallelism.max(1))),
        }
    }

    /// Drivers get the rows of clusters from `objects`.
    pub(super) fn with_objects(self, objects: ObjectsRpc) -> Self {
        Self { objects, ..self }
    }

    /// Runs a poll once it has a permit.
    pub(super) async fn with_permit<T>(&self, poll: impl Future<Output = T>) -> T {
        // The semaphore is never closed; if it were, the poll would run without a permit.
        let _permit = self.permits.acquire().await.ok();
        poll.await
    }

    /// The rows of the claimed clusters, grouped by driver. Clusters with unreadable rows, and those whose driver is not
    /// loaded here, are left out.
    pub(super) async fn groups<C: Claim>(&self, batch: &ClaimedBatch<C>) -> Result<Vec<Group>, DbError> {
        let mut by_driver: HashMap<DriverRef, Group> = HashMap::new();
        for cluster in self.read(batch).await? {
            let pinned = batch.claim(&cluster.cluster.uuid).and_then(Claim::driver);
            let wanted = choose_driver::Wanted::Existing;
            let chosen =
                choose_driver::choose(self.drivers.as_ref(), &cluster.template, wanted, pinned, None);
            let loaded = chosen
                .ok()
                .and_then(|name| self.drivers.get(&name).map(|driver| (name, driver)));
            let Some((name, driver)) = loaded else {
                tracing::debug!(
                    { field::CLUSTER } = %cluster.cluster.uuid,
                    "the cluster's driver is not loaded here; another conductor may look at it"
                );
                continue;
            };
            by_driver
                .entry(name)
                .or_insert_with(|| Group::of(driver))
                .clusters
                .push(cluster);
        }
        let parallelism = self.pace.parallelism;
        Ok(by_driver
            .into_values()
            .flat_map(|group| group.cut(parallelism))
            .collect())
    }

    async fn read<C: Claim>(&self, batch: &ClaimedBatch<C>) -> Result<Vec<ClusterRef>, DbError> {
        let uuids = batch.uuids();
        let (mut found, mut groups, templates) = self
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
        let refs = batch.claims().filter_map(|claim| {
            let uuid = claim.cluster().as_str();
            let cluster = found.remove(uuid)?;
            let Some(template) = templates.get(cluster.cluster_template_id.as_str()) else {
                tracing::warn!(
                    { field::CLUSTER } = uuid,
                    "the cluster's template is gone; it is not polled"
                );
                return None;
            };
            let right = LookRight {
                me: self.me.clone(),
                cluster: cluster.uuid.clone(),
                epoch: claim.epoch(),
                is_held: C::IS_HELD,
                status: cluster.status,
                reads_status: C::READS_STATUS,
            };
            Some(ClusterRef {
                node_groups: groups.remove(uuid).unwrap_or_default(),
                template: template.clone(),
                operation: claim.operation().cloned(),
                objects: of_look(&self.objects, right, batch.over()),
                cluster,
            })
        });
        Ok(refs.collect())
    }
}
