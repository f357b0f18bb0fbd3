//! The status sync, on each of the three databases: conductors share the clusters in progress, write what the
//! driver sees and nothing else, and settle what waits for it.

use std::collections::HashSet;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId, NodeGroupUuid};
use magnum_common::model::{Cluster, ClusterStatus, NodeGroup};
use magnum_conductor::operations::State;
use magnum_conductor::operations::notice::NoticeQueue;
use magnum_conductor::periodic::status_sync::{Pace, StatusSync};
use magnum_conductor::store;
use magnum_conductor::store::polls::{self, Claimed};
use magnum_driver_api::{DriverError, DriverReport, NodeGroupChanges};
use magnum_tests::fake_driver::{Act, Gate, built, with_group};
use magnum_tests::row_lock::RowLock;
use magnum_tests::{Backend, TestDatabase, on_every_database};
use tokio_util::sync::CancellationToken;

use super::operations::world::{TEMPLATE, World, create, delete, resize};

const PACE: Pace = Pace {
    interval: Duration::from_secs(60),
    batch: 20,
    parallelism: 4,
    lease: Duration::from_secs(30),
};

fn sync_at(world: &World, name: &str, pace: Pace) -> StatusSync {
    let signals = std::sync::Arc::default();
    StatusSync::new(
        world.db.clone(),
        ConductorId::new(name),
        world.drivers(),
        signals,
        NoticeQueue::default(),
        pace,
    )
}

fn sync(world: &World, name: &str) -> StatusSync {
    sync_at(world, name, PACE)
}

async fn round(sync: &StatusSync) -> usize {
    sync.round(&CancellationToken::new()).await.expect("database")
}

/// Clusters that a Python conductor began with: rows, and no operation of ours.
async fn foreign_clusters(world: &World, count: usize, status: ClusterStatus) -> Vec<ClusterUuid> {
    let uuids: Vec<ClusterUuid> = (0..count).map(|_| ClusterUuid::random()).collect();
    let clusters: Vec<Cluster> = uuids
        .iter()
        .map(|uuid| {
            let mut cluster = Cluster::new(uuid.clone(), TEMPLATE.into());
            cluster.project_id = Some("p".into());
            cluster.status = Some(status);
            cluster.stack_id = Some("theirs".into());
            cluster
        })
        .collect();
    let groups: Vec<NodeGroup> = uuids
        .iter()
        .map(|uuid| {
            let mut group = NodeGroup::new(
                NodeGroupUuid::random(),
                "default-worker",
                uuid.clone(),
                "p",
                "worker",
            );
            group.status = Some(status);
            group
        })
        .collect();
    world
        .read(move |conn| {
            store::clusters::insert(conn, &clusters)?;
            Ok(store::node_groups::insert(conn, &groups)?)
        })
        .await;
    uuids
}

async fn claim(world: &World, name: &str, term: Duration) -> Vec<Claimed> {
    let me = ConductorId::new(name);
    world
        .read(move |conn| {
            polls::add_missing(conn, 100)?;
            Ok(polls::claim(conn, &me, &["fake".to_owned()], term, 100)?)
        })
        .await
}

/// All clusters are due at once, whenever the next look was to be.
async fn make_due(database: &TestDatabase) {
    database
        .execute("UPDATE conductor_cluster_poll SET next_poll_ms = 0")
        .await
        .expect("update");
}

on_every_database! {
    /// What a driver would see of it is nothing, and might call a failure.
    async fn a_cluster_that_a_python_conductor_has_not_given_to_its_driver_is_left_alone(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = foreign_clusters(&world, 1, ClusterStatus::CreateInProgress).await.remove(0);
        database.execute("UPDATE cluster SET stack_id = NULL").await.expect("update");
        world.driver.set_observation(&uuid, Ok(DriverReport::status(ClusterStatus::CreateFailed)));
        let sync = sync(&world, "one");
        assert_eq!(round(&sync).await, 0);
        assert_eq!(world.cluster(&uuid).await.unwrap().status, Some(ClusterStatus::CreateInProgress));
        // As soon as it has a stack, there is something to look at.
        database.execute("UPDATE cluster SET stack_id = 'theirs'").await.expect("update");
        world.driver.set_observation(&uuid, Ok(DriverReport::status(ClusterStatus::CreateComplete)));
        assert_eq!(round(&sync).await, 1);
        assert_eq!(world.cluster(&uuid).await.unwrap().status, Some(ClusterStatus::CreateComplete));
    }

    async fn a_cluster_whose_row_is_locked_keeps_no_other_from_being_looked_at(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuids = foreign_clusters(&world, 2, ClusterStatus::CreateInProgress).await;
        assert_eq!(claim(&world, "one", Duration::ZERO).await.len(), 2);
        make_due(&database).await;
        // SQLite has no locks of rows.
        let held = match database.backend {
            Backend::Sqlite => None,
            _ => {
                let first = format!("cluster_uuid = '{}'", uuids[0]);
                Some(RowLock::take(&database, "conductor_cluster_poll", &first).await.expect("the lock"))
            }
        };
        let claimed = claim(&world, "two", Duration::from_secs(60)).await;
        let claimed: Vec<_> = claimed.into_iter().map(|one| one.cluster).collect();
        assert!(claimed.contains(&uuids[1]), "{claimed:?}");
        assert_eq!(claimed.contains(&uuids[0]), held.is_none(), "{claimed:?}");
    }

    async fn observed_status_finishes_the_operation(database: TestDatabase) {
        let world = World::new(&database).await;
        let _conductor = world.conductor("one");
        world.driver.then(Act::Report(Box::new(built(ClusterStatus::CreateInProgress, "s"))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        world.reaches(&operation, State::Observing).await;
        let sync = sync(&world, "one");

        // Nothing new: the cluster stays, and is not looked at again before its time.
        world.driver.set_observation(&uuid, Ok(DriverReport::status(ClusterStatus::CreateInProgress)));
        assert_eq!((round(&sync).await, round(&sync).await), (1, 0));
        assert_eq!(world.driver.observed()[0].operation, Some(operation.clone()));
        world.reaches(&operation, State::Observing).await;

        let mut changes = NodeGroupChanges::of(world.groups(&uuid).await[1].uuid.clone());
        changes.node_addresses = Some(vec!["10.0.0.9".into()]);
        let mut report = with_group(DriverReport::status(ClusterStatus::CreateComplete), changes);
        report.cluster.api_address = Some("https://10.0.0.5:6443".into());
        world.driver.set_observation(&uuid, Ok(report));
        make_due(&database).await;
        assert_eq!(round(&sync).await, 1);
        world.reaches(&operation, State::Succeeded).await;
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::CreateComplete));
        assert_eq!(cluster.api_address.as_deref(), Some("https://10.0.0.5:6443"));
        let groups = world.groups(&uuid).await;
        assert_eq!(groups[1].node_addresses, ["10.0.0.9"]);
        assert!(groups.iter().all(|group| group.status == Some(ClusterStatus::CreateComplete)));
        make_due(&database).await;
        assert_eq!(round(&sync).await, 0, "an ended cluster is not looked at");
        world.nothing_is_open().await;
    }

    async fn a_failed_cluster_fails_its_operation_with_the_drivers_reason(database: TestDatabase) {
        let world = World::new(&database).await;
        let _conductor = world.conductor("one");
        world.driver.then(Act::Report(Box::new(built(ClusterStatus::CreateInProgress, "s"))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        world.reaches(&operation, State::Observing).await;
        let mut report = DriverReport::status(ClusterStatus::CreateFailed);
        report.cluster.status_reason = Some("no quota".into());
        world.driver.set_observation(&uuid, Ok(report));
        round(&sync(&world, "one")).await;
        let row = world.reaches(&operation, State::Failed).await;
        assert_eq!(row.reason.as_deref(), Some("no quota"));
        assert_eq!(world.cluster(&uuid).await.unwrap().status_reason.as_deref(), Some("no quota"));
        world.nothing_is_open().await;
    }

    /// As drivers do that tell of each group how it is, and of the cluster that it is complete whatever became of them.
    async fn a_create_waits_for_a_node_group_that_has_failed_to_recover(database: TestDatabase) {
        let world = World::new(&database).await;
        let _conductor = world.conductor("one");
        world.driver.then(Act::Report(Box::new(built(ClusterStatus::CreateInProgress, "s"))));
        let asked = create();
        let uuid = asked.command.cluster().clone();
        let operation = world.record(asked).await;
        world.reaches(&operation, State::Observing).await;
        world.driver.set_observation(&uuid, Ok(DriverReport::status(ClusterStatus::CreateComplete)));
        let failed = "UPDATE nodegroup SET status = 'CREATE_FAILED' WHERE role = 'worker'";
        database.execute(failed).await.expect("update");
        let sync = sync(&world, "one");
        assert_eq!(round(&sync).await, 1);
        world.reaches(&operation, State::Observing).await;
        let waiting = world.cluster(&uuid).await.unwrap();
        assert_eq!(waiting.status, Some(ClusterStatus::CreateInProgress));
        let reason = waiting.status_reason.unwrap_or_default();
        assert!(reason.starts_with("Node groups have failed: default-worker."), "{reason}");

        database.execute("UPDATE nodegroup SET status = 'CREATE_COMPLETE'").await.expect("update");
        make_due(&database).await;
        assert_eq!(round(&sync).await, 1);
        world.reaches(&operation, State::Succeeded).await;
        let complete = world.cluster(&uuid).await.unwrap();
        assert_eq!((complete.status, complete.status_reason), (Some(ClusterStatus::CreateComplete), None));
        world.nothing_is_open().await;
    }

    async fn a_resize_does_not_wait_for_a_node_group_that_had_failed_before(database: TestDatabase) {
        let world = World::new(&database).await;
        let _conductor = world.conductor("one");
        let uuid = foreign_clusters(&world, 1, ClusterStatus::CreateComplete).await.remove(0);
        let failed = "UPDATE nodegroup SET status = 'UPDATE_FAILED'";
        database.execute(failed).await.expect("update");
        world.driver.then(Act::Report(Box::new(DriverReport::status(ClusterStatus::UpdateInProgress))));
        let group = world.groups(&uuid).await.remove(0);
        let operation = world.record(resize(&uuid, &group, 3)).await;
        world.reaches(&operation, State::Observing).await;
        // As a driver leaves it that knows of no groups.
        database.execute(failed).await.expect("update");
        world.driver.set_observation(&uuid, Ok(DriverReport::status(ClusterStatus::UpdateComplete)));
        assert_eq!(round(&sync(&world, "one")).await, 1);
        world.reaches(&operation, State::Succeeded).await;
    }

    async fn an_observation_over_the_limits_is_left_out_and_harms_no_other_cluster(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuids = foreign_clusters(&world, 2, ClusterStatus::UpdateInProgress).await;
        let mut report = DriverReport::status(ClusterStatus::UpdateComplete);
        world.driver.set_observation(&uuids[0], Ok(report.clone()));
        report.cluster.api_address = Some("a".repeat(256));
        world.driver.set_observation(&uuids[1], Ok(report));
        assert_eq!(round(&sync(&world, "one")).await, 2);
        assert_eq!(world.cluster(&uuids[0]).await.unwrap().status, Some(ClusterStatus::UpdateComplete));
        let left_out = world.cluster(&uuids[1]).await.unwrap();
        assert_eq!((left_out.status, left_out.api_address), (Some(ClusterStatus::UpdateInProgress), None));
    }

    async fn conductors_share_the_clusters_and_look_at_each_once(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuids = foreign_clusters(&world, 70, ClusterStatus::UpdateInProgress).await;
        for uuid in &uuids {
            world.driver.set_observation(uuid, Ok(DriverReport::status(ClusterStatus::UpdateComplete)));
        }
        let (one, two, three) = (sync(&world, "one"), sync(&world, "two"), sync(&world, "three"));
        tokio::join!(round(&one), round(&two), round(&three));
        // What collided is found in the next round.
        round(&one).await;
        let looks: Vec<ClusterUuid> = world.driver.observed().iter().map(|look| look.cluster.uuid.clone()).collect();
        assert_eq!(looks.len(), 70, "each once");
        assert_eq!(looks.into_iter().collect::<HashSet<_>>(), uuids.iter().cloned().collect());
        for uuid in &uuids {
            assert_eq!(world.cluster(uuid).await.unwrap().status, Some(ClusterStatus::UpdateComplete));
        }
    }

    async fn a_deleted_cluster_leaves_no_rows(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = foreign_clusters(&world, 1, ClusterStatus::DeleteInProgress).await.remove(0);
        world.driver.set_observation(&uuid, Ok(DriverReport::status(ClusterStatus::DeleteComplete)));
        assert_eq!(round(&sync(&world, "one")).await, 1);
        assert!(world.cluster(&uuid).await.is_none());
        assert!(world.groups(&uuid).await.is_empty());
    }

    async fn a_delete_that_is_accepted_during_a_look_is_not_undone(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = foreign_clusters(&world, 1, ClusterStatus::CreateInProgress).await.remove(0);
        world.driver.set_observation(&uuid, Ok(DriverReport::status(ClusterStatus::CreateComplete)));
        let gate = Gate::new();
        world.driver.hold_polls(&gate);
        let sync = sync(&world, "one");
        let ((), looked_at) = tokio::join!(
            async {
                gate.entered().await;
                world.record(delete(&uuid)).await;
                gate.open();
            },
            round(&sync)
        );
        assert_eq!(looked_at, 1);
        assert_eq!(world.cluster(&uuid).await.unwrap().status, Some(ClusterStatus::DeleteInProgress));
    }

    async fn a_cluster_with_an_operation_at_work_is_left_to_it(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = foreign_clusters(&world, 1, ClusterStatus::CreateInProgress).await.remove(0);
        world.record(delete(&uuid)).await;
        assert_eq!(round(&sync(&world, "one")).await, 0);
    }

    async fn failing_observation_leaves_the_cluster_unchanged_and_is_retried_less_often(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuids = foreign_clusters(&world, 2, ClusterStatus::CreateInProgress).await;
        world.driver.set_observation(&uuids[0], Err(DriverError::Permanent("the cloud is gone".into())));
        let sync = sync(&world, "one");
        for failures in 1..=2 {
            make_due(&database).await;
            assert_eq!(round(&sync).await, 2);
            make_due(&database).await;
            for claimed in claim(&world, "looking", Duration::ZERO).await {
                assert_eq!(claimed.failures, failures, "the second one was said nothing about");
            }
        }
        for uuid in &uuids {
            let cluster = world.cluster(uuid).await.unwrap();
            assert_eq!(cluster.status, Some(ClusterStatus::CreateInProgress));
            assert_eq!(cluster.status_reason, None);
        }
    }

    async fn cluster_of_a_driver_that_is_not_loaded_is_not_claimed(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = foreign_clusters(&world, 1, ClusterStatus::CreateInProgress).await.remove(0);
        database
            .execute(&format!(
                "INSERT INTO conductor_cluster_driver (cluster_uuid, driver, version) VALUES ('{uuid}', 'other', '1.0.0')"
            ))
            .await
            .unwrap();
        assert_eq!(round(&sync(&world, "one")).await, 0);
        database.execute("UPDATE conductor_cluster_driver SET driver = 'fake'").await.unwrap();
        assert_eq!(round(&sync(&world, "one")).await, 1);
    }

    async fn poll_with_a_lost_claim_writes_nothing(database: TestDatabase) {
        let world = World::new(&database).await;
        foreign_clusters(&world, 1, ClusterStatus::CreateInProgress).await;
        let first = claim(&world, "one", Duration::ZERO).await.remove(0);
        let second = claim(&world, "two", Duration::from_secs(60)).await.remove(0);
        assert_eq!(second.epoch, first.epoch + 1);
        assert!(claim(&world, "three", Duration::from_secs(60)).await.is_empty(), "it is held");
        let give_back = async |name: &str, claimed: &Claimed| {
            let (me, claimed) = (ConductorId::new(name), claimed.clone());
            world.read(move |conn| Ok(polls::give_back(conn, &me, &claimed, Duration::ZERO, 0)?)).await
        };
        assert!(!give_back("one", &first).await);
        assert!(give_back("two", &second).await);
        assert!(!give_back("two", &second).await, "given back already");
    }

    async fn polled_clusters_are_released_at_shutdown(database: TestDatabase) {
        let world = World::new(&database).await;
        foreign_clusters(&world, 3, ClusterStatus::CreateInProgress).await;
        world.driver.hold_polls(&Gate::new());
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(sync(&world, "one").run(shutdown.clone()));
        magnum_tests::wait::until("looks", Duration::from_secs(20), async || {
            (world.driver.observed().len() == 3).then_some(()).ok_or("not yet")
        })
        .await
        .unwrap();
        shutdown.cancel();
        running.await.unwrap();
        assert_eq!(claim(&world, "two", Duration::ZERO).await.len(), 3);
    }
}
