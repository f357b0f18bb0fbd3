//! What the status sync and the health check have in common: a batch of clusters that this conductor holds, put to
//! their drivers.
//!
//! ```text
//! claim ─▶ Held ─▶ Poller::groups (read, by driver) ─▶ Held::keep_while (ask, renew) ─▶ write and give back, by each
//! ```
//!
//! Guarantees: a cluster is asked about by one conductor at a time; at most [`Pace::parallelism`] drivers are asked at
//! once; work stops before the claim can have ended. Reading a batch costs three statements, however large it is.

mod groups;
mod held;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId, OperationId};
use magnum_config::ConductorSection;
use magnum_db::{Database, DbError};
use magnum_telemetry::field;
use tokio::sync::Semaphore;

pub(super) use self::groups::Group;
pub(super) use self::held::Held;
use crate::store::{clusters, node_groups};
use crate::workflows::{DriverRef, DriverSource, choose_driver};
use magnum_driver_api::ClusterRef;

/// How clusters are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Time between two looks at a cluster.
    pub interval: Duration,
    /// Most clusters claimed at once.
    pub batch: usize,
    /// Most drivers asked at once.
    pub parallelism: usize,
    /// How long a claim lasts without renewal.
    pub lease: Duration,
}

impl Pace {
    /// As the options say; each kind of look has an interval of its own.
    pub fn every(interval: Duration, options: &ConductorSection) -> Self {
        Self {
            interval,
            batch: options.status_poll_batch,
            parallelism: options.status_poll_parallelism,
            lease: options.operation_lease,
        }
    }
}

/// A cluster that this conductor may look at.
pub(super) trait Claim {
    /// Which.
    fn cluster(&self) -> &ClusterUuid;
    /// The driver that built it, when that is known.
    fn driver(&self) -> Option<&DriverRef>;
    /// The operation that waits for the outcome.
    fn operation(&self) -> Option<&OperationId>;
}

/// What it takes to look at clusters.
#[derive(Clone)]
pub(super) struct Poller {
    pub(super) db: Database,
    /// This process.
    pub(super) me: ConductorId,
    pub(super) drivers: Arc<dyn DriverSource>,
    pub(super) pace: Pace,
    /// Limits what is asked in all batches together.
    slots: Arc<Semaphore>,
}

impl Poller {
    pub(super) fn new(db: Database, me: ConductorId, drivers: Arc<dyn DriverSource>, pace: Pace) -> Self {
        Self {
            db,
            me,
            drivers,
            pace,
            slots: Arc::new(Semaphore::new(pace.parallelism.max(1))),
        }
    }

    /// Asks a driver, when it is its turn.
    pub(super) async fn in_turn<T>(&self, ask: impl Future<Output = T>) -> T {
        // Never closed; without a permit the driver is asked all the same.
        let _slot = self.slots.acquire().await.ok();
        ask.await
    }

    /// The clusters of these claims as they are now, by driver. Left out is what cannot be read, and what has a driver
    /// that is not loaded here.
    pub(super) async fn groups<C: Claim>(&self, held: &Held<C>) -> Result<Vec<Group>, DbError> {
        let mut by_driver: HashMap<DriverRef, Group> = HashMap::new();
        for cluster in self.read(held).await? {
            let pinned = held.claim(&cluster.cluster.uuid).and_then(Claim::driver);
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

    async fn read<C: Claim>(&self, held: &Held<C>) -> Result<Vec<ClusterRef>, DbError> {
        let uuids = held.uuids();
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
        let refs = held.claims().filter_map(|claim| {
            let uuid = claim.cluster().as_str();
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
                operation: claim.operation().cloned(),
                cluster,
            })
        });
        Ok(refs.collect())
    }
}
