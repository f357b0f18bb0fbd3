//! Who shows what a cluster uses, on each of the three databases: the conductor that looked at it last; and that neither
//! a driver that fails nor one that hangs there touches the cluster's health.

use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::{Cluster, ClusterStatus, HealthStatus, StringMap};
use magnum_conductor::periodic::health::{HealthCheck, Pace, Timing};
use magnum_conductor::periodic::utilisation::{Utilisation, UtilisationFigures};
use magnum_conductor::store;
use magnum_driver_api::{DriverError, HealthReport, Utilisation as Used, UtilisationReport};
use magnum_tests::fake_driver::Gate;
use magnum_tests::{TestDatabase, on_every_database, wait};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::operations::world::{TEMPLATE, World};

const PATIENCE: Duration = Duration::from_secs(30);

/// A look at what is shown each tenth of a second.
const PACE: Pace = Pace {
    interval: Duration::from_secs(1),
    batch: 20,
    parallelism: 4,
    lease: Duration::from_secs(30),
};

/// The two parts of one conductor.
struct Conductor {
    check: HealthCheck,
    board: UtilisationFigures,
    stop: CancellationToken,
    part: JoinHandle<()>,
}

impl Conductor {
    fn new(world: &World, name: &str) -> Self {
        let (board, stop) = (UtilisationFigures::default(), CancellationToken::new());
        let me = ConductorId::new(name);
        let (part, queue) = Utilisation::new(world.db.clone(), me.clone(), PACE, board.clone(), None);
        let check = HealthCheck::new(world.db.clone(), me, world.drivers(), PACE, Timing::default());
        Self {
            check: check.with_utilisation(queue),
            board,
            part: tokio::spawn(part.run(stop.clone())),
            stop,
        }
    }

    async fn round(&self) -> usize {
        self.check.add_missing().await.expect("database");
        self.check.round(&self.stop).await.expect("database")
    }

    /// Waits until the cluster is shown, or is not.
    async fn shows(&self, cluster: &ClusterUuid, wanted: bool) {
        wait::until("the figures to come or go", PATIENCE, async || {
            let text = self.board.rendered();
            let shown = text.contains(cluster.as_str());
            (shown == wanted).then_some(()).ok_or(text)
        })
        .await
        .expect("in time");
    }
}

impl Drop for Conductor {
    fn drop(&mut self) {
        self.part.abort();
    }
}

async fn cluster(world: &World, status: ClusterStatus) -> ClusterUuid {
    let uuid = ClusterUuid::random();
    let mut row = Cluster::new(uuid.clone(), TEMPLATE.into());
    row.project_id = Some("p".into());
    row.status = Some(status);
    world
        .read(move |conn| Ok(store::clusters::insert(conn, std::slice::from_ref(&row))?))
        .await;
    let healthy = HealthReport {
        status: HealthStatus::Healthy,
        reasons: StringMap::new(),
    };
    world.driver.set_health(&uuid, Ok(healthy));
    uuid
}

fn uses(percent: f64) -> Result<UtilisationReport, DriverError> {
    Ok(UtilisationReport {
        cluster: Used {
            cpu_percent: Some(percent),
            ..Used::default()
        },
        node_groups: Vec::new(),
    })
}

async fn make_due(database: &TestDatabase) {
    database
        .execute("UPDATE conductor_cluster_health SET next_poll_ms = 0")
        .await
        .expect("update");
}

async fn health(world: &World, uuid: &ClusterUuid) -> Option<HealthStatus> {
    world.cluster(uuid).await.expect("there").health_status
}

on_every_database! {
    async fn the_conductor_that_looked_last_shows_a_cluster_until_it_is_gone(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, ClusterStatus::CreateComplete).await;
        world.driver.set_utilisation(&uuid, uses(40.0));
        let (one, two) = (Conductor::new(&world, "one"), Conductor::new(&world, "two"));
        assert_eq!(one.round().await, 1);
        one.shows(&uuid, true).await;
        make_due(&database).await;
        assert_eq!(two.round().await, 1);
        two.shows(&uuid, true).await;
        one.shows(&uuid, false).await;
        let gone = uuid.clone();
        world.read(move |conn| Ok(store::clusters::remove(conn, &gone)?)).await;
        two.shows(&uuid, false).await;
        assert_eq!(world.driver.utilisation_polls(), [uuid.clone(), uuid], "once an interval, by one of them");
    }

    async fn a_driver_that_fails_or_hangs_at_it_touches_no_health(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, ClusterStatus::UpdateFailed).await;
        let conductor = Conductor::new(&world, "one");
        for failure in [
            Err(DriverError::Permanent("no".into())),
            Err(DriverError::NotSupported("no".into())),
            uses(f64::NAN),
            uses(250.0),
        ] {
            world.driver.set_utilisation(&uuid, uses(1.0));
            conductor.round().await;
            conductor.shows(&uuid, true).await;
            assert_eq!(health(&world, &uuid).await, Some(HealthStatus::Healthy));
            world.driver.set_utilisation(&uuid, failure);
            make_due(&database).await;
            assert_eq!(conductor.round().await, 1);
            conductor.shows(&uuid, false).await;
            assert_eq!(health(&world, &uuid).await, Some(HealthStatus::Healthy));
            make_due(&database).await;
        }
        // Nor does the next round wait for one that hangs.
        world.driver.hold_utilisation(&Gate::new());
        for _ in 0..10 {
            make_due(&database).await;
            assert_eq!(conductor.round().await, 1);
        }
        assert_eq!(health(&world, &uuid).await, Some(HealthStatus::Healthy));
    }

    async fn clusters_without_running_nodes_are_not_polled(database: TestDatabase) {
        let world = World::new(&database).await;
        let conductor = Conductor::new(&world, "one");
        let mut expected = Vec::new();
        for status in ClusterStatus::ALL {
            let uuid = cluster(&world, *status).await;
            world.driver.set_utilisation(&uuid, uses(1.0));
            use ClusterStatus as S;
            if matches!(status, S::CreateComplete | S::UpdateInProgress | S::UpdateComplete | S::UpdateFailed) {
                expected.push(uuid);
            }
        }
        conductor.round().await;
        for uuid in &expected {
            conductor.shows(uuid, true).await;
        }
        assert_eq!(world.driver.utilisation_polls().len(), expected.len());
    }
}
