//! The health check, on each of the three databases: conductors share the clusters, write what the driver says
//! of their health and nothing else, and say that they do not know when they do not.

use std::collections::HashSet;
use std::time::Duration;

use magnum_common::ids::{ClusterUuid, ConductorId};
use magnum_common::model::{Cluster, ClusterStatus, HealthStatus, StringMap};
use magnum_conductor::periodic::health::{HealthCheck, Pace, Timing};
use magnum_conductor::store;
use magnum_db::write::cluster_health;
use magnum_driver_api::{DriverError, HealthReport};
use magnum_tests::fake_driver::Gate;
use magnum_tests::{TestDatabase, on_every_database};
use tokio_util::sync::CancellationToken;

use super::operations::world::{TEMPLATE, World, delete};

const PACE: Pace = Pace {
    interval: Duration::from_secs(60),
    batch: 20,
    parallelism: 4,
    lease: Duration::from_secs(30),
};

fn check_with(world: &World, name: &str, unknown_after: Duration) -> HealthCheck {
    HealthCheck::new(
        world.db.clone(),
        ConductorId::new(name),
        world.drivers(),
        PACE,
        Timing { unknown_after },
    )
}

fn check(world: &World, name: &str) -> HealthCheck {
    check_with(world, name, Duration::from_secs(600))
}

async fn round(check: &HealthCheck) -> usize {
    check.add_missing().await.expect("database");
    check.round(&CancellationToken::new()).await.expect("database")
}

fn report(status: HealthStatus, reasons: &[(&str, &str)]) -> HealthReport {
    let reasons = reasons
        .iter()
        .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
    HealthReport {
        status,
        reasons: reasons.collect(),
    }
}

fn healthy() -> HealthReport {
    report(HealthStatus::Healthy, &[("api", "ok"), ("node-0.Ready", "True")])
}

fn dead() -> HealthReport {
    report(HealthStatus::Unhealthy, &[("api", "Connection refused")])
}

async fn clusters(world: &World, count: usize, change: impl Fn(&mut Cluster)) -> Vec<ClusterUuid> {
    let uuids: Vec<ClusterUuid> = (0..count).map(|_| ClusterUuid::random()).collect();
    let rows: Vec<Cluster> = uuids
        .iter()
        .map(|uuid| {
            let mut cluster = Cluster::new(uuid.clone(), TEMPLATE.into());
            cluster.project_id = Some("p".into());
            cluster.status = Some(ClusterStatus::CreateComplete);
            change(&mut cluster);
            cluster
        })
        .collect();
    world
        .read(move |conn| Ok(store::clusters::insert(conn, &rows)?))
        .await;
    uuids
}

async fn cluster(world: &World, change: impl Fn(&mut Cluster)) -> ClusterUuid {
    clusters(world, 1, change).await.remove(0)
}

async fn health(world: &World, uuid: &ClusterUuid) -> (Option<HealthStatus>, StringMap) {
    let cluster = world.cluster(uuid).await.expect("the cluster is there");
    (cluster.health_status, cluster.health_status_reason)
}

/// All clusters are due at once, whenever the next look was to be.
async fn make_due(database: &TestDatabase) {
    database
        .execute("UPDATE conductor_cluster_health SET next_poll_ms = 0")
        .await
        .expect("update");
}

/// So that the row's own age does not count.
async fn written_long_ago(database: &TestDatabase) {
    database
        .execute("UPDATE cluster SET created_at = '2020-01-01 00:00:00', updated_at = '2020-01-01 00:00:00'")
        .await
        .expect("update");
}

async fn updates(world: &World, uuid: &ClusterUuid) -> Option<magnum_common::model::Timestamp> {
    world.cluster(uuid).await.expect("there").updated_at
}

on_every_database! {
    async fn health_follows_the_driver_and_the_status_stays(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |_| {}).await;
        let check = check(&world, "one");
        for expected in [healthy(), dead(), healthy()] {
            world.driver.set_health(&uuid, Ok(expected.clone()));
            assert_eq!((round(&check).await, round(&check).await), (1, 0), "not again before its time");
            assert_eq!(health(&world, &uuid).await, (Some(expected.status), expected.reasons));
            make_due(&database).await;
        }
        assert_eq!(world.cluster(&uuid).await.unwrap().status, Some(ClusterStatus::CreateComplete));
    }

    async fn health_that_is_the_same_is_not_written_again(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |_| {}).await;
        world.driver.set_health(&uuid, Ok(healthy()));
        let check = check(&world, "one");
        round(&check).await;
        written_long_ago(&database).await;
        let before = updates(&world, &uuid).await;
        make_due(&database).await;
        assert_eq!(round(&check).await, 1);
        assert_eq!(updates(&world, &uuid).await, before);
    }

    async fn clusters_in_nine_statuses_are_asked_about(database: TestDatabase) {
        let world = World::new(&database).await;
        let mut expected = HashSet::new();
        for status in ClusterStatus::ALL {
            let uuid = cluster(&world, |cluster| cluster.status = Some(*status)).await;
            if store::health_polls::POLLED.contains(status) {
                expected.insert(uuid);
            }
        }
        round(&check(&world, "one")).await;
        assert_eq!(world.driver.health_polls().into_iter().collect::<HashSet<_>>(), expected);
        assert_eq!(expected.len(), 9);
        // Nor those that were in one of them before.
        database.execute("UPDATE cluster SET status = 'ROLLBACK_COMPLETE'").await.expect("update");
        make_due(&database).await;
        assert_eq!(round(&check(&world, "one")).await, 0);
    }

    async fn conductors_share_the_clusters_and_ask_about_each_once(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuids = clusters(&world, 70, |_| {}).await;
        for uuid in &uuids {
            world.driver.set_health(uuid, Ok(dead()));
        }
        let (one, two) = (check(&world, "one"), check(&world, "two"));
        one.add_missing().await.expect("database");
        make_due(&database).await;
        let shutdown = CancellationToken::new();
        let (of_one, of_two) = tokio::join!(one.round(&shutdown), two.round(&shutdown));
        // What collided is found in the next round.
        let rest = one.round(&shutdown).await.expect("database");
        assert_eq!(of_one.expect("database") + of_two.expect("database") + rest, 70);
        let looks = world.driver.health_polls();
        assert_eq!(looks.len(), 70, "each once");
        assert_eq!(looks.into_iter().collect::<HashSet<_>>(), uuids.iter().cloned().collect());
        for uuid in &uuids {
            assert_eq!(health(&world, uuid).await.0, Some(HealthStatus::Unhealthy));
        }
    }

    async fn a_cluster_that_is_deleted_during_a_look_stays_deleted(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |_| {}).await;
        world.driver.set_health(&uuid, Ok(dead()));
        let gate = Gate::new();
        world.driver.hold_polls(&gate);
        let check = check(&world, "one");
        let gone = uuid.clone();
        tokio::join!(
            async {
                gate.entered().await;
                world.read(move |conn| Ok(store::clusters::remove(conn, &gone)?)).await;
                gate.open();
            },
            round(&check)
        );
        assert!(world.cluster(&uuid).await.is_none());
        make_due(&database).await;
        assert_eq!(round(&check).await, 0, "nor is it looked at again");
    }

    async fn a_delete_that_is_accepted_during_a_look_goes_on(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |_| {}).await;
        world.driver.set_health(&uuid, Ok(dead()));
        let gate = Gate::new();
        world.driver.hold_polls(&gate);
        let check = check(&world, "one");
        tokio::join!(
            async {
                gate.entered().await;
                world.record(delete(&uuid)).await;
                gate.open();
            },
            round(&check)
        );
        let cluster = world.cluster(&uuid).await.unwrap();
        assert_eq!(cluster.status, Some(ClusterStatus::DeleteInProgress));
    }

    async fn health_that_somebody_wrote_during_a_look_stays(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |_| {}).await;
        world.driver.set_health(&uuid, Ok(dead()));
        let gate = Gate::new();
        world.driver.hold_polls(&gate);
        let check = check(&world, "one");
        let patched = uuid.clone();
        tokio::join!(
            async {
                gate.entered().await;
                world
                    .read(move |conn| {
                        let reasons = StringMap::from([("healer".to_owned(), "ok".to_owned())]);
                        let healthy = Some(HealthStatus::Healthy);
                        Ok(cluster_health::set(conn, &patched, healthy, &reasons)?)
                    })
                    .await;
                gate.open();
            },
            round(&check)
        );
        let (status, reasons) = health(&world, &uuid).await;
        assert_eq!(status, Some(HealthStatus::Healthy));
        assert_eq!(reasons["healer"], "ok");
    }

    async fn a_cluster_with_its_own_healer_is_left_to_it(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |cluster| {
            cluster.labels = StringMap::from([
                ("auto_healing_enabled".to_owned(), "true".to_owned()),
                ("auto_healing_controller".to_owned(), "magnum-auto-healer".to_owned()),
            ]);
            cluster.health_status = Some(HealthStatus::Healthy);
        }).await;
        world.driver.set_health(&uuid, Ok(dead()));
        let check = check_with(&world, "one", Duration::ZERO);
        assert_eq!(round(&check).await, 1);
        written_long_ago(&database).await;
        make_due(&database).await;
        assert_eq!(check.expire_health().await.expect("database"), 0);
        assert!(world.driver.health_polls().is_empty());
        assert_eq!(health(&world, &uuid).await.0, Some(HealthStatus::Healthy));
    }

    async fn a_driver_that_fails_keeps_the_health_for_a_while_and_then_makes_it_unknown(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |cluster| cluster.health_status = Some(HealthStatus::Healthy)).await;
        world.driver.set_health(&uuid, Err(DriverError::Transient("the cloud does not answer".into())));
        let check = check(&world, "one");
        for _ in 0..2 {
            written_long_ago(&database).await;
            make_due(&database).await;
            assert_eq!(round(&check).await, 1);
            assert_eq!(health(&world, &uuid).await.0, Some(HealthStatus::Healthy));
        }
        database
            .execute("UPDATE conductor_cluster_health SET next_poll_ms = 0, answered_ms = answered_ms - 600000")
            .await
            .expect("update");
        assert_eq!(round(&check).await, 1);
        let (status, reasons) = health(&world, &uuid).await;
        assert_eq!(status, Some(HealthStatus::Unknown));
        assert_eq!(reasons["driver"], "no answer for 10 minutes: the cloud does not answer");
        // And back again as soon as it answers.
        world.driver.set_health(&uuid, Ok(healthy()));
        make_due(&database).await;
        round(&check).await;
        assert_eq!(health(&world, &uuid).await.0, Some(HealthStatus::Healthy));
    }

    /// The conductor that had it is gone, and the one that is left knows nothing of it.
    async fn a_driver_that_is_loaded_nowhere_makes_the_health_unknown(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |_| {}).await;
        world.driver.set_health(&uuid, Ok(healthy()));
        let check = check(&world, "one");
        round(&check).await;
        database
            .execute(&format!(
                "INSERT INTO conductor_cluster_driver (cluster_uuid, driver, version) VALUES ('{uuid}', 'other', '1.0.0')"
            ))
            .await
            .unwrap();
        written_long_ago(&database).await;
        make_due(&database).await;
        assert_eq!(round(&check).await, 0);
        assert_eq!(check.expire_health().await.expect("database"), 0, "it answered a moment ago");
        database
            .execute("UPDATE conductor_cluster_health SET answered_ms = answered_ms - 600000")
            .await
            .unwrap();
        assert_eq!(check.expire_health().await.expect("database"), 1);
        let (status, reasons) = health(&world, &uuid).await;
        assert_eq!(status, Some(HealthStatus::Unknown));
        assert_eq!(reasons["driver"], "no answer for 10 minutes: no conductor has the driver");
        assert_eq!(check.expire_health().await.expect("database"), 0, "once is enough");
    }

    async fn a_driver_without_health_leaves_it_to_whoever_wrote_it(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |cluster| cluster.health_status = Some(HealthStatus::Healthy)).await;
        world.driver.set_health(&uuid, Err(DriverError::NotSupported("no".into())));
        let check = check_with(&world, "one", Duration::ZERO);
        round(&check).await;
        written_long_ago(&database).await;
        make_due(&database).await;
        assert_eq!(check.expire_health().await.expect("database"), 0);
        assert_eq!(health(&world, &uuid).await.0, Some(HealthStatus::Healthy));
    }

    async fn lost_claim_writes_no_health(database: TestDatabase) {
        let world = World::new(&database).await;
        let uuid = cluster(&world, |_| {}).await;
        check(&world, "one").add_missing().await.expect("database");
        let claim = async |name: &str, term| {
            let me = ConductorId::new(name);
            world
                .read(move |conn| Ok(store::health_polls::claim(conn, &me, &["fake".to_owned()], term, 10)?))
                .await
        };
        let lost = claim("one", Duration::ZERO).await.remove(0);
        let held = claim("two", Duration::from_secs(60)).await.remove(0);
        assert_eq!(held.epoch, lost.epoch + 1);
        let write = async |name: &str, claim: &store::health_polls::HealthClaim| {
            let (me, claim, uuid) = (ConductorId::new(name), claim.clone(), uuid.clone());
            world
                .read(move |conn| {
                    let before = store::cluster_health::stored(conn, std::slice::from_ref(&uuid))?
                        .remove(&uuid)
                        .expect("there");
                    let (status, reasons) = (HealthStatus::Unhealthy, StringMap::new());
                    let claim = Some((&me, &claim));
                    Ok(store::cluster_health::replace(conn, claim, &uuid, &before, status, &reasons)?)
                })
                .await
        };
        assert!(!write("one", &lost).await);
        assert_eq!(health(&world, &uuid).await.0, None);
        assert!(write("two", &held).await);
    }

    async fn shutdown_releases_claims_at_once(database: TestDatabase) {
        let world = World::new(&database).await;
        clusters(&world, 3, |_| {}).await;
        world.driver.hold_polls(&Gate::new());
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(check(&world, "one").run(shutdown.clone()));
        magnum_tests::wait::until("looks", Duration::from_secs(20), async || {
            (world.driver.health_polls().len() == 3).then_some(()).ok_or("not yet")
        })
        .await
        .unwrap();
        shutdown.cancel();
        running.await.unwrap();
        let me = ConductorId::new("two");
        let free = world
            .read(move |conn| {
                let term = Duration::from_secs(60);
                Ok(store::health_polls::claim(conn, &me, &["fake".to_owned()], term, 10)?)
            })
            .await;
        assert_eq!(free.len(), 3);
    }
}
